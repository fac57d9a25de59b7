import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { toByteString } from "../../core/text/index.ts";
import { blockHash, markedBlock, readOwnership, renderOwnedFile, searchWholeBlocks } from "./marked-block.ts";

const body = "# Context\n\nUse it.\n";
const hash = createHash("sha256").update(body).digest("hex").slice(0, 16);
const start = `<!-- plimsoll:start:context sha256=${hash} -->`;
const end = "<!-- plimsoll:end:context -->";
const block = `${start}\n${body}${end}`;
const crlf = (text: string) => text.replaceAll("\n", "\r\n");
const put = (file: string | undefined, text = body) => markedBlock.put(file, "context", text);
const remove = (file: string) => markedBlock.remove(file, "context").file;
const find = (file: string) => markedBlock.find(file, "context");

describe("placing", () => {
  test.each([
    ["an absent file becomes the block and a line break", undefined, `${block}\n`],
    ["an empty file gets an empty line before the block", "", `\n${block}\n`],
    ["a byte order mark is no text", "\xef\xbb\xbf", `\xef\xbb\xbf\n${block}\n`],
    ["an empty line is text", "\n", `\n\n${block}\n`],
    ["behind text comes one empty line", "# Mine\n", `# Mine\n\n${block}\n`],
    // The original project ends the file with a line break here. Removal could not know then that there was none.
    ["a file without a final line break keeps it that way", "abc", `abc\n\n${block}`],
    ["a file with CRLF gets CRLF", "a\r\nb\r\n", `a\r\nb\r\n\r\n${crlf(block)}\r\n`],
    ["a file with CRLF and no final one too", "a\r\nb", `a\r\nb\r\n\r\n${crlf(block)}`],
    ["the majority decides in a mixed file", "a\r\nb\nc\n", `a\r\nb\nc\n\n${block}\n`],
  ])("%s, a second time changes nothing, and removal restores the file", (_name, file, expected) => {
    expect(put(file)).toBe(expected);
    expect(put(expected)).toBe(expected);
    expect(remove(expected)).toBe(file);
  });

  test("replaces a block in place and moves nothing around it", () => {
    const around = (text: string) => `\xe9 before \n\n${text}\n\n\n\nafter`;
    const replaced = put(around(block), "New.\n");
    expect(replaced).toBe(around(put(undefined, "New.\n").trimEnd()));
    expect(remove(replaced)).toBe("\xe9 before \n\n\n\nafter");
  });

  test("a replaced block keeps its own line ends", () => {
    expect(put(`${crlf(block)}\r\n`, "New.\n")).toBe(crlf(put(undefined, "New.\n")));
  });

  test("a body gets a missing line break, but an empty body gets none", () => {
    expect(put(undefined, "x")).toBe(put(undefined, "x\n"));
    expect(put(undefined, "")).toMatch(
      /^<!-- plimsoll:start:context sha256=[0-9a-f]{16} -->\n<!-- plimsoll:end:context -->\n$/,
    );
    expect(put(undefined, "a\r\nb\r\r\n")).toBe(put(undefined, "a\nb\n"));
  });

  test("a section may have spaces and any letters, but nothing that ends a comment", () => {
    const file = markedBlock.put("x\n", "Für alle 日本", body);
    expect(file).toContain(toByteString("plimsoll:start:Für alle 日本 sha256="));
    expect(markedBlock.find(file, "Für alle 日本")).toMatchObject({ kind: "block", block: { edited: false } });
    for (const section of ["", "a\nb", "a-->b", " a"]) {
      expect(() => markedBlock.put("", section, body)).toThrow(expect.objectContaining({ code: "invalid_argument" }));
    }
  });
});

describe("removing", () => {
  test("text on both sides is joined by one empty line", () => {
    expect(remove(`before\n\n${block}\n\nafter\n`)).toBe("before\n\nafter\n");
    expect(remove(`before\n${block}\nafter\n`)).toBe("before\nafter\n");
  });

  // The original project leaves "# My rules\\n\\n".
  test("removes the separator that was added", () => {
    expect(remove(put("# My rules\n"))).toBe("# My rules\n");
  });

  test("keeps the text that a person added around a file of plimsoll", () => {
    expect(remove(`${block}\nmine\n`)).toBe("mine\n");
    expect(remove(`mine\n${block}\n`)).toBe("mine\n");
    expect(remove(`mine\n${block}`)).toBe("mine\n");
  });

  test.each([block, `${block}\n\n`, `${block}\r\n`, `\xef\xbb\xbf${block}`, `${block}\n \n`])(
    "deletes a file that plimsoll created even if an editor changed its last line break: %j",
    (file) => {
      expect(remove(file)).toBeUndefined();
    },
  );

  test.each([`\n${block}`, `\n${block}\n\n`])("a file that was empty is empty again: %j", (file) => {
    expect(remove(file)).toBe("");
  });

  test("a file without a block is returned as it is", () => {
    const file = "mine\n\n\n\n";
    expect(remove(file)).toBe(file);
  });

  test.each([undefined, "", "abc", "abc\n", "a\r\n", "\xef\xbb\xbf"])(
    "two sections in %j can be removed in either order and leave nothing",
    (file) => {
      const both = markedBlock.put(markedBlock.put(file, "one", body), "two", "Two.\n");
      for (const order of [
        ["one", "two"],
        ["two", "one"],
      ]) {
        const removed = order.reduce<string | undefined>(
          (text, section) => markedBlock.remove(text!, section).file,
          both,
        );
        expect(removed).toBe(file);
      }
    },
  );
});

