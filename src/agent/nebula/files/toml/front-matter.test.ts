import { expect, test } from "vitest";
import { splitFrontMatter } from "./front-matter.ts";

test("TOML and body are what stands between and after the two delimiters", () => {
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
])("%j has none, and line %i is told", (text, line, rule) => {
  expect(splitFrontMatter(text)).toMatchObject({ line, rule });
});

test("front matter that is YAML is told to be so", () => {
  const message = expect.stringMatching(/must be TOML between two lines that are "\+\+\+".* YAML/);
  for (const text of ["---\nid: a\n---\n", "\n--- \r\nid: a\r\n---\r\n"])
    expect(splitFrontMatter(text)).toMatchObject({ rule: "missing-front-matter", message });
});
