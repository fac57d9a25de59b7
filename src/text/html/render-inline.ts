/** What flows within a line: words, emphasis, code and links. */
import type { HtmlElement, HtmlNode } from "./parse-html.ts";

export interface InlineOptions {
  readonly format: "text" | "markdown";
  readonly base: string | undefined;
}

export function renderInline(nodes: readonly HtmlNode[], options: InlineOptions): string {
  const text = nodes.map((node) => renderNode(node, options)).join("");
  return text
    .replace(/[ \t]+/g, " ")
    .replace(/ ?\u2028 ?/g, "\n")
    .trim();
}

/** Not for readers. */
const droppedElements = new Set(
  `script style noscript template svg math head title iframe object embed canvas audio video input select textarea button
   option noembed noframes map dialog`.split(/\s+/),
);

export function isDropped({ tag, attributes }: HtmlElement): boolean {
  return droppedElements.has(tag) || attributes.has("hidden") || attributes.get("aria-hidden") === "true";
}

/** Text as written, with line breaks where the page has them. */
export function plainText(node: HtmlNode): string {
  if (typeof node === "string") return node;
  if (isDropped(node)) return "";
  return node.tag === "br" ? "\n" : node.children.map(plainText).join("");
}

function renderNode(node: HtmlNode, options: InlineOptions): string {
  // A comment that the page only shows must not become one.
  if (typeof node === "string") return node.replace(/\s+/g, " ").replaceAll("<!--", "&lt;!--");
  if (isDropped(node)) return "";
  // Stands for a line break until the white space around it is known.
  if (node.tag === "br") return "\u2028";
  if (node.tag === "img") return node.attributes.get("alt")?.replace(/\s+/g, " ") ?? "";
  if (node.tag === "code" || node.tag === "kbd" || node.tag === "samp") return renderCodeSpan(node, options);
  const inner = node.children.map((child) => renderNode(child, options)).join("");
  // The mark beside a heading that links to it.
  if (node.attributes.get("href")?.startsWith("#") && !/[\p{L}\p{N}]/u.test(inner)) return "";
  if (options.format === "text") return inner;
  if (node.tag === "a") return renderLink(inner, node.attributes.get("href"), options.base);
  const mark = emphasis.get(node.tag);
  return mark === undefined ? inner : wrapped(inner, mark, mark);
}

const emphasis: ReadonlyMap<string, string> = new Map([
  ["strong", "**"],
  ["b", "**"],
  ["em", "*"],
  ["i", "*"],
  ["del", "~~"],
  ["s", "~~"],
]);

function renderCodeSpan(element: HtmlElement, { format }: InlineOptions): string {
  const code = plainText(element).replace(/\s+/g, " ");
  if (format === "text" || code.trim() === "") return code;
  const mark = code.includes("`") ? "``" : "`";
  return mark === "``" ? `${mark} ${code.trim()} ${mark}` : wrapped(code, mark, mark);
}

/** Only links that lead somewhere from anywhere. */
function renderLink(text: string, href: string | undefined, base: string | undefined): string {
  if (href === undefined || href.startsWith("#") || text.trim() === "" || !URL.canParse(href, base))
    return text;
  const url = new URL(href, base);
  if (!["http:", "https:", "mailto:"].includes(url.protocol)) return text;
  return wrapped(
    text.replaceAll("\u2028", " "),
    "[",
    `](${url.href.replaceAll("(", "%28").replaceAll(")", "%29")})`,
  );
}

/** White space stays outside of the marks: `** a **` is no emphasis. */
function wrapped(text: string, before: string, after: string): string {
  const inner = text.trim();
  if (inner === "") return text;
  const [start, end] = [text.slice(0, text.indexOf(inner)), text.slice(text.indexOf(inner) + inner.length)];
  return `${start}${before}${inner}${after}${end}`;
}
