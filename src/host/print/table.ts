import { relative } from "node:path";
import { printable } from "../../core/text/index.ts";
import { type Environment, homeDirectory } from "../directories.ts";
import { projectRoot } from "../files/find-root.ts";
import { isInside } from "../files/paths.ts";
import type { Style } from "./output.ts";

/** Aligns columns, with two spaces between them and no space at the end of a line. A cell with control characters stays
 *  on its line. With a style, the first row is a heading. */
export function renderTable(
  cells: readonly (readonly string[])[],
  alignment: readonly ("left" | "right")[],
  style?: Style,
): string[] {
  const rows = cells.map((row) => row.map(printable));
  // Math.max with hundreds of thousands of arguments would overflow the stack.
  const widths = alignment.map((_, column) =>
    rows.reduce((widest, row) => Math.max(widest, row[column]?.length ?? 0), 0),
  );
  const lines = rows.map((row) =>
    row
      .map((cell, column) =>
        alignment[column] === "right" ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!),
      )
      .join("  ")
      .trimEnd(),
  );
  return style === undefined ? lines : lines.map((line, index) => (index === 0 ? style.dim(line) : line));
}

/** Shows a path relative to the current directory if it is in the project, or else below HOME. */
export function shownPath(path: string, cwd: string, env: Environment): string {
  const home = homeDirectory(env);
  const below = relative(cwd, path);
  if (isInside(path, cwd) || path.startsWith(`${projectRoot(cwd, home)}/`)) return below;
  return path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : below;
}
