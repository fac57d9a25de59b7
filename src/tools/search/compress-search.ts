import type { CompressInput } from "../../session/index.ts";
import {
  baseName,
  countNames,
  countOf,
  listCounts,
  numbered,
  shortened,
  wholeItems,
} from "../frame/phrases.ts";
import type { Match } from "./match.ts";

/** `Found 50 matches for 'createStore' in 12 files: store.ts (9), main.ts (5), +10 more. First: src/store.ts:14 export function …` */
export function compressSearch({ args, data }: CompressInput): string {
  const pattern = shortened(String(args.pattern ?? ""), 60);
  const matches = wholeItems<Match>(
    data.matches,
    ({ path, line, text }) =>
      typeof path === "string" && typeof line === "number" && typeof text === "string",
  );
  const found = `Found ${countOf(data, ["match", "matches"])} for '${pattern}'`;
  const [first] = matches;
  if (first === undefined) return found;
  const files = countNames(matches.map(({ path }) => path));
  const place = `${shortened(first.path, 100)}:${first.line} ${shortened(first.text, 80)}`;
  const where = numbered(files.length, ["file", "files"]);
  return `${found} in ${where}: ${listCounts(named(files), 2)}. First: ${place}`;
}

/** The last part of a path says enough, unless two files share it. */
function named(files: readonly (readonly [string, number])[]): [string, number][] {
  const shared = new Map(countNames(files.map(([path]) => baseName(path))));
  return files.map(([path, count]) => {
    const name = baseName(path);
    return [(shared.get(name) ?? 0) > 1 ? path : name, count];
  });
}
