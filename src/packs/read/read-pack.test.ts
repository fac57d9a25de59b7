import { expect, test } from "vitest";
import { textAt } from "../../text/index.ts";
import type { PackFile } from "./pack-file.ts";
import { createPackSource } from "./pack-file.ts";
import { readPack } from "./read-pack.ts";

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

test("without an expanded text the plain one is used", () => {
  expect(textAt(read("en", { "context.md": "base\n" }).pack.context, "full")).toBe("base\n");
});

test("constraints and preamble have their languages too", () => {
  const { pack } = read("de");
  expect(textAt(pack.constraints, "full")).toBe("nie\n");
  expect(pack.preamble).toBe("> zuerst");
  expect(read("fr").pack.preamble).toBe("> first");
});

test("name and description follow the language, each for itself", () => {
  const pack = { name: "Name", description: "About", locales: { de: { description: "Über" } } };
  expect(read("de-AT", variants, pack).pack).toMatchObject({ name: "Name", description: "Über" });
  expect(read("en", variants, pack).pack).toMatchObject({ name: "Name", description: "About" });
  expect(read("constructor", variants, pack).pack).toMatchObject({ name: "Name", description: "About" });
});

test("a pack without texts is empty and no mistake", () => {
  expect(read("en", {})).toMatchObject({
    pack: { preamble: "", context: [], constraints: [] },
    warnings: [],
  });
});

test("a preamble is core as a whole, its markers go", () => {
  expect(read("en", { "preamble.md": "a\n<!-- verbosity:extended -->\nb\n" }).pack.preamble).toBe("a\nb");
});

test("lines of warnings are those of the file, also behind lines that were left out", () => {
  const text = '<!-- sync:fetch url="u" -->\n\n<!-- sync:fetch url="v" -->\n<!-- verbosity:bogus -->\nb\n';
  const { warnings } = read("en", { "context.md": text });
  expect(warnings.map(({ line }) => line)).toEqual([1, 3, 4]);
});
