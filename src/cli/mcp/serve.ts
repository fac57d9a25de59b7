import { realpath, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { ContextError } from "../../errors.ts";
import { serveHttp, serveStdio, sessionIdOf } from "../../mcp/index.ts";
import type { HintMode } from "../../session/index.ts";
import type { Call } from "../command.ts";
import { takeEndSignals } from "../end-signals.ts";
import { readVersion } from "../version.ts";
import { wholeNumber } from "../whole-number.ts";
import { readSettings, type ServerFlags } from "./settings.ts";

export type ServeFlags = ServerFlags & {
  readonly root?: string | undefined;
  readonly http?: string | undefined;
  readonly hints?: string | undefined;
};

/** Runs until the client is gone or a signal comes. stdout belongs to the protocol. */
export async function runServe(call: Call<ServeFlags>): Promise<undefined> {
  const { options, env, output, stdin } = call;
  const port = options.http === undefined ? undefined : wholeNumber(options.http, "http", 0);
  const root = await findRoot(call);
  const { sessionId, ...settings } = await readSettings(call, root);
  const end = new AbortController();
  takeEndSignals(() => end.abort());
  const host = {
    ...settings,
    hints: options.hints as HintMode | undefined,
    ...{ root, env, version: readVersion(), signal: end.signal, log: output.note },
    sessionId: sessionId ?? sessionIdOf("mcp", root, [root]),
    goesOn: sessionId !== undefined,
  };
  if (port !== undefined) await serveHttp(host, port);
  else {
    if (process.stdin.isTTY) output.note("an MCP client is expected on standard input; Ctrl-C ends");
    // Where nobody reads any more it ends in good order, too: the frame would exit at once.
    process.stdout.removeAllListeners("error");
    await serveStdio(host, { stdin, stdout: process.stdout });
    // A signal leaves it open, and Node would wait for its end.
    process.stdin.destroy();
  }
  return undefined;
}

/** Links are followed, so that a project has one session whichever way one came to it. */
async function findRoot({ options: { root = "." }, cwd }: Call<ServeFlags>): Promise<string> {
  const path = await realpath(resolve(cwd, root)).catch(() => undefined);
  if (path !== undefined && (await stat(path)).isDirectory()) return path;
  throw new ContextError("usage", `--root ${root} is ${path === undefined ? "not there" : "no directory"}`, {
    hint: "Name the directory that the tools may read.",
  });
}
