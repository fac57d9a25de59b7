/** Fetches text from the web, with limits on time, size and redirects. Failures are data: a page may be gone any
 *  day. Each request goes to an address that was checked before, so neither a name nor a redirect leads into this
 *  network. */
import type { IncomingMessage } from "node:http";
import type { LookupFunction } from "node:net";
import type { Readable } from "node:stream";
import { type FetchFormat, loadHtmlConverter, truncateBytes } from "../../core/text/index.ts";
import { type HostAddress, type ResolveOptions, resolveHost } from "./public-host.ts";

export type FetchedText =
  | {
      /** With LF line ends, converted as the format requires. */
      readonly text: string;
      /** The answer was longer than the limit and was cut at a line. */
      readonly truncated: boolean;
      readonly warning: string | undefined;
    }
  | { readonly reason: string };

export interface FetchOptions extends ResolveOptions {
  readonly format: FetchFormat;
  readonly selector?: string | undefined;
  /** The time limit of the whole answer. @default 10_000 */
  readonly timeoutMs?: number | undefined;
}

/** The limit of the answer's body, before it is converted. */
const maxFetchBytes: number = 1024 * 1024;
const mostRedirects = 5;
const defaultTimeoutMs = 10_000;

export async function fetchText(address: string, options: FetchOptions): Promise<FetchedText> {
  const { timeoutMs = defaultTimeoutMs } = options;
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const answer = await followRedirects(address, signal, options);
    if ("reason" in answer) return answer;
    const stream = await decoded(answer.response);
    if ("reason" in stream) return stream;
    const body = await readBody(stream);
    const text = decodeBody(body, answer.response.headers["content-type"] ?? null);
    if ("reason" in text) return text;
    return await convert({ ...text, truncated: body.truncated, url: answer.url }, options);
  } catch (error) {
    return { reason: signal.aborted ? `no answer within ${timeoutMs / 1000} s` : networkReason(error) };
  }
}

interface Answer {
  readonly response: IncomingMessage;
  /** The address after redirects. */
  readonly url: string;
}

async function followRedirects(
  address: string,
  signal: AbortSignal,
  options: ResolveOptions,
): Promise<Answer | { reason: string }> {
  let url = address;
  for (let count = 0; count <= mostRedirects; count++) {
    const opened = await open(url, signal, options);
    if ("reason" in opened) return count === 0 ? opened : { reason: `redirected to ${url}: ${opened.reason}` };
    const { response } = opened;
    const { statusCode: status = 0 } = response;
    if (status >= 200 && status < 300) return { response, url };
    response.destroy();
    const { location } = response.headers;
    if (status < 300 || status >= 400 || location === undefined) return { reason: `HTTP ${status}` };
    if (!URL.canParse(location, url)) return { reason: `redirected to "${location}", which is not an address` };
    url = new URL(location, url).href;
  }
  return { reason: `more than ${mostRedirects} redirects` };
}

async function open(
  address: string,
  signal: AbortSignal,
  options: ResolveOptions,
): Promise<{ response: IncomingMessage } | { reason: string }> {
  const problem = addressProblem(address);
  if (problem !== undefined) return { reason: problem };
  const url = new URL(address);
  const resolved = await resolveHost(url.hostname, options);
  if ("reason" in resolved) return resolved;
  return { response: await request(url, signal, resolved.addresses) };
}

/** `fetch` is not used, because it would look the name up again. */
async function request(url: URL, signal: AbortSignal, addresses: readonly HostAddress[]): Promise<IncomingMessage> {
  const client = await (url.protocol === "https:" ? import("node:https") : import("node:http"));
  const lookup: LookupFunction = (_, { all }, callback) => {
    if (all) return callback(null, [...addresses]);
    const [first] = addresses;
    callback(null, first?.address ?? "", first?.family);
  };
  return new Promise((resolve, reject) => {
    const call = client.request(url, { headers, signal, lookup, agent: false });
    call.on("response", resolve).on("error", reject).end();
  });
}

const headers: Readonly<Record<string, string>> = {
  "user-agent": "plimsoll",
  accept: "text/markdown, text/plain;q=0.9, text/html;q=0.8, */*;q=0.5",
  "accept-encoding": "gzip, br",
};

function addressProblem(address: string): string | undefined {
  if (!URL.canParse(address)) return "is not an address: write it in full, with https://";
  const { protocol, username, password } = new URL(address);
  if (protocol !== "http:" && protocol !== "https:") return `only http and https are fetched, not ${protocol}`;
  return username + password === "" ? undefined : "contains a user name or password: only public pages are fetched";
}

/** Returns the body without its transfer encoding. */
async function decoded(response: IncomingMessage): Promise<Readable | { reason: string }> {
  const encoding = (response.headers["content-encoding"] ?? "identity").trim().toLowerCase();
  if (encoding === "identity" || encoding === "") return response;
  const { createBrotliDecompress, createUnzip } = await import("node:zlib");
  const unpackers = {
    gzip: createUnzip,
    "x-gzip": createUnzip,
    deflate: createUnzip,
    br: createBrotliDecompress,
  };
  if (!Object.hasOwn(unpackers, encoding)) {
    response.destroy();
    return { reason: `is encoded as ${encoding}, which is not supported` };
  }
  const unpacker = unpackers[encoding as keyof typeof unpackers]();
  response.on("error", (error) => unpacker.destroy(error));
  unpacker.on("close", () => response.destroy());
  return response.pipe(unpacker);
}