describe("blocks of any section", () => {
  const both = markedBlock.put(markedBlock.put("mine\n", "one", body), "two", "Two.\n");

  test("finds each block with a matching hash, and restores the person's bytes", () => {
    expect(searchWholeBlocks(both).map(({ section }) => section)).toEqual(["one", "two"]);
    expect(markedBlock.removeWhole(both)).toBe("mine\n");
    expect(markedBlock.removeWhole(both, (section) => section === "one")).toBe(
      markedBlock.put("mine\n", "two", "Two.\n"),
    );
    expect(
      markedBlock.removeWhole(markedBlock.put(markedBlock.put(undefined, "one", body), "Für", body)),
    ).toBeUndefined();
    expect(markedBlock.removeWhole(`a\n\n${block}\n\n${block}\nb\n`)).toBe("a\nb\n");
  });

  test.each([
    ["in a code fence", `\`\`\`html\n${block}\n\`\`\`\n`],
    ["edited", block.replace("Use", "Do not use")],
    ["without its end", `${start}\n${body}`],
    ["not at the start of a line", ` ${start}\n${body}${end}`],
  ])("a block %s does not count", (_name, file) => {
    expect(searchWholeBlocks(file)).toEqual([]);
    expect(markedBlock.removeWhole(file)).toBe(file);
    expect(markedBlock.adopt(file, "context")).toBe(file);
  });

  test("renames a block of another section in place, unless the section has its own", () => {
    const renamed = markedBlock.adopt(crlf(`mine\n\n${block}\n`), "Für alle");
    expect(renamed).toBe(markedBlock.put("mine\r\n", "Für alle", body));
    expect(markedBlock.adopt(markedBlock.put(undefined, "start", body), "end")).toBe(
      markedBlock.put(undefined, "end", body),
    );
    expect(markedBlock.adopt(both, "two")).toBe(both);
    expect(markedBlock.adopt(both, "context")).toBe(both.replaceAll(":one", ":context"));
  });
});

describe("finding", () => {
  test("a block has its text, hash and place", () => {
    expect(find(`a\n\n${block}\nb`)).toEqual({
      kind: "block",
      block: { start: 3, end: 3 + block.length, body, hash, edited: false },
    });
    expect(find("nothing")).toEqual({ kind: "none" });
    expect(find(block.replaceAll(":context", ":other"))).toEqual({ kind: "none" });
  });

  test("a block with CRLF has the same hash and text", () => {
    expect(find(crlf(block))).toMatchObject({ kind: "block", block: { body, edited: false } });
    expect(blockHash(crlf(body))).toBe(hash);
  });

  test("a changed text, a wrong hash and a missing hash are edits", () => {
    for (const file of [
      block.replace("Use it.", "Use this."),
      block.replace(hash, "0123456789abcdef"),
      block.replace(` sha256=${hash}`, ""),
      block.replace(`sha256=${hash}`, "sha256="),
    ]) {
      expect(find(file)).toMatchObject({ kind: "block", block: { edited: true } });
    }
  });

  test.each([
    ["only a start marker", `a\n${start}\nb\n`, 2, "has no end marker"],
    ["only an end marker", `a\n${end}\nb\n`, 2, "has no start marker"],
    ["markers in the wrong order", `${end}\nx\n${start}\n`, 1, "has no start marker"],
    ["two blocks", `${block}\n\n${block}\n`, 7, "second block"],
    ["two blocks, the first one edited", `${block.replace("Use", "Yes")}\n${block}\n`, 6, "second"],
    ["a second end marker", `${block}\n${end}\n`, 6, "second block, or a marker"],
    ["a second start marker", `${start}\n${block.replace("it", "us")}\n`, 2, "second start"],
  ])("%s is broken, and neither written nor removed", (_name, file, line, problem) => {
    expect(find(file)).toEqual({ kind: "broken", line, problem: expect.stringContaining(problem) });
    const refusal = expect.objectContaining({ code: "refused_target", line });
    expect(() => put(file)).toThrow(refusal);
    expect(() => remove(file)).toThrow(refusal);
  });
});

