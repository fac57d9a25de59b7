/** The body of an answer as text. */

export type DecodedBody = { readonly text: string; readonly isHtml: boolean } | { readonly reason: string };

/** By the answer's own charset, else the page's, else UTF-8. Bytes that are no text in it are refused, never replaced. */
export function decodeBody(
  { bytes, truncated }: { readonly bytes: Buffer; readonly truncated: boolean },
  contentType: string | null,
): DecodedBody {
  const [type = "", ...parameters] = (contentType ?? "").toLowerCase().split(";");
  const mediaType = type.trim();
  if (!isText(mediaType)) return { reason: `is ${mediaType}, which is no text` };
  const isHtml = htmlTypes.includes(mediaType) || (isVague(mediaType) && looksLikeHtml(bytes));
  const charset = charsetOf(parameters.join(";")) ?? (isHtml ? metaCharset(bytes) : undefined) ?? "utf-8";
  const decoded = decode(bytes, { charset, truncated });
  if (decoded === undefined)
    return { reason: `is no valid ${charset === "utf-8" ? "UTF-8" : `text in ${charset}`}` };
  if (decoded.includes("\0")) return { reason: "is binary data, no text" };
  const text = decoded.replace(/\r\n?/g, "\n");
  return { text: truncated ? wholeLines(text) : text, isHtml };
}

const htmlTypes = ["text/html", "application/xhtml+xml"];

/** Says nothing about the content. */
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

function decode(
  bytes: Buffer,
  { charset, truncated }: { charset: string; truncated: boolean },
): string | undefined {
  try {
    // A character that the cut went through is waited for, and so left out.
    return new TextDecoder(charset, { fatal: true }).decode(bytes, { stream: truncated });
  } catch {
    return undefined;
  }
}

function wholeLines(text: string): string {
  const lineEnd = text.lastIndexOf("\n");
  return lineEnd === -1 ? text : text.slice(0, lineEnd + 1);
}
