/** What the lines before the first hunk of a file say. */
import { decodeBytes } from "../../../workspace/index.ts";

export interface FileChange {
  readonly change?: "added" | "deleted" | "renamed" | "copied" | "conflict";
  /** The path before. */
  readonly from?: string;
  readonly binary?: true;
  /** `100644 → 100755` */
  readonly mode?: string;
}

export function changeOf(header: readonly string[]): FileChange {
  const after = (start: string) => header.find((line) => line.startsWith(start))?.slice(start.length);
  const from = after("rename from ") ?? after("copy from ");
  const [oldMode, newMode] = [after("old mode "), after("new mode ")];
  return {
    ...(header[0]?.startsWith("diff --cc") ? { change: "conflict" } : {}),
    ...(after("new file mode ") === undefined ? {} : { change: "added" }),
    ...(after("deleted file mode ") === undefined ? {} : { change: "deleted" }),
    ...(from === undefined
      ? {}
      : { change: after("copy from ") ? "copied" : "renamed", from: unquote(from) }),
    ...(header.some((line) => /^(Binary files |GIT binary patch)/.test(line)) ? { binary: true } : {}),
    ...(oldMode === undefined || newMode === undefined ? {} : { mode: `${oldMode} → ${newMode}` }),
  };
}

/** The path after the change, or before it where the file is gone. */
export function nameOf(header: readonly string[]): string {
  for (const start of ["+++ ", "--- ", "rename to ", "copy to "]) {
    const line = header.find((each) => each.startsWith(start));
    if (line === undefined || line === `${start}/dev/null`) continue;
    const name = unquote(line.slice(start.length));
    return start.endsWith("to ") ? name : name.slice(2);
  }
  return nameInFirstLine(header[0] ?? "");
}

/** A submodule whose commit is the same, and only its files differ, has no line with hashes. */
export function isSubmodule(header: readonly string[]): boolean {
  return !header.some((line) => line.startsWith("index ") && !line.endsWith(" 160000"));
}

/** Without hunks the name stands only here, twice and the same: `diff --git a/NAME b/NAME`. A conflict has it once. */
function nameInFirstLine(line: string): string {
  const names = line.replace(/^diff --(git|cc|combined) /, "");
  if (!line.startsWith("diff --git")) return unquote(names);
  return unquote(names.slice(0, (names.length - 1) / 2)).slice(2);
}

const escapes: Readonly<Record<string, string>> = {
  a: "\x07",
  b: "\b",
  t: "\t",
  n: "\n",
  v: "\v",
  f: "\f",
  r: "\r",
};

/** git quotes a name with control characters, quotes or backslashes in it, and sets a tab after one with blanks. */
function unquote(name: string): string {
  if (!name.startsWith('"')) return decodeBytes(name.replace(/\t$/, ""));
  const bytes = name.slice(1, name.lastIndexOf('"')).replace(/\\([0-7]{3}|.)/g, (_, code: string) => {
    if (code.length === 3) return String.fromCharCode(Number.parseInt(code, 8));
    return escapes[code] ?? code;
  });
  return decodeBytes(bytes);
}