async function readBody(stream: Readable): Promise<{ bytes: Buffer; truncated: boolean }> {
  const chunks: Buffer[] = [];
  let size = 0;
  // Leaving the loop drops the rest of the answer.
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > maxFetchBytes) break;
  }
  return { bytes: Buffer.concat(chunks).subarray(0, maxFetchBytes), truncated: size > maxFetchBytes };
}

interface Decoded {
  readonly text: string;
  readonly isHtml: boolean;
  readonly truncated: boolean;
  readonly url: string;
}

async function convert(
  { text, isHtml, truncated, url }: Decoded,
  { format, selector }: FetchOptions,
): Promise<FetchedText> {
  let [converted, warning]: [string, string | undefined] = [text, undefined];
  if (isHtml && format !== "raw") {
    const { convertHtml } = await loadHtmlConverter();
    ({ text: converted, warning } = convertHtml(text, { format, selector, baseUrl: url }));
  }
  if (converted.trim() === "") return { reason: "the page has no text" };
  // Converted markup may be longer than the page.
  return { text: truncateBytes(converted, maxFetchBytes).text, truncated, warning };
}

const unpackable = "does not match its stated encoding";
const networkReasons: Readonly<Record<string, string>> = {
  ENOTFOUND: "its host is unknown. Is this machine online?",
  EAI_AGAIN: "its host cannot be looked up. Is this machine online?",
  ECONNREFUSED: "the connection was refused",
  ECONNRESET: "the connection was lost",
  EHOSTUNREACH: "its host cannot be reached",
  ENETUNREACH: "its network cannot be reached",
  ETIMEDOUT: "the connection timed out",
  Z_DATA_ERROR: unpackable,
  Z_BUF_ERROR: unpackable,
  CERT_HAS_EXPIRED: "its certificate has expired",
  DEPTH_ZERO_SELF_SIGNED_CERT: "its certificate is not trusted",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "its certificate is not trusted",
};

function networkReason(error: unknown): string {
  if (!(error instanceof Error)) throw error;
  // If every address of a host fails, the error holds one error for each.
  const cause = error instanceof AggregateError ? (error.errors[0] as Error) : error;
  const code = "code" in cause ? String(cause.code) : "";
  // Node's name for errors of Brotli.
  if (code.startsWith("ERR__ERROR_")) return unpackable;
  return networkReasons[code] ?? `the fetch failed (${code || cause.message})`;
}

/** The body of an answer as text. */
type DecodedBody = { readonly text: string; readonly isHtml: boolean } | { readonly reason: string };

/** Uses the answer's charset, else the page's, else UTF-8. Refuses bytes that are invalid in it, and never replaces
 *  them. */
function decodeBody(
  { bytes, truncated }: { readonly bytes: Buffer; readonly truncated: boolean },
  contentType: string | null,
): DecodedBody {
  const [type = "", ...parameters] = (contentType ?? "").toLowerCase().split(";");
  const mediaType = type.trim();
  if (!isText(mediaType)) return { reason: `is ${mediaType}, which is not text` };
  const isHtml = htmlTypes.includes(mediaType) || (isVague(mediaType) && looksLikeHtml(bytes));
  const charset = charsetOf(parameters.join(";")) ?? (isHtml ? metaCharset(bytes) : undefined) ?? "utf-8";
  const decoded = decode(bytes, { charset, truncated });
  if (decoded === undefined) return { reason: `is not valid ${charset === "utf-8" ? "UTF-8" : `text in ${charset}`}` };
  if (decoded.includes("\0")) return { reason: "is binary data, not text" };
  const text = decoded.replace(/\r\n?/g, "\n");
  return { text: truncated ? wholeLines(text) : text, isHtml };
}

const htmlTypes = ["text/html", "application/xhtml+xml"];

/** The type says nothing about the content. */
function isVague(type: string): boolean {
  return type === "" || type === "application/octet-stream" || type === "binary/octet-stream";
}

function isText(type: string): boolean {
  return (
    isVague(type) ||
    type.startsWith("text/") ||
    /[/+](json|xml|yaml|x-yaml|toml|markdown|javascript|ld\+json|x-ndjson|graphql|sql)$/.test(type)
  );
}

function looksLikeHtml(bytes: Buffer): boolean {
  return /^\s*(?:<\?xml[^>]*>\s*)?(?:<!--[\s\S]{0,400}?-->\s*)?<(?:!doctype\s+html|html)[\s>]/i.test(
    bytes.subarray(0, 1024).toString("latin1"),
  );
}

function charsetOf(written: string): string | undefined {
  return /charset\s*=\s*["']?([\w.:-]+)/i.exec(written)?.[1]?.toLowerCase();
}

function metaCharset(bytes: Buffer): string | undefined {
  const tags =
    bytes
      .subarray(0, 1024)
      .toString("latin1")
      .match(/<meta[^>]+>/gi) ?? [];
  return tags.map(charsetOf).find((charset) => charset !== undefined);
}

function decode(bytes: Buffer, { charset, truncated }: { charset: string; truncated: boolean }): string | undefined {
  try {
    // The decoder waits for the rest of a character that was cut, so it is left out.
    return new TextDecoder(charset, { fatal: true }).decode(bytes, { stream: truncated });
  } catch {
    return undefined;
  }
}

function wholeLines(text: string): string {
  const lineEnd = text.lastIndexOf("\n");
  return lineEnd === -1 ? text : text.slice(0, lineEnd + 1);
}
