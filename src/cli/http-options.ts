/** Options of commands that serve programs of this machine over HTTP, and what they mean. */
import { join, resolve } from "node:path";
import { usageError } from "../core/errors.ts";
import { wholeNumber } from "../core/text/index.ts";
import { type Caller, shownPath, stateDirectory } from "../host/index.ts";
import type { OptionValues } from "./command.ts";
import type { SwitchOption, ValueOption } from "./shared-options.ts";

export const httpOptions: Readonly<Record<"http" | "token-file", ValueOption> & Record<"no-token", SwitchOption>> = {
  http: { value: "PORT", summary: "serve over HTTP on 127.0.0.1 instead of stdio; 0 for any free port" },
  "token-file": {
    value: "FILE",
    summary: "with --http: file with the token that clients send (default: a token that Plimsoll creates)",
  },
  "no-token": { summary: "with --http: answer everyone who reaches the port" },
};

type HttpFlags = OptionValues<typeof httpOptions>;

/** Returns undefined for a server on stdio. */
export function readPort(flags: HttpFlags): number | undefined {
  const port = wholeNumber(flags.http, "http", 0);
  const needsHttp = (["token-file", "no-token"] as const).find((name) => flags[name] !== undefined);
  if (port === undefined && needsHttp !== undefined) {
    throw usageError(`--${needsHttp} needs --http`, "A server on stdio has one client.");
  }
  return port;
}

/** Returns the token for HTTP requests: the given one, or that of an environment variable, or our own in the state
 *  directory, which is created at the first start and then reused. */
export async function findToken(
  { options, cwd, env, output }: Caller & { readonly options: HttpFlags },
  own: { readonly file: string; readonly variable?: string },
): Promise<string | undefined> {
  const file = options["token-file"];
  if (options["no-token"] === true) {
    if (file === undefined) return undefined;
    throw usageError("--token-file and --no-token cannot be used together", "Leave one of them out.");
  }
  const { checkToken, ownToken, readToken } = await import("../host/processes/loopback-server.ts");
  if (file !== undefined) return readToken(resolve(cwd, file));
  const given = own.variable && env[own.variable];
  if (own.variable && given) return checkToken(given, own.variable);
  const path = join(stateDirectory(env), own.file);
  const token = await ownToken(path, env);
  output.note(`the token is in ${shownPath(path, cwd, env)}; clients send "Authorization: Bearer TOKEN"`);
  return token;
}
