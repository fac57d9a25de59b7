import { expect, test } from "vitest";
import { toPlainProse } from "./plain-prose.ts";

test.each([
  ["headings", "# One\n\n### Two ###\n#no heading\n# C#\n#\n", "One\n\nTwo\n#no heading\nC#\n\n"],
  ["bold, italic and both", "a **b** *c* __d__ _e_ ***f*** **g *h* i**", "a b c d e f g h i"],
  ["emphasis over two lines", "a **b\nc** d", "a b\nc d"],
  ["inline code", "use `npm ci` and ``a ` b`` and `` `x` ``", "use npm ci and a ` b and `x`"],
  ["comments", "a <!-- x --> b <!-- y\nz -->c", "a  b c"],
  ["CRLF", "# T\r\n\r\n\r\n**b**\r\n", "T\r\n\r\nb\r\n"],
])("removes the marks of %s", (_name, markdown, prose) => {
  expect(toPlainProse(markdown)).toBe(prose);
});

test.each([
  ["a word with underscores", "snake_case_name and a_b_c, _x"],
  ["arithmetic", "2 * 3 * 4, a**b and 5 *6"],
  ["bullets and rules", "* one\n* two *\n\n***\n\n---\n"],
  ["an opener and a closer in two items", "* a *b\n* c* d\n"],
  ["escapes", "\\*not\\* \\_it\\_ \\`x\\`"],
  ["a tick alone", "it`s and ``two"],
  ["a comment that never ends", "a <!-- b *c"],
])("keeps %s unchanged", (_name, markdown) => {
  expect(toPlainProse(markdown)).toBe(markdown);
});

test("marks inside inline code are code", () => {
  expect(toPlainProse("`*ptr` and `**kwargs` and `<!-- x -->` and `__init__`")).toBe(
    "*ptr and **kwargs and <!-- x --> and __init__",
  );
});

test("does not change tables and links", () => {
  const markdown = [
    "| **Name** | `code` |",
    "|---|:---:|",
    "| a_b_ | *x* |",
    "",
    "[*text*](https://x.dev/a_b_c?d=*e*) ![i_m_g](a_b_.png) <https://a.b/_c_> https://x.dev/_y_/*z*",
    "",
    "[ref]: https://x.dev/a_b_",
    "",
  ].join("\n");
  expect(toPlainProse(markdown)).toBe(markdown);
  expect(toPlainProse("| a <!-- x --> | b |")).toBe("| a  | b |");
});

test("removes fences and keeps the code in them", () => {
  const code = "# no *heading*\n\n\n\n`x` **y** <!-- z -->\n    ```\n";
  expect(toPlainProse(`Run:\n\n\`\`\`sh\n${code}\`\`\`\n\nDone.\n`)).toBe(`Run:\n\n${code}\nDone.\n`);
  expect(toPlainProse(`~~~\n${code}`)).toBe(code);
});

test("keeps indented code, but changes an indented line of a list item", () => {
  expect(toPlainProse("a\n\n    *x* = `y`\n\n    # z\n\n**b**\n")).toBe("a\n\n    *x* = `y`\n\n    # z\n\nb\n");
  expect(toPlainProse("- a\n\n    *x*\n")).toBe("- a\n\n    x\n");
});

test("removes a comment of several lines, whatever it contains", () => {
  expect(toPlainProse("a\n\n<!--\n```\n*b*\n\n-->\n\nc\n")).toBe("a\n\nc\n");
  expect(toPlainProse("<!-- a\nb --> *c*\n")).toBe(" c\n");
});

test("three and more line breaks become two, outside code", () => {
  expect(toPlainProse("a\n\n\n\nb\n\n<!-- x -->\n\nc\n")).toBe("a\n\nb\n\nc\n");
});

test("takes linear time, whatever the text is", { tags: ["deep"] }, () => {
  const before = process.cpuUsage();
  for (const piece of [
    "*a ",
    "_a ",
    "`a``b",
    "[",
    "[](",
    "<!-- ",
    "<a ",
    "![x](",
    "**a* ",
    "| <!-- ",
    "\\",
    "\n- *a",
    "`".repeat(7),
  ]) {
    toPlainProse(piece.repeat(200_000 / piece.length));
  }
  expect(process.cpuUsage(before).user / 1_000).toBeLessThan(4_000);
});
