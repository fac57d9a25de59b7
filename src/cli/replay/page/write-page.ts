/** The page as a file. Whatever happens, what is there is the old file or the whole new one. */
import { realpath } from "node:fs/promises";
import { parse, relative, resolve } from "node:path";
import { ContextError } from "../../../errors.ts";
import { countNoun, formatNumber, printable, toByteString } from "../../../text/index.ts";
import { changeFile } from "../../../workspace/index.ts";
import type { Call } from "../../command.ts";
import type { ReplayReport } from "../replay-files.ts";
import { renderPage } from "./render-page.ts";

/** Refuses what could not be written, before any work is done: a directory, or one of the sessions themselves. */
export async function checkPageTarget(
  target: string,
  { call, inputs }: { readonly call: Pick<Call, "cwd" | "env">; readonly inputs: readonly string[] },
): Promise<void> {
  const path = resolve(call.cwd, target);
  const real = (file: string): Promise<string> => realpath(file).catch(() => file);
  const realTarget = await real(path);
  for (const input of inputs) {
    if ((await real(input)) !== realTarget) continue;
    throw new ContextError("usage", `--html ${printable(target)} would overwrite a session`, {
      hint: "Name another file.",
    });
  }
  await changePage(path, { call, dryRun: true, change: (current) => current ?? "" });
}

export async function writePage(
  target: string,
  report: ReplayReport,
  call: Pick<Call, "cwd" | "env" | "output">,
): Promise<void> {
  const path = resolve(call.cwd, target);
  const bytes = toByteString(renderPage(report));
  await changePage(path, { call, change: () => bytes });
  const size = `${formatNumber(Math.ceil(bytes.length / 1024))} KB`;
  const sessions = countNoun(report.sessions.length, "session");
  call.output.note(`wrote ${printable(relative(call.cwd, path))}: ${sessions}, ${size}`);
}

interface PageChange {
  readonly call: Pick<Call, "cwd" | "env">;
  readonly change: (current: string | undefined) => string;
  readonly dryRun?: boolean;
}

async function changePage(path: string, { call: { cwd, env }, change, dryRun }: PageChange): Promise<void> {
  try {
    await changeFile(path, { root: parse(path).root, env, change, dryRun });
  } catch (error) {
    if (!(error instanceof ContextError)) throw error;
    const { code, message, hint } = error;
    throw new ContextError(code, message, { hint, file: relative(cwd, path) || ".", cause: error });
  }
}
