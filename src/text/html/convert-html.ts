/** HTML as Markdown or as bare text: headings, paragraphs, lists, code, quotes, links and tables; no scripts and no styles. */
import { type HtmlElement, parseHtml } from "./parse-html.ts";
import { renderBlocks } from "./render-blocks.ts";
import { selectElements } from "./select-elements.ts";

export interface ConvertOptions {
  readonly format: "text" | "markdown";
  readonly selector?: string | undefined;
  /** What relative links are relative to. */
  readonly baseUrl?: string | undefined;
}

export interface ConvertedHtml {
  readonly text: string;
  /** Why the selector did not apply: the whole page is given then. */
  readonly warning: string | undefined;
}

export function convertHtml(html: string, { format, selector, baseUrl }: ConvertOptions): ConvertedHtml {
  const root = parseHtml(html);
  const selected = selector === undefined ? undefined : selectElements(root, selector);
  const warning = selector === undefined ? undefined : selectorProblem(selector, selected);
  const elements = selected !== undefined && selected.length > 0 ? selected : [root];
  const base = baseOf(root, baseUrl);
  const text = elements
    .map((element) => renderBlocks(element, { format, base }))
    .filter(Boolean)
    .join("\n\n");
  return { text: text === "" ? "" : `${text}\n`, warning };
}

function selectorProblem(selector: string, selected: readonly HtmlElement[] | undefined): string | undefined {
  if (selected === undefined)
    return `selector "${selector}" is not understood, the whole page is taken. Use tags, .class, #id and descendants.`;
  return selected.length === 0
    ? `nothing on the page matches selector "${selector}", the whole page is taken`
    : undefined;
}

/** A page may say itself what its links are relative to. */
function baseOf(root: HtmlElement, url: string | undefined): string | undefined {
  const written = selectElements(root, "base")?.[0]?.attributes.get("href");
  return written !== undefined && URL.canParse(written, url) ? new URL(written, url).href : url;
}
