/** Markdown tables from any text: a cell never breaks its row. */

export function renderTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const rule = header.map(() => "---");
  return [header, rule, ...rows].map((cells) => `| ${cells.map(renderCell).join(" | ")} |`).join("\n");
}

/** Backslashes in front of a pipe are doubled, or they would escape the escape. */
function renderCell(text: string): string {
  return oneLine(text).replace(/(\\*)\|/g, "$1$1\\|");
}

export function escapeLinkText(text: string): string {
  return text.replace(/[[\]]/g, "\\$&");
}

export function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}
