/** Text from the web, within bounds of time, size and redirects. What goes wrong is data: a page may be gone on any day. Each request
 *  goes to an address that was looked at before, so that neither a name nor a redirect leads into this network. */
import type { IncomingMessage } from "node:http";
import type { LookupFunction } from "node:net";
import type { Readable } from "node:stream";
import { type FetchFormat, loadHtmlConverter } from "../../text/index.ts";
import { decodeBody } from "./decode-body.ts";
import { type HostAddress, type ResolveOptions, resolveHost } from "./public-host.ts";

export type FetchedText =
  | {
      /** LF line ends; converted as the format asks. */
      readonly text: string;
      /** More came than is read; cut at a line. */
      readonly truncated: boolean;
      readonly warning: string | undefined;
    }
  | { readonly reason: string };

export interface FetchOptions extends ResolveOptions {
  readonly format: FetchFormat;
  readonly selector?: string | undefined;
  /** For the answer as a whole; 10 seconds unless given. */
  readonly timeoutMs?: number | undefined;
}

/** Of the answer's body, before it is converted. */
export const maxFetchBytes: number = 1024 * 1024;
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
  /** After redirects. */
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
    if ("reason" in opened)
      return count === 0 ? opened : { reason: `redirected to ${url}: ${opened.reason}` };
    const { response } = opened;
    const { statusCode: status = 0 } = response;
    if (status >= 200 && status < 300) return { response, url };
    response.destroy();
    const { location } = response.headers;
    if (status < 300 || status >= 400 || location === undefined) return { reason: `HTTP ${status}` };
    if (!URL.canParse(location, url)) return { reason: `redirected to "${location}", which is no address` };
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

/** Not by `fetch`, which looks the name up once more. */
async function request(
  url: URL,
  signal: AbortSignal,
  addresses: readonly HostAddress[],
): Promise<IncomingMessage> {
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
  if (!URL.canParse(address)) return "is no address: write it whole, with https://";
  const { protocol, username, password } = new URL(address);
  if (protocol !== "http:" && protocol !== "https:")
    return `only http and https are fetched, not ${protocol}`;
  return username + password === ""
    ? undefined
    : "has a user name or password in it: fetch public pages only";
}

/** The body as it was before it was packed for the way. */
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
    return { reason: `is encoded as ${encoding}, which is not read` };
  }
  const unpacker = unpackers[encoding as keyof typeof unpackers]();
  response.on("error", (error) => unpacker.destroy(error));
  unpacker.on("close", () => response.destroy());
  return response.pipe(unpacker);
}

async function readBody(stream: Readable): Promise<{ bytes: Buffer; truncated: boolean }> {
  const chunks: Buffer[] = [];
  let size = 0;
  // Leaving the loop ends the rest of the answer.
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
  if (converted.trim() === "") return { reason: "the page holds no text" };
  return { text: converted, truncated, warning };
}

const unpackable = "is not what its encoding says";
const networkReasons: Readonly<Record<string, string>> = {
  ENOTFOUND: "its host is not known: is this machine online?",
  EAI_AGAIN: "its host cannot be looked up: is this machine online?",
  ECONNREFUSED: "the connection is refused",
  ECONNRESET: "the connection broke",
  EHOSTUNREACH: "its host cannot be reached",
  ENETUNREACH: "its network cannot be reached",
  ETIMEDOUT: "the connection takes too long",
  Z_DATA_ERROR: unpackable,
  Z_BUF_ERROR: unpackable,
  CERT_HAS_EXPIRED: "its certificate has expired",
  DEPTH_ZERO_SELF_SIGNED_CERT: "its certificate is not trusted",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "its certificate is not trusted",
};

function networkReason(error: unknown): string {
  if (!(error instanceof Error)) throw error;
  // Where each address of a host fails, the error holds one for each.
  const cause = error instanceof AggregateError ? (error.errors[0] as Error) : error;
  const code = "code" in cause ? String(cause.code) : "";
  // So Node names what Brotli finds wrong.
  if (code.startsWith("ERR__ERROR_")) return unpackable;
  return networkReasons[code] ?? `the fetch failed (${code || cause.message})`;
}
