/** Runs inject again whenever its content changes, until it is interrupted. A mistake in a pack is told, and watching goes on. */
import { join, resolve } from "node:path";
import { ContextError } from "../../errors.ts";
import { countNoun } from "../../text/index.ts";
import {
  companyDirectory,
  configDirectory,
  homeDirectory,
  loadConfig,
  projectRoot,
} from "../../workspace/index.ts";
import type { Call } from "../command.ts";
import { reportError } from "../report-error.ts";
import { type InjectFlags, prepareInject } from "./prepare.ts";
import { runInject } from "./run-inject.ts";
import { watchFolders } from "./watch-folders.ts";

/** Editors write a file in several steps. */
const QUIET_MS = 150;

/** Watching ends with the process; a watcher that fails ends it with the error. */
export async function watchInject(call: Call<InjectFlags>): Promise<undefined> {
  await refuseUsage(call);
  const first = await contentFolders(call);
  await new Promise<never>((_, fail) => {
    let timer: NodeJS.Timeout | undefined;
    let running = Promise.resolve();
    const onChange = () => {
      clearTimeout(timer);
      timer = setTimeout(() => run(), QUIET_MS);
    };
    const watching = watchFolders({ onChange, onError: fail });
    const run = () => {
      // Folders come and go, and the configuration names others: what is watched is looked up before what is in it is read.
      running = running
        .then(async () => watching.update(await contentFolders(call)))
        .then(() => runOnce(call))
        .catch(fail);
    };
    watching.update(first);
    run();
    const count = first.length;
    call.output.note(`watching ${countNoun(count, "folder")}; stop with Ctrl-C`);
  });
}

/** A command line that is wrong stays wrong, whatever changes in the content, and trust is asked for before watching begins. */
async function refuseUsage(call: Call<InjectFlags>): Promise<void> {
  await prepareInject({ ...call, output: { ...call.output, note: () => {} } }).catch((error: unknown) => {
    if (error instanceof ContextError && ["usage", "untrusted"].includes(error.code)) throw error;
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

/** The project's or the user's content, what `--content` names, the company's, and the notes and configuration beside them. */
async function contentFolders({ cwd, env, options }: Call<InjectFlags>): Promise<string[]> {
  const home = homeDirectory(env);
  const isGlobal = options.global === true || options.scope === "global";
  const root = isGlobal ? home : projectRoot(cwd, home);
  const own = isGlobal ? configDirectory(env) : join(root, ".plimsoll");
  const named = options.content === undefined ? [] : [resolve(cwd, options.content)];
  // A mistake in the configuration is told by the run; mending it is noticed in its own folder.
  const company = await loadConfig({ cwd: isGlobal ? home : cwd, env })
    .then(({ values }) => companyDirectory(values.company, { root, env }))
    .catch(() => undefined);
  return [...new Set([own, ...named, ...(company === undefined ? [] : [company])])];
}
