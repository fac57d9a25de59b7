import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { z } from "zod";
import { nebulaSchemas } from "./nebula-files.ts";
import { splitFrontMatter } from "./toml-document.ts";

test("TOML is the text between the two delimiters, the body is the text after them", () => {
  expect(splitFrontMatter('+++\nid = "a"\n+++\n\n# Body\n')).toEqual({
    toml: 'id = "a"\n',
    tomlLine: 2,
    body: "# Body",
  });
});

test.each([
  ["white space before it", "\n \t\n+++\na = 1\n+++\nx", 4],
  ["a byte order mark", "\uFEFF+++\na = 1\n+++\nx", 2],
  ["CRLF and blanks after the delimiters", "+++ \t\r\na = 1\n+++\t \r\nx", 2],
  ["no line break at the end", "+++\na = 1\n+++", 2],
])("front matter may have %s", (_, text, tomlLine) => {
  expect(splitFrontMatter(text)).toMatchObject({ toml: "a = 1\n", tomlLine });
});

test("only a whole line closes, and only the first of them", () => {
  const text = '+++\ntitle = "a +++ b"\nlong = "+++"\n+++\nbody\n+++\nmore';
  expect(splitFrontMatter(text)).toMatchObject({
    toml: 'title = "a +++ b"\nlong = "+++"\n',
    body: "body\n+++\nmore",
  });
});

test("the body stays byte for byte but for the space around it", () => {
  const body = "a\r\n\tb  \n\n```\n+++\n```\n\u00a0é";
  expect(splitFrontMatter(`+++\n+++\n\n${body}\n\n`)).toMatchObject({ toml: "", body });
});

test.each([
  ["", 1, "missing-front-matter"],
  ["\n\n", 1, "missing-front-matter"],
  ["\n\n# A heading\n+++\n", 3, "missing-front-matter"],
  ["++++\na = 1\n++++\n", 1, "missing-front-matter"],
  ["+++ a = 1\n+++\n", 1, "missing-front-matter"],
  ["\n+++\nid = 1\n++ +\n", 2, "unclosed-front-matter"],
  ["+++", 1, "unclosed-front-matter"],
])("%j has no front matter, and line %i is reported", (text, line, rule) => {
  expect(splitFrontMatter(text)).toMatchObject({ line, rule });
});

test("front matter in YAML is reported as such", () => {
  const message = expect.stringMatching(/must be TOML between two lines "\+\+\+".* YAML/);
  for (const text of ["---\nid: a\n---\n", "\n--- \r\nid: a\r\n---\r\n"])
    expect(splitFrontMatter(text)).toMatchObject({ rule: "missing-front-matter", message });
});

test.each(Object.entries(nebulaSchemas))("the schema of %s in schemas/ is the one of the code", (name, schema) => {
  const committed = readFileSync(new URL(`../../../schemas/${name}.schema.json`, import.meta.url), "utf8");
  expect(committed).toBe(`${JSON.stringify(z.toJSONSchema(schema, { io: "input" }), null, 2)}\n`);
});
