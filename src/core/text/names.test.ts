import fc from "fast-check";
import { expect, test } from "vitest";
import { visitNames } from "./names.ts";

function namesIn(text: string): string[] {
  const names: string[] = [];
  visitNames(text, (start, end) => names.push(text.slice(start, end)));
  return names;
}

test("names are identifiers, paths and ids of at least 8 characters, and never plain words", () => {
  expect(namesIn("See src/app/main.ts, startServer() and max_tokens; documentation, ab12.")).toEqual([
    "src/app/main.ts",
    "startServer",
    "max_tokens",
  ]);
  expect(namesIn("(@scope/name) --dry-run:12: 2026-11-16. UPPERCASE lowercase")).toEqual([
    "@scope/name",
    "dry-run:12",
    "2026-11-16",
  ]);
  expect(namesIn("")).toEqual([]);
});

test("the loop finds what a regular expression finds", () => {
  const pieces = fc.constantFrom(..."abzAZ09_./:#@-", " ", "\n", "é", "word", "camelCase", "a/b");
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 40 }), (parts) => {
      const text = parts.join("");
      const found = text.match(/[\w./:#@-]+/g) ?? [];
      const trimmed = found.map((run) => run.replace(/^[:-]+/, "").replace(/[.:#@-]+$/, ""));
      const names = trimmed.filter((name) => name.length >= 8 && /[_./:\-#@\d]|[a-z][A-Z]/.test(name));
      expect(namesIn(text)).toEqual(names);
    }),
  );
});

test("a name has the same hash wherever it stands, and other names have others", () => {
  const hashesIn = (text: string): number[] => {
    const hashes: number[] = [];
    visitNames(text, (_start, _end, hash) => hashes.push(hash));
    return hashes;
  };
  expect(hashesIn("read src/app/main.ts, then (src/app/main.ts).")).toEqual(
    hashesIn("src/app/main.ts src/app/main.ts"),
  );
  const names = Array.from({ length: 2_000 }, (_, index) => `src/file-${index}.ts`);
  expect(new Set(hashesIn(names.join(" "))).size).toBe(2_000);
});
