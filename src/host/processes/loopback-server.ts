/** Servers for programs of this machine: on loopback only, with a token, and closed to pages of other sites. */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { stat } from "node:fs/promises";
import type { IncomingMessage, Server } from "node:http";
import type { AddressInfo } from "node:net";
import { parse } from "node:path";
import { ContextError } from "../../core/errors.ts";
import { formatNumber } from "../../core/text/index.ts";
import type { Environment } from "../directories.ts";
import { changeFile } from "../files/change-file.ts";
import { readTextFile } from "../files/read-text.ts";

export const loopback = "127.0.0.1";

/** Listens on the port, or on a free one for 0. Returns the port. */
export async function listenOnLoopback(server: Server, port: number): Promise<number> {
  try {
    await once(server.listen(port, loopback), "listening");
    return (server.address() as AddressInfo).port;
  } catch (cause) {
    const reason = (cause as NodeJS.ErrnoException).code === "EADDRINUSE" ? "it is in use" : String(cause);
    throw new ContextError("usage", `cannot listen on port ${port}: ${reason}`, {
      hint: "Choose another port, or 0 for any free one.",
      cause,
    });
  }
}

/** Why a request is not answered. */
export interface RequestRefusal {
  readonly status: 401 | 403 | 413;
  readonly message: string;
}

/** Returns a function that finds out why a request must not be answered. */
export function createRequestGuard(options: {
  /** The token that each request must have as `Authorization: Bearer …`. Undefined if none is needed. */
  readonly token: string | undefined;
  readonly maxBodyBytes: number;
}): (request: IncomingMessage) => RequestRefusal | undefined {
  const mayAsk = createTokenCheck(options.token);
  return (request) => {
    if (!isLocal(request)) return { status: 403, message: "The server accepts requests from this machine only." };
    if (!mayAsk(request)) {
      return { status: 401, message: "The request needs the server's token: Authorization: Bearer TOKEN." };
    }
    const length = Number(request.headers["content-length"] ?? 0);
    return length > options.maxBodyBytes ? refuseSize(options.maxBodyBytes) : undefined;
  };
}

/** A page of another site, open in a browser of this machine, can reach the port too. Its Origin reveals it, or after a
 *  DNS rebinding its Host. */
function isLocal({ headers }: IncomingMessage): boolean {
  const { host, origin } = headers;
  return isLocalUrl(`http://${host ?? ""}`) && (origin === undefined || isLocalUrl(origin));
}

function isLocalUrl(text: string): boolean {
  return URL.canParse(text) && ["127.0.0.1", "localhost", "[::1]"].includes(new URL(text).hostname);
}

/** Other users of this machine can reach the port too. The comparison always takes the same time. */
function createTokenCheck(token: string | undefined): (request: IncomingMessage) => boolean {
  if (token === undefined) return () => true;
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  const wanted = digest(token);
  return ({ headers }) => {
    const [, given = ""] = /^Bearer +(\S+) *$/i.exec(headers.authorization ?? "") ?? [];
    return timingSafeEqual(digest(given), wanted);
  };
}

function refuseSize(maxBytes: number): RequestRefusal {
  return { status: 413, message: `A request has at most ${formatNumber(maxBytes)} bytes.` };
}

/** Yields the body up to a limit. A body without a known length may never end. */
export async function* limitBody(
  request: AsyncIterable<Buffer>,
  maxBytes: number,
  stop: (refusal: RequestRefusal) => void,
): AsyncGenerator<Buffer> {
  let length = 0;
  for await (const part of request) {
    length += part.length;
    if (length > maxBytes) {
      const refusal = refuseSize(maxBytes);
      stop(refusal);
      throw new Error(refusal.message);
    }
    yield part;
  }
}

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
