/** Fetches text from the web, with limits on time, size and redirects. Failures are data: a page may be gone any
 *  day. Each request goes to an address that was checked before, so neither a name nor a redirect leads into this
 *  network. */
import type { IncomingMessage } from "node:http";
import type { LookupFunction } from "node:net";
import type { Readable } from "node:stream";
import { truncateBytes } from "../../core/text/index.ts";
import type { FetchFormat } from "../packs/index.ts";
import { type HostAddress, type ResolvedHost, type ResolveOptions, resolveHost } from "./public-host.ts";

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
const maxRedirects = 5;

export async function fetchText(address: string, options: FetchOptions): Promise<FetchedText> {
  const { timeoutMs = 10_000 } = options;
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const answer = await followRedirects(address, signal, options);
    if ("reason" in answer) return answer;
    const stream = await unpack(answer.response);
    if ("reason" in stream) return stream;
    const chunks: Buffer[] = [];
    let size = 0;
    // Leaving the loop drops the rest of the answer.
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      size += chunk.length;
      if (size > maxFetchBytes) break;
    }
    const truncated = size > maxFetchBytes;
    const bytes = Buffer.concat(chunks).subarray(0, maxFetchBytes);
    const decoded = decodeBody({ bytes, truncated }, answer.response.headers["content-type"] ?? "");
    if ("reason" in decoded) return decoded;
    let [text, warning]: [string, string | undefined] = [decoded.text, undefined];
    const { format, selector } = options;
    if (decoded.isHtml && format !== "raw") {
      const { convertHtml } = await import("./convert-html.ts");
      ({ text, warning } = convertHtml(text, { format, selector, baseUrl: answer.url }));
    }
    if (text.trim() === "") return { reason: "the page has no text" };
    // Converted markup may be longer than the page.
    return { text: truncateBytes(text, maxFetchBytes).text, truncated, warning };
  } catch (error) {
    return { reason: signal.aborted ? `no answer within ${timeoutMs / 1000} s` : explainFailure(error) };
  }
}

/** Returns the answer and the address that gave it. */
async function followRedirects(
  address: string,
  signal: AbortSignal,
  options: ResolveOptions,
): Promise<{ readonly response: IncomingMessage; readonly url: string } | { reason: string }> {
  let url = address;
  for (let count = 0; count <= maxRedirects; count++) {
    const resolved = await resolveAddress(url, options);
    if ("reason" in resolved) return count === 0 ? resolved : { reason: `redirected to ${url}: ${resolved.reason}` };
    const response = await request(new URL(url), signal, resolved.addresses);
    const { statusCode: status = 0 } = response;
    if (status >= 200 && status < 300) return { response, url };
    response.destroy();
    const { location } = response.headers;
    if (status < 300 || status >= 400 || location === undefined) return { reason: `HTTP ${status}` };
    if (!URL.canParse(location, url)) return { reason: `redirected to "${location}", which is not an address` };
    url = new URL(location, url).href;
  }
  return { reason: `more than ${maxRedirects} redirects` };
}

async function resolveAddress(address: string, options: ResolveOptions): Promise<ResolvedHost> {
  if (!URL.canParse(address)) return { reason: "is not an address: write it in full, with https://" };
  const { protocol, username, password, hostname } = new URL(address);
  if (protocol !== "http:" && protocol !== "https:") {
    return { reason: `only http and https are fetched, not ${protocol}` };
  }
  if (username + password === "") return resolveHost(hostname, options);
  return { reason: "contains a user name or password: only public pages are fetched" };
}

/** `fetch` is not used, because it would look the name up again. */
async function request(url: URL, signal: AbortSignal, addresses: readonly HostAddress[]): Promise<IncomingMessage> {
  const client = await (url.protocol === "https:" ? import("node:https") : import("node:http"));
  const lookup: LookupFunction = (_, { all }, callback) => {
    if (all) return callback(null, [...addresses]);
    const [first] = addresses;
    callback(null, first?.address ?? "", first?.family);
  };
  const headers = {
    "user-agent": "plimsoll",
    accept: "text/markdown, text/plain;q=0.9, text/html;q=0.8, */*;q=0.5",
    "accept-encoding": "gzip, br",
  };
  return new Promise((resolve, reject) => {
    const call = client.request(url, { headers, signal, lookup, agent: false });
    call.on("response", resolve).on("error", reject).end();
  });
}

/** Returns the body without its transfer encoding. */
async function unpack(response: IncomingMessage): Promise<Readable | { reason: string }> {
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

function explainFailure(error: unknown): string {
  if (!(error instanceof Error)) throw error;
  // If every address of a host fails, the error holds one error for each.
  const cause = error instanceof AggregateError ? (error.errors[0] as Error) : error;
  const code = "code" in cause ? String(cause.code) : "";
  // Node's name for errors of Brotli.
  if (code.startsWith("ERR__ERROR_")) return unpackable;
  return networkReasons[code] ?? `the fetch failed (${code || cause.message})`;
}

/** Returns the body of an answer as text. Uses the answer's charset, else the page's, else UTF-8. Refuses bytes that are
 *  invalid in it, and never replaces them. */
function decodeBody(
  { bytes, truncated }: { readonly bytes: Buffer; readonly truncated: boolean },
  contentType: string,
): { readonly text: string; readonly isHtml: boolean } | { readonly reason: string } {
  const [type = "", ...parameters] = contentType.toLowerCase().split(";");
  const mediaType = type.trim();
  // The type says nothing about the content.
  const isVague = ["", "application/octet-stream", "binary/octet-stream"].includes(mediaType);
  if (!isVague && !textType.test(mediaType)) return { reason: `is ${mediaType}, which is not text` };
  const start = bytes.subarray(0, 1024).toString("latin1");
  const isHtml = ["text/html", "application/xhtml+xml"].includes(mediaType) || (isVague && htmlStart.test(start));
  const tags = isHtml ? (start.match(/<meta[^>]+>/gi) ?? []) : [];
  const [charset = "utf-8"] = [parameters.join(";"), ...tags].flatMap(
    (written) => /charset\s*=\s*["']?([\w.:-]+)/i.exec(written)?.[1]?.toLowerCase() ?? [],
  );
  let text: string;
  try {
    // The decoder waits for the rest of a character that was cut, so it is left out.
    text = new TextDecoder(charset, { fatal: true }).decode(bytes, { stream: truncated });
  } catch {
    return { reason: `is not valid ${charset === "utf-8" ? "UTF-8" : `text in ${charset}`}` };
  }
  if (text.includes("\0")) return { reason: "is binary data, not text" };
  text = text.replace(/\r\n?/g, "\n");
  const lineEnd = truncated ? text.lastIndexOf("\n") : -1;
  return { text: lineEnd === -1 ? text : text.slice(0, lineEnd + 1), isHtml };
}

const textType = /^text\/|[/+](json|xml|yaml|x-yaml|toml|markdown|javascript|ld\+json|x-ndjson|graphql|sql)$/;
const htmlStart = /^\s*(?:<\?xml[^>]*>\s*)?(?:<!--[\s\S]{0,400}?-->\s*)?<(?:!doctype\s+html|html)[\s>]/i;
