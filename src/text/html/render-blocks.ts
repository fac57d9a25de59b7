/** A tree as blocks of text with one empty line between them. */
import type { HtmlElement, HtmlNode } from "./parse-html.ts";
import { renderHtmlTable } from "./render-html-table.ts";
import { type InlineOptions, isDropped, plainText, renderInline } from "./render-inline.ts";

export function renderBlocks(element: HtmlElement, options: InlineOptions): string {
  const render = blockRenderers.get(element.tag);
  return render === undefined ? renderChildren(element, options) : render(element, options);
}

type Render = (element: HtmlElement, options: InlineOptions) => string;

/** Elements that break a line; all others flow with the text around them. */
const containers = `#document html body main article section div header footer nav aside address figure figcaption details summary form
  fieldset dl dt dd center hgroup search tbody thead tfoot tr td th caption li`;

const blockRenderers: ReadonlyMap<string, Render> = new Map<string, Render>([
  ...containers.split(/\s+/).map((tag): [string, Render] => [tag, renderChildren]),
  ...[1, 2, 3, 4, 5, 6].map((level): [string, Render] => [`h${level}`, renderHeading]),
  ["p", renderChildren],
  ["ul", renderList],
  ["ol", renderList],
  ["menu", renderList],
  ["pre", renderCode],
  ["blockquote", renderQuote],
  ["table", (element, options) => renderHtmlTable(element, { ...options, renderCell: renderChildren })],
  ["hr", (_, { format }) => (format === "markdown" ? "---" : "")],
]);

/** Runs of inline nodes become paragraphs between the blocks. */
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

/** A link or span around blocks is looked through. */
function holdsBlock(element: HtmlElement): boolean {
  if (blockRenderers.has(element.tag)) return true;
  return element.children.some((child) => typeof child !== "string" && holdsBlock(child));
}

function renderHeading(element: HtmlElement, options: InlineOptions): string {
  const text = renderInline([element], options).replace(/\s+/g, " ").trim();
  return options.format === "text" || text === "" ? text : `${"#".repeat(Number(element.tag[1]))} ${text}`;
}

function renderList(element: HtmlElement, options: InlineOptions): string {
  let number = Number(element.attributes.get("start") ?? 1) || 1;
  const items = element.children.flatMap((child) => {
    if (typeof child === "string" || isDropped(child)) return [];
    const body = renderBlocks(child, options);
    if (body === "") return [];
    const mark = element.tag === "ol" ? `${number++}. ` : "- ";
    return [mark + tightened(body).replace(/\n(?!\n|$)/g, `\n${" ".repeat(mark.length)}`)];
  });
  return items.join("\n");
}

/** A list below an item's first line needs no empty line before it. */
function tightened(body: string): string {
  return body.replace(/^([^\n]*)\n\n(?=(?:- |\d+\. ))/, "$1\n");
}

function renderCode(element: HtmlElement, { format }: InlineOptions): string {
  const code = plainText(element).replace(/^\n/, "").trimEnd();
  if (format === "text" || code === "") return code;
  const longest = (code.match(/`{3,}/g) ?? []).reduce((most, marks) => Math.max(most, marks.length), 2);
  const fence = "`".repeat(longest + 1);
  return `${fence}${languageOf(element)}\n${code}\n${fence}`;
}

/** `language-ts` or `lang-ts` on the element or on the `code` within. */
function languageOf(element: HtmlElement): string {
  const inner = element.children.find(
    (child): child is HtmlElement => typeof child !== "string" && child.tag === "code",
  );
  const classes = [element, inner].map((each) => each?.attributes.get("class") ?? "").join(" ");
  return /(?:^|\s)lang(?:uage)?-([\w+#-]+)/.exec(classes)?.[1] ?? "";
}

function renderQuote(element: HtmlElement, options: InlineOptions): string {
  const body = renderChildren(element, options);
  if (options.format === "text" || body === "") return body;
  return body
    .split("\n")
    .map((line) => (line === "" ? ">" : `> ${line}`))
    .join("\n");
}
