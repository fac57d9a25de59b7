import { expect, test } from "vitest";
import { readOwnership, renderOwnedFile } from "./owned-file.ts";

const frontMatter = "---\ndescription: x\nalwaysApply: true\n---";
const line = /<!-- plimsoll:owns sha256=[0-9a-f]{16} -->\n/;

test("the ownership line comes first, or right behind the front matter", () => {
  expect(renderOwnedFile({ preamble: "", body: "Text\n" }).replace(line, "OWNED\n")).toBe("OWNED\nText\n");
  expect(renderOwnedFile({ preamble: frontMatter, body: "Text\n" }).replace(line, "OWNED\n")).toBe(
    `${frontMatter}\nOWNED\nText\n`,
  );
  expect(renderOwnedFile({ preamble: `${frontMatter}\nIntro`, body: "Text" }).replace(line, "OWNED\n")).toBe(
    `${frontMatter}\nOWNED\nIntro\nText\n`,
  );
});

test("a file as we wrote it is ours, also with CRLF or a byte order mark", () => {
  const file = renderOwnedFile({ preamble: frontMatter, body: "Text \xc3\xa9\n" });
  for (const each of [file, file.replaceAll("\n", "\r\n"), `\xef\xbb\xbf${file}`]) {
    expect(readOwnership(each)).toEqual({ kind: "ours", edited: false });
  }
});

test("a change anywhere in it is an edit, in the front matter too", () => {
  const file = renderOwnedFile({ preamble: frontMatter, body: "Text\n" });
  for (const each of [file.replace("Text", "Mine"), file.replace("true", "false"), `${file}more\n`]) {
    expect(readOwnership(each)).toEqual({ kind: "ours", edited: true });
  }
  expect(readOwnership(file.replace(/sha256=\w+/, "sha256=0123456789abcdef"))).toEqual({
    kind: "ours",
    edited: true,
  });
});

test("every other file is foreign, also one that quotes the line", () => {
  const file = renderOwnedFile({ preamble: "", body: "Text\n" });
  for (const each of [
    "",
    "Text\n",
    `# Mine\n\n${file}`,
    `\`\`\`\n${file}\`\`\`\n`,
    "---\nopen: front matter\n",
  ]) {
    expect(readOwnership(each)).toEqual({ kind: "foreign" });
  }
});
