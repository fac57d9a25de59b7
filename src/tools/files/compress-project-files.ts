import type { CompressInput } from "../../session/index.ts";
import { baseName, countNames, countOf, listCounts, shortened, wholeItems } from "../frame/phrases.ts";
import type { ListedFile } from "./project-files.ts";

/** `Listed 500 of 2847 files in src (truncated). Types: .ts (234), .md (45), +6 more. Key: src/core/, src/cli/` */
export function compressProjectFiles({ data }: CompressInput): string {
  const files = wholeItems<ListedFile>(data.files, ({ path }) => typeof path === "string");
  const where = typeof data.path === "string" && data.path !== "." ? shortened(data.path, 80) : "the root";
  const truncated = data.truncated === true ? " (truncated)" : "";
  const types = countNames(files.map(({ path }) => typeOf(path)));
  const directories = countNames(files.flatMap(({ path }) => directoryOf(path) ?? [])).map(([name]) => name);
  return [
    `Listed ${countOf(data, ["file", "files"])} in ${where}${truncated}.`,
    ...(types.length > 0 ? [`Types: ${listCounts(types, 3)}.`] : []),
    ...(directories.length > 0
      ? [
          `Key: ${directories
            .slice(0, 3)
            .map((name) => shortened(name, 60))
            .join(", ")}`,
        ]
      : []),
  ].join(" ");
}

function typeOf(path: string): string {
  return /[^.]\.[^.]+$/.test(baseName(path)) ? path.slice(path.lastIndexOf(".")) : "(no extension)";
}

/** Two levels tell the parts of most projects apart. */
function directoryOf(path: string): string | undefined {
  const names = path.split("/").slice(0, -1);
  return names.length === 0 ? undefined : `${names.slice(0, 2).join("/")}/`;
}
