/** Text from the web, within bounds of time, size and redirects. What goes wrong is data: a page may be gone on any day. */
import { type FetchFormat, loadHtmlConverter } from "../../text/index.ts";
import { decodeBody } from "./decode-body.ts";

export type FetchedText =
  | {
      /** LF line ends; converted as the format asks. */
      readonly text: string;
      /** More came than is read; cut at a line. */
      readonly truncated: boolean;
      readonly warning: string | undefined;
    }
  | { readonly reason: string };

export interface FetchOptions {
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
    const answer = await followRedirects(address, signal);
    if ("reason" in answer) return answer;
    const body = await readBody(answer.response);
    const decoded = decodeBody(body, answer.response.headers.get("content-type"));
    if ("reason" in decoded) return decoded;
    return await convert({ ...decoded, truncated: body.truncated, url: answer.url }, options);
  } catch (error) {
    return { reason: signal.aborted ? `no answer within ${timeoutMs / 1000} s` : networkReason(error) };
  }
}

interface Answer {
  readonly response: Response;
  /** After redirects. */
  readonly url: string;
}

/** By hand, because the platform's own following allows twenty and tells nothing. */
async function followRedirects(address: string, signal: AbortSignal): Promise<Answer | { reason: string }> {
  let url = address;
  for (let count = 0; count <= mostRedirects; count++) {
    const problem = addressProblem(url);
    if (problem !== undefined) return { reason: count === 0 ? problem : `redirected to ${url}: ${problem}` };
    const response = await fetch(url, { redirect: "manual", signal, headers });
    if (response.ok) return { response, url };
    await response.body?.cancel();
    const location = response.headers.get("location");
    const isRedirect = response.status >= 300 && response.status < 400 && location !== null;
    if (!isRedirect) return { reason: `HTTP ${response.status}` };
    if (!URL.canParse(location, url)) return { reason: `redirected to "${location}", which is no address` };
    url = new URL(location, url).href;
  }
  return { reason: `more than ${mostRedirects} redirects` };
}

const headers: Readonly<Record<string, string>> = {
  "user-agent": "plimsoll",
  accept: "text/markdown, text/plain;q=0.9, text/html;q=0.8, */*;q=0.5",
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

async function readBody(response: Response): Promise<{ bytes: Buffer; truncated: boolean }> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  if (response.body === null) return { bytes: Buffer.alloc(0), truncated: false };
  // Leaving the loop cancels the rest of the answer.
  for await (const chunk of response.body) {
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

const networkReasons: Readonly<Record<string, string>> = {
  ENOTFOUND: "its host is not known: is this machine online?",
  EAI_AGAIN: "its host cannot be looked up: is this machine online?",
  ECONNREFUSED: "the connection is refused",
  ECONNRESET: "the connection broke",
  EHOSTUNREACH: "its host cannot be reached",
  ENETUNREACH: "its network cannot be reached",
  UND_ERR_SOCKET: "the connection broke",
  UND_ERR_CONNECT_TIMEOUT: "the connection takes too long",
  CERT_HAS_EXPIRED: "its certificate has expired",
  DEPTH_ZERO_SELF_SIGNED_CERT: "its certificate is not trusted",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "its certificate is not trusted",
};

/** `fetch` says "fetch failed" and hides why in a cause. */
function networkReason(error: unknown): string {
  if (!(error instanceof Error)) throw error;
  const cause = error.cause instanceof Error ? error.cause : error;
  const code = "code" in cause ? String(cause.code) : "";
  return networkReasons[code] ?? `the fetch failed (${code || cause.message})`;
}
