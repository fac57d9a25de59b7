import { randomBytes } from "node:crypto";
import { readFile, realpath, stat } from "node:fs/promises";
import { join, parse, resolve } from "node:path";
import { ContextError } from "../../errors.ts";
import { chooseRoot, type ServedPlace, serveHttp, serveStdio, sessionIdOf } from "../../mcp/index.ts";
import type { HintMode } from "../../session/index.ts";
import { messageOf } from "../../text/index.ts";
import { changeFile, stateDirectory } from "../../workspace/index.ts";
import type { Call } from "../command.ts";
import { takeEndSignals } from "../end-signals.ts";
import { shownPath } from "../shown-path.ts";
import { readVersion } from "../version.ts";
import { wholeNumber } from "../whole-number.ts";
import { readPageLimit, readSettings, type ServerFlags } from "./settings.ts";

export type ServeFlags = ServerFlags & {
  readonly root?: string | undefined;
  readonly http?: string | undefined;
  readonly hints?: string | undefined;
  readonly "token-file"?: string | undefined;
  readonly "no-token"?: boolean | undefined;
};

/** Runs until the client is gone or a signal comes. stdout belongs to the protocol. */
export async function runServe(call: Call<ServeFlags>): Promise<undefined> {
  const { options, cwd, env, output, stdin } = call;
  const port = options.http === undefined ? undefined : wholeNumber(options.http, "http", 0);
  if (port === undefined) refuseTokenFlags(options);
  const named = options.root === undefined ? undefined : await namedRoot(options.root, cwd);
  const places = createPlaces(call);
  const rootOf = remembered(async (roots: readonly string[] | undefined) => chooseRoot(roots, { cwd, env }));
  const place = async (roots: readonly string[] | undefined): Promise<ServedPlace> =>
    places(named ?? (await rootOf(roots)));
  await checkStart(call, { named, places });
  const end = new AbortController();
  takeEndSignals(() => end.abort());
  const host = {
    ...{ place, pageLimit: readPageLimit(options), asksRoots: named === undefined },
    hints: options.hints as HintMode | undefined,
    ...{ env, version: readVersion(), signal: end.signal, log: output.note },
  };
  if (port !== undefined) await serveHttp(host, { port, token: await findToken(call) });
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

/** What is set for a directory. */
function createPlaces(call: Call<ServeFlags>): (root: string) => Promise<ServedPlace> {
  return remembered(async (root: string) => {
    const { sessionId, ...settings } = await readSettings(call, root);
    const id = sessionId ?? sessionIdOf("mcp", root, [root]);
    return { ...settings, root, sessionId: id, goesOn: sessionId !== undefined };
  });
}

/** Asks once for each argument. What failed is asked again: a person may have mended it. */
function remembered<Argument, Result>(
  ask: (argument: Argument) => Promise<Result>,
): (argument: Argument) => Promise<Result> {
  const answers = new Map<string | undefined, Promise<Result>>();
  return (argument) => {
    const key = JSON.stringify(argument);
    const answer = answers.get(key) ?? ask(argument);
    answers.set(key, answer);
    answer.catch(() => answers.delete(key));
    return answer;
  };
}

/** Links are followed, so that a project has one session whichever way one came to it. */
async function namedRoot(root: string, cwd: string): Promise<string> {
  const path = await realpath(resolve(cwd, root)).catch(() => undefined);
  if (path !== undefined && (await stat(path)).isDirectory()) return path;
  throw new ContextError("usage", `--root ${root} is ${path === undefined ? "not there" : "no directory"}`, {
    hint: "Name the directory that the tools may read.",
  });
}

interface StartOptions {
  readonly named: string | undefined;
  places(root: string): Promise<ServedPlace>;
}

/** A mistake in the flags or in the configuration ends the server before a client waits for it. That there is no directory to read
 *  does not: the client may offer one. */
async function checkStart(
  { cwd, env, output }: Call<ServeFlags>,
  { named, places }: StartOptions,
): Promise<void> {
  const root = named ?? (await chooseRoot(undefined, { cwd, env }).catch((error: unknown) => error));
  if (typeof root === "string") await places(root);
  else if (root instanceof ContextError) output.note(`${root.message}. ${root.hint}`);
  else throw root;
}

/** Of `--http` alone. */
function refuseTokenFlags(options: ServeFlags): void {
  const wrong = (["token-file", "no-token"] as const).find((name) => options[name] !== undefined);
  if (wrong === undefined) return;
  throw new ContextError("usage", `--${wrong} goes with --http only`, {
    hint: "A server on stdio has one client.",
  });
}

/** The token that requests over HTTP must bring: named, or our own, which is made at the first start and stays the same. */
async function findToken({ options, cwd, env, output }: Call<ServeFlags>): Promise<string | undefined> {
  const file = options["token-file"];
  if (options["no-token"] === true) {
    if (file === undefined) return undefined;
    throw new ContextError("usage", "--token-file and --no-token contradict each other", {
      hint: "Leave one of them out.",
    });
  }
  if (file !== undefined) return readToken(resolve(cwd, file));
  if (env.PLIMSOLL_MCP_TOKEN) return checkToken(env.PLIMSOLL_MCP_TOKEN, "PLIMSOLL_MCP_TOKEN");
  const path = join(stateDirectory(env), "mcp-token");
  const token = await ownToken(path, env);
  output.note(
    `token ${token}, kept in ${shownPath(path, cwd, env)}; clients send "Authorization: Bearer TOKEN"`,
  );
  return token;
}

async function readToken(file: string): Promise<string> {
  const text = await readFile(file, "utf8").catch((cause: unknown) => {
    throw new ContextError("unreadable_input", `the token cannot be read: ${messageOf(cause)}`, {
      file,
      cause,
    });
  });
  return checkToken(text.trim(), "it", file);
}

function checkToken(token: string, name: string, file?: string): string {
  if (/^[\x21-\x7e]{16,}$/.test(token)) return token;
  throw new ContextError("usage", `${name} holds no token`, {
    file,
    hint: "Use 16 or more visible ASCII characters without spaces.",
  });
}

/** One that others could read is no secret any more. */
async function ownToken(path: string, env: Call["env"]): Promise<string> {
  const isOpen =
    process.platform !== "win32" && (((await stat(path).catch(() => undefined))?.mode ?? 0) & 0o077) !== 0;
  const fresh = randomBytes(32).toString("base64url");
  const { after } = await changeFile(path, {
    ...{ root: parse(path).root, env, isPrivate: true },
    change: (current) => (isOpen || !/^[\w-]{43}\n$/.test(current ?? "") ? `${fresh}\n` : current),
  });
  return after!.trim();
}