describe("code fences", () => {
  test.each([
    ["a whole block", `\`\`\`\n${block}\n\`\`\`\n`],
    ["a start marker", `~~~md\n${start}\n~~~\ntext\n`],
    ["an end marker", `\`\`\`\`\n\`\`\`\n${end}\n\`\`\`\`\n`],
    ["an indented marker", `    ${start}\n`],
    ["a quoted marker", `> ${start}\n`],
    ["a block below an item's open fence", `- \`\`\`sh\n  npm test\n\n\`\`\`md\n${block}\n\`\`\`\n`],
    ["a block below indented ticks", `    \`\`\`\n\n\`\`\`md\n${block}\n\`\`\`\n`],
  ])("%s in an example is text", (_name, file) => {
    expect(find(file)).toEqual({ kind: "none" });
    const written = put(file);
    expect(written).toBe(`${file}\n${block}\n`);
    expect(put(written)).toBe(written);
    expect(remove(written)).toBe(file);
  });

  test.each([
    ["that is never closed", "```\nfoo\n"],
    ["closed only by an indented one", "```\nfoo\n        ```\n"],
    ["that a list item opens on its own line", "- ```sh\n  npm ci\n  ```\n"],
    ["left open in a list item", "- ```sh\n  npm ci\n"],
  ])("a person's fence %s does not hide the block", (_name, file) => {
    const fenced = "Text\n```js\ncode\n```\n";
    const written = put(file, fenced);
    expect(find(written)).toMatchObject({ kind: "block", block: { body: fenced, edited: false } });
    expect(put(written, fenced)).toBe(written);
    expect(remove(written)).toBe(file);
  });

  test("a body may leave a fence open, and may show plimsoll's markers", () => {
    for (const text of [
      "```\nopen\n",
      `\`\`\`\n${block}\n\`\`\`\n`,
      `\`\`\`\n${end}\n\`\`\`\n`,
      `${end}\n`,
      `${block}\n`,
    ]) {
      const written = `${put("mine\n", text)}\n\`\`\`js\nx\n\`\`\`\n`;
      expect(find(written)).toMatchObject({ kind: "block", block: { body: text, edited: false } });
      expect(put(written, text)).toBe(written);
    }
  });
});

test("a block of another section may show plimsoll's markers and leave a fence open", () => {
  const other = markedBlock.put(markedBlock.put("```\nopen\n", "context", body), "other", `\`\`\`\n${start}\n${end}\n`);
  expect(find(other)).toMatchObject({ kind: "block", block: { body, edited: false } });
  expect(markedBlock.remove(remove(other)!, "other").file).toBe("```\nopen\n");
});

test("searches a large file with thousands of markers quickly", () => {
  const before = process.cpuUsage();
  for (const piece of [
    `${start}\n`,
    `${end}\n`,
    `${block}\n`,
    "```js\n",
    "```\n",
    "- ```\n",
    `${start}\n${end}\n`,
    "\n",
  ]) {
    find(piece.repeat(500_000 / piece.length) + block);
  }
  expect(process.cpuUsage(before).user / 1_000).toBeLessThan(4_000);
});

const frontMatter = "---\ndescription: x\nalwaysApply: true\n---";
const line = /<!-- plimsoll:owns sha256=[0-9a-f]{16} -->\n/;

test("the ownership line comes first, or right after the front matter", () => {
  expect(renderOwnedFile({ preamble: "", body: "Text\n" }).replace(line, "OWNED\n")).toBe("OWNED\nText\n");
  expect(renderOwnedFile({ preamble: frontMatter, body: "Text\n" }).replace(line, "OWNED\n")).toBe(
    `${frontMatter}\nOWNED\nText\n`,
  );
  expect(renderOwnedFile({ preamble: `${frontMatter}\nIntro`, body: "Text" }).replace(line, "OWNED\n")).toBe(
    `${frontMatter}\nOWNED\nIntro\nText\n`,
  );
});

test("recognises a file as plimsoll wrote it, also with CRLF or a byte order mark", () => {
  const file = renderOwnedFile({ preamble: frontMatter, body: "Text \xc3\xa9\n" });
  for (const each of [file, file.replaceAll("\n", "\r\n"), `\xef\xbb\xbf${file}`]) {
    expect(readOwnership(each)).toEqual({ kind: "ours", edited: false });
  }
});

test("a change anywhere is an edit, even in the front matter", () => {
  const file = renderOwnedFile({ preamble: frontMatter, body: "Text\n" });
  for (const each of [file.replace("Text", "Mine"), file.replace("true", "false"), `${file}more\n`]) {
    expect(readOwnership(each)).toEqual({ kind: "ours", edited: true });
  }
  expect(readOwnership(file.replace(/sha256=\w+/, "sha256=0123456789abcdef"))).toEqual({
    kind: "ours",
    edited: true,
  });
});

test("every other file is foreign, even one that quotes the line", () => {
  const file = renderOwnedFile({ preamble: "", body: "Text\n" });
  for (const each of ["", "Text\n", `# Mine\n\n${file}`, `\`\`\`\n${file}\`\`\`\n`, "---\nopen: front matter\n"]) {
    expect(readOwnership(each)).toEqual({ kind: "foreign" });
  }
});
