/** Converts HTML to Markdown or to plain text. Keeps headings, paragraphs, lists, code, quotes, links and tables. */

import { type Token, Tokenizer, TokenizerMode } from "parse5";
import { oneLine } from "../../core/text/index.ts";

export interface ConvertOptions {
  readonly format: "text" | "markdown";
  readonly selector?: string | undefined;
  /** The address that relative links start from. */
  readonly baseUrl?: string | undefined;
}

export interface ConvertedHtml {
  readonly text: string;
  /** Why the selector did not apply. The text is the whole page then. */
  readonly warning: string | undefined;
}

export function convertHtml(html: string, { format, selector, baseUrl }: ConvertOptions): ConvertedHtml {
  const root = parseHtml(html);
  const selected = selector === undefined ? undefined : selectElements(root, selector);
  let warning: string | undefined;
  if (selector !== undefined && selected === undefined) {
    warning = `selector "${selector}" is not understood, the whole page is taken. Use tags, .class, #id and descendants.`;
  } else if (selected?.length === 0) {
    warning = `nothing on the page matches selector "${selector}", the whole page is taken`;
  }
  const elements = selected !== undefined && selected.length > 0 ? selected : [root];
  // A `<base>` element on the page overrides the page's own address.
  const written = selectElements(root, "base")?.[0]?.attributes.get("href");
  const base = written !== undefined && URL.canParse(written, baseUrl) ? new URL(written, baseUrl).href : baseUrl;
  const text = elements
    .map((element) => renderBlocks(element, { format, base }))
    .filter(Boolean)
    .join("\n\n");
  return { text: text === "" ? "" : `${text}\n`, warning };
}

interface InlineOptions {
  readonly format: "text" | "markdown";
  readonly base: string | undefined;
}

/** Renders the content of a line: words, emphasis, code and links. */
function renderInline(nodes: readonly HtmlNode[], options: InlineOptions): string {
  const text = nodes.map((node) => renderNode(node, options)).join("");
  return text
    .replace(/[ \t]+/g, " ")
    .replace(/ ?\u2028 ?/g, "\n")
    .trim();
}

/** Elements whose content a reader of the page does not see as text. */
const droppedElements = new Set(
  `script style noscript template svg math head title iframe object embed canvas audio video input select textarea button
   option noembed noframes map dialog`.split(/\s+/),
);

function isDropped({ tag, attributes }: HtmlElement): boolean {
  return droppedElements.has(tag) || attributes.has("hidden") || attributes.get("aria-hidden") === "true";
}

/** Returns the text as it is written, with the page's line breaks. */
function plainText(node: HtmlNode): string {
  if (typeof node === "string") return node;
  if (isDropped(node)) return "";
  return node.tag === "br" ? "\n" : node.children.map(plainText).join("");
}

