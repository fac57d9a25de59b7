/** A forgiving HTML reader: any text gives a tree, in one pass and with bounded depth. Not for browsers, but for pages of documentation. */
import { decodeEntities } from "./decode-entities.ts";

export type HtmlNode = HtmlElement | string;

export interface HtmlElement {
  readonly tag: string;
  readonly attributes: ReadonlyMap<string, string>;
  readonly children: HtmlNode[];
}

export function parseHtml(html: string): HtmlElement {
  const root = createElement("#document");
  const open: HtmlElement[] = [root];
  let at = 0;
  while (at < html.length) {
    const tagStart = nextTag(html, at);
    if (tagStart > at) open.at(-1)!.children.push(decodeEntities(html.slice(at, tagStart)));
    if (tagStart === html.length) break;
    at = readMarkup(html, tagStart, open);
  }
  return root;
}

/** Deeper elements are flattened: nobody nests so deep by hand, and whoever walks the tree may recurse. */
const mostDepth = 64;

function createElement(tag: string, attributes: ReadonlyMap<string, string> = new Map()): HtmlElement {
  return { tag, attributes, children: [] };
}

/** A `<` that starts no markup is text. */
function nextTag(html: string, from: number): number {
  for (let at = html.indexOf("<", from); at !== -1; at = html.indexOf("<", at + 1)) {
    if (/[a-z/!?]/i.test(html[at + 1] ?? "")) return at;
  }
  return html.length;
}

/** Reads what starts at `at` and returns where it ends. */
function readMarkup(html: string, at: number, open: HtmlElement[]): number {
  if (html.startsWith("<!--", at)) return after(html, "-->", at + 2);
  if (html[at + 1] === "!" || html[at + 1] === "?") return after(html, ">", at);
  const end = endOfTag(html, at);
  const isCloser = html[at + 1] === "/";
  const inner = html.slice(at + (isCloser ? 2 : 1), end - 1);
  const tag = /^[^\s/>]*/.exec(inner)![0].toLowerCase();
  if (isCloser) {
    closeElement(tag, open);
    return end;
  }
  const element = createElement(tag, readAttributes(inner.slice(tag.length)));
  closeImplied(tag, open);
  open.at(-1)!.children.push(element);
  if (rawElements.has(tag)) return readRaw(html, end, element);
  if (!voidElements.has(tag) && !inner.endsWith("/") && open.length < mostDepth) open.push(element);
  return end;
}

function after(html: string, mark: string, from: number): number {
  const found = html.indexOf(mark, from);
  return found === -1 ? html.length : found + mark.length;
}

/** Past the `>` that no quoted value holds. A tag that never ends takes the rest along, as in a browser. */
function endOfTag(html: string, start: number): number {
  for (let at = start + 1; at < html.length; at++) {
    if (html[at] === ">") return at + 1;
    if (html[at] !== "=") continue;
    const value = skipSpace(html, at + 1);
    const isQuoted = html[value] === '"' || html[value] === "'";
    const close = isQuoted ? html.indexOf(html[value]!, value + 1) : -1;
    at = close === -1 ? value - 1 : close;
  }
  return html.length;
}

function skipSpace(html: string, from: number): number {
  let at = from;
  while (html[at] === " " || html[at] === "\n" || html[at] === "\t" || html[at] === "\r") at++;
  return at;
}

function readAttributes(written: string): ReadonlyMap<string, string> {
  const attributes = new Map<string, string>();
  for (const [, name = "", double, single, bare] of written.matchAll(attributePattern)) {
    const key = name.toLowerCase();
    if (!attributes.has(key)) attributes.set(key, decodeEntities(double ?? single ?? bare ?? ""));
  }
  return attributes;
}

const attributePattern = /([^\s"'=/>]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?/g;

const voidElements = new Set(
  "area base br col embed hr img input link meta param source track wbr".split(" "),
);
/** Their content is no markup. */
const rawElements = new Set("script style textarea title iframe noembed noframes xmp".split(" "));

function readRaw(html: string, from: number, element: HtmlElement): number {
  const closer = new RegExp(`</${element.tag}[\\s/>]`, "gi");
  closer.lastIndex = from;
  const end = closer.exec(html)?.index ?? html.length;
  element.children.push(html.slice(from, end));
  return end === html.length ? end : after(html, ">", end);
}

/** An opening tag ends these when they stand open, up to the element that holds them. */
const impliedClosers = new Map<string, ImpliedCloser>(
  Object.entries({
    li: { closes: ["li"], within: ["ul", "ol", "menu"] },
    dt: { closes: ["dt", "dd"], within: ["dl"] },
    dd: { closes: ["dt", "dd"], within: ["dl"] },
    tr: { closes: ["tr"], within: ["table"] },
    td: { closes: ["td", "th"], within: ["tr", "table"] },
    th: { closes: ["td", "th"], within: ["tr", "table"] },
    tbody: { closes: ["thead", "tbody"], within: ["table"] },
    tfoot: { closes: ["thead", "tbody"], within: ["table"] },
  }),
);

interface ImpliedCloser {
  readonly closes: readonly string[];
  readonly within: readonly string[];
}

const endsParagraph = new Set(
  `address article aside blockquote details div dl fieldset figure footer form h1 h2 h3 h4 h5 h6 header hr main menu nav ol p pre
   section table ul`.split(/\s+/),
);

function closeImplied(tag: string, open: HtmlElement[]): void {
  if (endsParagraph.has(tag) && open.at(-1)!.tag === "p") open.pop();
  const rule = impliedClosers.get(tag);
  if (rule === undefined) return;
  for (let index = open.length - 1; index > 0; index--) {
    const each = open[index]!.tag;
    if (rule.within.includes(each)) return;
    if (rule.closes.includes(each)) {
      open.length = index;
      return;
    }
  }
}

/** Closes the nearest of that name and all within; one that nobody opened is ignored. */
function closeElement(tag: string, open: HtmlElement[]): void {
  const index = open.findLastIndex((element) => element.tag === tag);
  if (index > 0) open.length = index;
}
