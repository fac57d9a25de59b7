/** Rows of text with aligned columns, two spaces between them, no space at the end of a line. */
export function renderTable(
  rows: readonly (readonly string[])[],
  alignment: readonly ("left" | "right")[],
): string[] {
  const widths = alignment.map((_, column) => widestOf(rows, column));
  return rows.map((row) =>
    row
      .map((cell, column) =>
        alignment[column] === "right" ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!),
      )
      .join("  ")
      .trimEnd(),
  );
}

/** Not Math.max of all at once: as arguments, some hundred thousand rows overflow the stack. */
function widestOf(rows: readonly (readonly string[])[], column: number): number {
  return rows.reduce((widest, row) => Math.max(widest, row[column]?.length ?? 0), 0);
}
