import { expect, it } from "vitest";
import { importedNames } from "./imported-names.ts";

it("finds names at the start of a word, in order, without what ends a sentence", () => {
  const text = "@AGENTS.md\nSee @docs/a.md, @~/mine.md and @./b.md.\nmail@example.org";
  expect(importedNames(text)).toEqual(["AGENTS.md", "docs/a.md", "~/mine.md", "./b.md"]);
});

it("leaves code alone", () => {
  expect(importedNames("`@a.md` @b.md\n```\n@c.md\n```\n<!--\n@d.md\n-->\n")).toEqual(["b.md"]);
});
