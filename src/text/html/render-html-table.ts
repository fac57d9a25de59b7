import type { HtmlElement } from "./parse-html.ts";
import type { InlineOptions } from "./render-inline.ts";

export interface TableOptions extends InlineOptions {
  readonly renderCell: (cell: HtmlElement, options: InlineOptions) => string;
}

/** A pipe table, its first row as the head. Spans are not kept. As text, cells are joined by tabs. */
export function renderHtmlTable(table: HtmlElement, options: TableOptions): string {
  const caption = elementsIn(table).find(({ tag }) => tag === "caption");
  const rows = rowsOf(table).map((row) =>
    cellsOf(row).map((cell) => oneLine(options.renderCell(cell, options))),
  );
  const filled = rows.filter((row) => row.some((cell) => cell !== ""));
  const title = caption === undefined ? "" : oneLine(options.renderCell(caption, options));
  return [title, options.format === "text" ? textTable(filled) : pipeTable(filled)]
    .filter(Boolean)
    .join("\n\n");
}

function elementsIn(element: HtmlElement): HtmlElement[] {
  return element.children.filter((child): child is HtmlElement => typeof child !== "string");
}

function rowsOf(table: HtmlElement): HtmlElement[] {
  return elementsIn(table).flatMap((child) => {
    if (child.tag === "tr") return [child];
    return ["thead", "tbody", "tfoot"].includes(child.tag)
      ? elementsIn(child).filter(({ tag }) => tag === "tr")
      : [];
  });
}

function cellsOf(row: HtmlElement): HtmlElement[] {
  return elementsIn(row).filter(({ tag }) => tag === "td" || tag === "th");
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

function textTable(rows: readonly (readonly string[])[]): string {
  return rows.map((row) => row.join("\t").trimEnd()).join("\n");
}

/** Rows are not filled up: Markdown does not ask for it, and one long row would multiply all others. */
function pipeTable(rows: readonly (readonly string[])[]): string {
  const [head, ...body] = rows.map(pipeRow);
  return head === undefined ? "" : [head, `|${" --- |".repeat(rows[0]!.length)}`, ...body].join("\n");
}

function pipeRow(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replace(/(?<!\\)\|/g, "\\|")).join(" | ")} |`;
}
