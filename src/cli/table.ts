/** Rows of text with aligned columns, two spaces between them, no space at the end of a line. */
export function renderTable(
  rows: readonly (readonly string[])[],
  alignment: readonly ("left" | "right")[],
): string[] {
  const widths = alignment.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, column) =>
        alignment[column] === "right" ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!),
      )
      .join("  ")
      .trimEnd(),
  );
}

/** A whole number with its thousands apart: 1,234,567. The same in every locale. */
export function formatNumber(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ",");
}
