/** The token that clients of the HTTP server send. */
import { randomBytes } from "node:crypto";
import { stat } from "node:fs/promises";
import { parse } from "node:path";
import { ContextError } from "../../core/errors.ts";
import { changeFile, type Environment, readTextFile } from "../../host/index.ts";

/** Reads a token from a file that a person named. */
export async function readToken(file: string): Promise<string> {
  const read = await readTextFile(file);
  if (!("text" in read))
    throw new ContextError("unreadable_input", `the token cannot be read: ${read.reason}`, { file });
  return checkToken(read.text.trim(), "it", file);
}

/** Throws unless it is a usable token. `name` is what the message calls it. */
export function checkToken(token: string, name: string, file?: string): string {
  if (/^[\x21-\x7e]{16,}$/.test(token)) return token;
  throw new ContextError("usage", `${name} does not contain a token`, {
    file,
    hint: "Use 16 or more visible ASCII characters without spaces.",
  });
}

/** Reads or creates our own token. Replaces one that others could read. */
export async function ownToken(path: string, env: Environment): Promise<string> {
  const isOpen = process.platform !== "win32" && (((await stat(path).catch(() => undefined))?.mode ?? 0) & 0o077) !== 0;
  const fresh = randomBytes(32).toString("base64url");
  const { after } = await changeFile(path, {
    ...{ root: parse(path).root, env, isPrivate: true },
    change: (current) => (isOpen || !/^[\w-]{43}\n$/.test(current ?? "") ? `${fresh}\n` : current),
  });
  return after!.trim();
}