function renderNode(node: HtmlNode, options: InlineOptions): string {
  // Text that looks like a comment on the page must not become a real comment.
  if (typeof node === "string") return node.replace(/\s+/g, " ").replaceAll("<!--", "&lt;!--");
  if (isDropped(node)) return "";
  // U+2028 marks the line break until renderInline has cleaned up the white space around it.
  if (node.tag === "br") return "\u2028";
  if (node.tag === "img") return node.attributes.get("alt")?.replace(/\s+/g, " ") ?? "";
  if (node.tag === "code" || node.tag === "kbd" || node.tag === "samp") return renderCodeSpan(node, options);
  const inner = node.children.map((child) => renderNode(child, options)).join("");
  // Drops the mark beside a heading that links to the heading.
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

/** Keeps links that work outside of the page; of other links only the text. */
function renderLink(text: string, href: string | undefined, base: string | undefined): string {
  if (href === undefined || href.startsWith("#") || text.trim() === "" || !URL.canParse(href, base)) return text;
  const url = new URL(href, base);
  if (!["http:", "https:", "mailto:"].includes(url.protocol)) return text;
  return wrapped(text.replaceAll("\u2028", " "), "[", `](${url.href.replaceAll("(", "%28").replaceAll(")", "%29")})`);
}

/** Leaves white space outside of the marks: Markdown does not read `** a **` as emphasis. */
function wrapped(text: string, before: string, after: string): string {
  const inner = text.trim();
  if (inner === "") return text;
  const [start, end] = [text.slice(0, text.indexOf(inner)), text.slice(text.indexOf(inner) + inner.length)];
  return `${start}${before}${inner}${after}${end}`;
}

/** Renders a pipe table with the first row as its head. In the text format, tabs separate the cells. Column and row spans are lost. */
function renderTable(table: HtmlElement, options: InlineOptions): string {
  const caption = elementsIn(table).find(({ tag }) => tag === "caption");
  const rows = elementsIn(table)
    .flatMap((child) => {
      if (child.tag === "tr") return [child];
      return ["thead", "tbody", "tfoot"].includes(child.tag) ? elementsIn(child).filter(({ tag }) => tag === "tr") : [];
    })
    .map((row) =>
      elementsIn(row)
        .filter(({ tag }) => tag === "td" || tag === "th")
        .map((cell) => oneLine(renderChildren(cell, options))),
    );
  const filled = rows.filter((row) => row.some((cell) => cell !== ""));
  const title = caption === undefined ? "" : oneLine(renderChildren(caption, options));
  const text = filled.map((row) => row.join("\t").trimEnd()).join("\n");
  return [title, options.format === "text" ? text : pipeTable(filled)].filter(Boolean).join("\n\n");
}

function elementsIn(element: HtmlElement): HtmlElement[] {
  return element.children.filter((child): child is HtmlElement => typeof child !== "string");
}

/** Does not fill up short rows: Markdown allows them, and one long row would make every other row as long. */
function pipeTable(rows: readonly (readonly string[])[]): string {
  const [head, ...body] = rows.map(
    (cells) => `| ${cells.map((cell) => cell.replace(/(?<!\\)\|/g, "\\|")).join(" | ")} |`,
  );
  return head === undefined ? "" : [head, `|${" --- |".repeat(rows[0]!.length)}`, ...body].join("\n");
}

/** Renders a tree as blocks of text with an empty line between them. */
function renderBlocks(element: HtmlElement, options: InlineOptions): string {
  const render = blockRenderers.get(element.tag);
  return render === undefined ? renderChildren(element, options) : render(element, options);
}

type Render = (element: HtmlElement, options: InlineOptions) => string;

/** Elements that start a new block. All others flow with the text around them. */
const containers = `#document html body main article section div header footer nav aside address figure figcaption details summary form
  fieldset dl dt dd center hgroup search tbody thead tfoot tr td th caption li`;

const blockRenderers: ReadonlyMap<string, Render> = new Map<string, Render>([
  ...containers.split(/\s+/).map((tag): [string, Render] => [tag, renderChildren]),
  ...[1, 2, 3, 4, 5, 6].map((level): [string, Render] => [
    `h${level}`,
    (element, options) => {
      const text = renderInline([element], options).replace(/\s+/g, " ").trim();
      return options.format === "text" || text === "" ? text : `${"#".repeat(Number(element.tag[1]))} ${text}`;
    },
  ]),
  ["p", renderChildren],
  ["ul", renderList],
  ["ol", renderList],
  ["menu", renderList],
  [
    "pre",
    (element, { format }) => {
      const code = plainText(element).replace(/^\n/, "").trimEnd();
      if (format === "text" || code === "") return code;
      const longest = (code.match(/`{3,}/g) ?? []).reduce((most, marks) => Math.max(most, marks.length), 2);
      const fence = "`".repeat(longest + 1);
      // Reads `language-ts` or `lang-ts` from the element's classes or from those of the `code` element inside.
      const inner = element.children.find(
        (child): child is HtmlElement => typeof child !== "string" && child.tag === "code",
      );
      const classes = [element, inner].map((each) => each?.attributes.get("class") ?? "").join(" ");
      const language = /(?:^|\s)lang(?:uage)?-([\w+#-]+)/.exec(classes)?.[1] ?? "";
      return `${fence}${language}\n${code}\n${fence}`;
    },
  ],
  [
    "blockquote",
    (element, options) => {
      const body = renderChildren(element, options);
      if (options.format === "text" || body === "") return body;
      return body
        .split("\n")
        .map((line) => (line === "" ? ">" : `> ${line}`))
        .join("\n");
    },
  ],
  ["table", renderTable],
  ["hr", (_, { format }) => (format === "markdown" ? "---" : "")],
]);

/** Turns runs of inline nodes into paragraphs between the blocks. */
function renderChildren(element: HtmlElement, options: InlineOptions): string {
  const blocks: string[] = [];
  let run: HtmlNode[] = [];
  const endRun = () => {
    blocks.push(renderInline(run, options));
    run = [];
  };
  for (const child of element.children) {
    if (typeof child === "string" || !holdsBlock(child)) run.push(child);
    else if (!isDropped(child)) {
      endRun();
      blocks.push(renderBlocks(child, options));
    }
  }
  endRun();
  return blocks.filter((block) => block !== "").join("\n\n");
}

/** True for a block, and for a link or span that has a block inside. */
function holdsBlock(element: HtmlElement): boolean {
  if (blockRenderers.has(element.tag)) return true;
  return element.children.some((child) => typeof child !== "string" && holdsBlock(child));
}

function renderList(element: HtmlElement, options: InlineOptions): string {
  let number = Number(element.attributes.get("start") ?? 1) || 1;
  const items = element.children.flatMap((child) => {
    if (typeof child === "string" || isDropped(child)) return [];
    const body = renderBlocks(child, options);
    if (body === "") return [];
    const mark = element.tag === "ol" ? `${number++}. ` : "- ";
    // Removes the empty line between an item's first line and a list below it.
    const tight = body.replace(/^([^\n]*)\n\n(?=(?:- |\d+\. ))/, "$1\n");
    return [mark + tight.replace(/\n(?!\n|$)/g, `\n${" ".repeat(mark.length)}`)];
  });
  return items.join("\n");
}

// Reads HTML pages of documentation into a small tree. parse5 reads the tags, attributes and entities as browsers do.
// The tree is our own: the HTML standard lets a page of 100 KB grow into gigabytes of elements, and such a page must not
// stop `plimsoll sync`.

type HtmlNode = HtmlElement | string;

interface HtmlElement {
  readonly tag: string;
  readonly attributes: ReadonlyMap<string, string>;
  readonly children: HtmlNode[];
}

/** Accepts any text. Takes time and memory in proportion to its length. */
function parseHtml(html: string): HtmlElement {
  const root: HtmlElement = { tag: "#document", attributes: new Map(), children: [] };
  const open = [root];
  // Joins neighbouring texts. Soft hyphens are removed, special spaces become plain ones, and control characters become
  // U+FFFD.
  const addText = ({ chars }: Token.CharacterToken) => {
    const { children } = open.at(-1)!;
    const text = chars
      .replaceAll("\u00ad", "")
      .replace(/[\u00a0\u2002\u2003\u2009]/g, " ")
      .replace(/(?![\t\n\f\r])\p{Cc}/gu, "\ufffd");
    const last = children.at(-1);
    if (typeof last === "string") children[children.length - 1] = last + text;
    else children.push(text);
  };
  const ignore = () => {};
  const tokenizer = new Tokenizer(
    {},
    {
      onStartTag(token) {
        tokenizer.state = openElement(token, open);
      },
      // Closes the nearest open element of that name and everything in it. Ignores a closing tag without an opening one.
      onEndTag({ tagName }) {
        const index = open.findLastIndex((element) => element.tag === tagName);
        if (index > 0) open.length = index;
      },
      onCharacter: addText,
      onWhitespaceCharacter: addText,
      onNullCharacter: ignore,
      onComment: ignore,
      onDoctype: ignore,
      onEof: ignore,
    },
  );
  tokenizer.write(html, true);
  return root;
}

/** Returns how the tokenizer should read what follows the tag. */
function openElement({ tagName: tag, attrs, selfClosing }: Token.TagToken, open: HtmlElement[]): Tokenizer["state"] {
  const attributes = new Map(attrs.map(({ name, value }) => [name, value]));
  const element: HtmlElement = { tag, attributes, children: [] };
  closeImplied(tag, open);
  open.at(-1)!.children.push(element);
  if (selfClosing || voidElements.has(tag)) return TokenizerMode.DATA;
  const mode = rawElements.get(tag);
  // Elements nested deeper than this are flattened: people do not nest so deep, and code that walks the tree may
  // recurse.
  const maxDepth = 64;
  // The content of a raw element is dropped, so it must not be attached to the element around it.
  if (mode !== undefined || open.length < maxDepth) open.push(element);
  return mode ?? TokenizerMode.DATA;
}

const voidElements = new Set("area base br col embed hr img input link meta param source track wbr".split(" "));

/** Elements whose content is text, whatever it looks like. */
const rawElements: ReadonlyMap<string, Tokenizer["state"]> = new Map([
  ["script", TokenizerMode.SCRIPT_DATA],
  ["textarea", TokenizerMode.RCDATA],
  ["title", TokenizerMode.RCDATA],
  ...["style", "iframe", "noembed", "noframes", "xmp"].map((tag) => [tag, TokenizerMode.RAWTEXT] as const),
]);

/** An opening tag closes the nearest open element in `closes`, but does not look outside of the elements in `within`. */
const impliedClosers = new Map(
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

/** Returns the outermost elements that match a selector, in the order of the page. Understands tags, `.class`, `#id`, combinations
 *  (`div.note`), descendants (`main .body`) and lists with commas. Returns undefined for any other selector. */
function selectElements(root: HtmlElement, selector: string): readonly HtmlElement[] | undefined {
  const paths = selector.split(",").map((each) => each.trim().split(/\s+/).map(parseSimple));
  if (paths.some((path) => path.includes(undefined))) return undefined;
  const found: HtmlElement[] = [];
  visit(root, { paths: paths as Simple[][], matched: paths.map(() => 0), found });
  return found;
}

interface Simple {
  readonly tag: string | undefined;
  readonly id: string | undefined;
  readonly classes: readonly string[];
}

function parseSimple(written: string): Simple | undefined {
  const simplePattern = /^([a-z][\w-]*|\*)?((?:[.#][\w-]+)*)$/i;
  const match = simplePattern.exec(written);
  if (match === null || written === "") return undefined;
  const marks = (match[2] ?? "").match(/[.#][^.#]+/g) ?? [];
  return {
    tag: match[1] === "*" ? undefined : match[1]?.toLowerCase(),
    id: marks.find((mark) => mark.startsWith("#"))?.slice(1),
    classes: marks.filter((mark) => mark.startsWith(".")).map((mark) => mark.slice(1)),
  };
}

interface Search {
  readonly paths: readonly (readonly Simple[])[];
  /** How many steps of each path the ancestors match. Each step takes the outermost ancestor that fits, which leaves the most room for the next. */
  readonly matched: readonly number[];
  readonly found: HtmlElement[];
}

function visit(element: HtmlElement, { paths, matched, found }: Search): void {
  for (const child of element.children) {
    if (typeof child === "string") continue;
    const isMatch = paths.some((path, index) => matched[index] === path.length - 1 && fits(child, path.at(-1)!));
    if (isMatch) {
      found.push(child);
      continue;
    }
    const now = paths.map((path, index) => {
      const step = matched[index]!;
      return step < path.length - 1 && fits(child, path[step]!) ? step + 1 : step;
    });
    visit(child, { paths, matched: now, found });
  }
}

function fits({ tag, attributes }: HtmlElement, simple: Simple): boolean {
  if (simple.tag !== undefined && simple.tag !== tag) return false;
  if (simple.id !== undefined && simple.id !== attributes.get("id")) return false;
  const classes = attributes.get("class")?.split(/\s+/) ?? [];
  return simple.classes.every((each) => classes.includes(each));
}
