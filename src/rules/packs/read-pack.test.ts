import { expect, test } from "vitest";
import { scanLines, textAt } from "../../core/text/index.ts";
import { createPackSource, type PackFile, prepareText, readPack } from "./read-pack.ts";

const variants = {
  "context.md": "base\n",
  "context.expanded.md": "fetched\n",
  "context.de.md": "deutsch\n",
  "context.pt-BR.md": "brasileiro\n",
  "constraints.md": "never\n",
  "constraints.de.md": "nie\n",
  "preamble.md": "> first\n",
  "preamble.de.md": "> zuerst\n",
};

function read(language: string, texts: Record<string, string> = variants, pack: Partial<PackFile> = {}) {
  const source = createPackSource({ pack: { id: "a", ...pack }, texts, directory: "packs/a" });
  return readPack(source, { layer: "embedded", language });
}

test.each([
  ["en", "fetched"],
  ["de", "deutsch"],
  ["de-AT", "deutsch"],
  ["DE_ch", "deutsch"],
  ["pt-br", "brasileiro"],
  ["pt", "fetched"],
  ["fr", "fetched"],
  ["", "fetched"],
  ["constructor", "fetched"],
])("in %j the context is %s", (language, expected) => {
  expect(textAt(read(language).pack.context, "full")).toBe(`${expected}\n`);
});

test("uses the plain text without an expanded one", () => {
  expect(textAt(read("en", { "context.md": "base\n" }).pack.context, "full")).toBe("base\n");
});

test("constraints and preamble have translations too", () => {
  const { pack } = read("de");
  expect(textAt(pack.constraints, "full")).toBe("nie\n");
  expect(pack.preamble).toBe("> zuerst");
  expect(read("fr").pack.preamble).toBe("> first");
});

test("name and description are translated independently", () => {
  const pack = { name: "Name", description: "About", locales: { de: { description: "Über" } } };
  expect(read("de-AT", variants, pack).pack).toMatchObject({ name: "Name", description: "Über" });
  expect(read("en", variants, pack).pack).toMatchObject({ name: "Name", description: "About" });
  expect(read("constructor", variants, pack).pack).toMatchObject({ name: "Name", description: "About" });
});

test("a pack without texts is empty and valid", () => {
  expect(read("en", {})).toMatchObject({
    pack: { preamble: "", context: [], constraints: [] },
    warnings: [],
  });
});

test("a preamble is core as a whole, and its markers are removed", () => {
  expect(read("en", { "preamble.md": "a\n<!-- verbosity:extended -->\nb\n" }).pack.preamble).toBe("a\nb");
});

test("warnings give the lines of the file, even after lines that were left out", () => {
  const text = '<!-- sync:fetch url="u" -->\n\n<!-- sync:fetch url="v" -->\n<!-- verbosity:bogus -->\nb\n';
  const { warnings } = read("en", { "context.md": text });
  expect(warnings.map(({ line }) => line)).toEqual([1, 3, 4]);
});

test("text without markers is kept byte for byte", () => {
  for (const text of ["", "a", "# A\n\n```\ncode\n```\n", "a <!-- b --> c\n", "<!-- a\nb -->\nc\n"]) {
    expect(prepareText(text)).toMatchObject({ text, warnings: [] });
  }
});

test("a sync:fetch marker that was not expanded never reaches the reader", () => {
  const { text, warnings } = prepareText('a\n  <!-- sync:fetch url="https://x" max_lines="3" -->\nb\n');
  expect(text).toBe("a\nb\n");
  expect(warnings).toEqual([{ line: 2, message: expect.stringContaining("plimsoll packs lint") }]);
});

test("removes a sync:fetch marker over several lines as a whole", () => {
  expect(prepareText('a\n<!-- sync:fetch\n  url="u"\n-->\nb\n').text).toBe("a\nb\n");
});

test("keeps markers in code, which are examples", () => {
  const text = '```\n<!-- sync:fetch url="u" -->\n<!-- plimsoll:end:context -->\n```\n';
  expect(prepareText(text)).toMatchObject({ text, warnings: [] });
});

test("removes a marker of plimsoll's own blocks, which would end the block", () => {
  for (const marker of [
    "<!-- plimsoll:end:context -->",
    "  <!--plimsoll:start:x sha256=0 -->",
    "<!-- plimsoll:owns sha256=0 -->",
  ]) {
    const { text, warnings } = prepareText(`a\n${marker}\nb\n`);
    expect(text).toBe("a\nb\n");
    expect(warnings).toHaveLength(1);
  }
});

test("keeps a line that only mentions a marker", () => {
  const text = "Blocks end with `<!-- plimsoll:end:context -->`.\n<!-- plimsoll:end:x --> behind\n";
  expect(prepareText(text)).toMatchObject({ text, warnings: [] });
});

test("removing a marker that closed a comment keeps the comment closed", () => {
  const { text, warnings } = prepareText("a\n<!-- b\n<!-- plimsoll:end:context -->\nc\n");
  expect(text).toBe("a\n<!-- b\nc\n-->\n");
  expect(warnings.map(({ line }) => line)).toEqual([3, 2]);
});

test.each([
  ["a fence", "a\n```js\ncode"],
  ["a long fence", "~~~~~\n~~~\ncode\n"],
  ["a fence in a list", "- a\n\n  ```\n  code\n"],
  ["a fence in a quote", "> ```\n> code"],
  ["a comment", "a\n<!-- never closed\nb\n"],
])("closes %s without an end", (_, given) => {
  const { text, warnings } = prepareText(given);
  expect(text.startsWith(given)).toBe(true);
  expect(warnings).toEqual([expect.objectContaining({ message: expect.stringContaining("has no end") })]);
  expect(kindOfNextLine(text)).toBe("text");
  expect(kindOfNextLine(given.endsWith("\n") ? given : `${given}\n`)).not.toBe("text");
});

/** What a marker after the text would be taken for, in the list item or the quote that continues there. */
function kindOfNextLine(text: string): string {
  let last = "";
  scanLines(`${text}${text.startsWith(">") ? "> " : "  "}<!-- next -->\n`, (_, kind) => {
    last = kind;
  });
  return last;
}
