/** Runs inject again whenever its content changes, until it is interrupted. A mistake in a pack is told, and watching goes on. */
import { existsSync, type FSWatcher, watch } from "node:fs";
import { dirname, join } from "node:path";
import { ContextError } from "../../errors.ts";
import { configDirectory, homeDirectory, projectRoot } from "../../workspace/index.ts";
import type { Call } from "../command.ts";
import { reportError } from "../report-error.ts";
import { type InjectFlags, prepareInject } from "./prepare.ts";
import { runInject } from "./run-inject.ts";

/** Editors write a file in several steps. */
const QUIET_MS = 150;

export async function watchInject(call: Call<InjectFlags>): Promise<undefined> {
  const { output } = call;
  await refuseUsage(call);
  let timer: NodeJS.Timeout | undefined;
  let running = Promise.resolve();
  const run = () => {
    running = running.then(() => runOnce(call));
  };
  const watchers = contentFolders(call).map((folder) =>
    watch(folder, { recursive: true }, () => {
      clearTimeout(timer);
      timer = setTimeout(run, QUIET_MS);
    }),
  );
  run();
  output.note(
    `watching ${watchers.length} ${watchers.length === 1 ? "folder" : "folders"}; stop with Ctrl-C`,
  );
  await untilClosed(watchers);
}

/** A command line that is wrong stays wrong, whatever changes in the content. */
async function refuseUsage(call: Call<InjectFlags>): Promise<void> {
  await prepareInject({ ...call, output: { ...call.output, note: () => {} } }).catch((error: unknown) => {
    if (error instanceof ContextError && error.code === "usage") throw error;
  });
}

async function runOnce(call: Call<InjectFlags>): Promise<void> {
  try {
    const { text } = await runInject(await prepareInject(call), call);
    if (text !== "") call.output.result(text);
  } catch (error) {
    reportError(error, call.output);
  }
}

/** The project's or the user's content, what `--content` names, and the notes and configuration beside them. */
function contentFolders({ cwd, env, options }: Call<InjectFlags>): string[] {
  const root = projectRoot(cwd, homeDirectory(env));
  const own =
    options.global === true || options.scope === "global" ? configDirectory(env) : join(root, ".plimsoll");
  const folders = [own, ...(options.content === undefined ? [] : [options.content])];
  // A folder that is not there yet is noticed in the one that will hold it.
  return folders.map((folder) => (existsSync(folder) ? folder : dirname(folder)));
}

/** Watching ends with the process; a watcher that fails ends it with the error. */
function untilClosed(watchers: readonly FSWatcher[]): Promise<never> {
  return new Promise((_, fail) => {
    for (const watcher of watchers) watcher.on("error", fail);
  });
}
