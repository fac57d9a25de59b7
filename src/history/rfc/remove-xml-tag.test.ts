import { expect, test } from "vitest";
import { removeXmlTag } from "./remove-xml-tag.ts";

test.each([
  ["<checkpoint_id>abc-123</checkpoint_id>\nHello, world!", "Hello, world!"],
  ["Hello, world!\n<checkpoint_id>abc\n123</checkpoint_id>\n", "Hello, world!"],
  ["a<checkpoint_id>1</checkpoint_id>b<checkpoint_id>2</checkpoint_id>c", "abc"],
  ["a <checkpoint_id>1</checkpoint_id> b", "a  b"],
  ["\n a<checkpoint_id>1</checkpoint_id>b \n", "\n ab \n"],
  ["<checkpoint_id>1</checkpoint_id>\n\n<checkpoint_id>2</checkpoint_id>\n  hi", "hi"],
  ["\n<checkpoint_id>1</checkpoint_id>hi\n", "hi\n"],
  ["<checkpoint_id>1</checkpoint_id>", ""],
  ["<checkpoint_id>1<checkpoint_id>2</checkpoint_id>3</checkpoint_id>", "3</checkpoint_id>"],
])("%j becomes %j", (text, expected) => {
  expect(removeXmlTag("checkpoint_id", text)).toBe(expected);
});

test.each([
  "",
  "  hi\n",
  "<checkpoint_id>open",
  "closed</checkpoint_id>",
  "</checkpoint_id><checkpoint_id>",
  "<other>1</other>",
])("%j has no such tag and stays, outer white space included", (text) => {
  expect(removeXmlTag("checkpoint_id", text)).toBe(text);
});

test("a name is no pattern", () => {
  expect(removeXmlTag("a.c", "<abc>1</abc><a.c>2</a.c>!")).toBe("<abc>1</abc>!");
  expect(() => removeXmlTag("", "<>1</>")).toThrow("a tag must have a name");
});

test("a megabyte of beginnings without an end costs one pass", () => {
  const text = "<checkpoint_id>".repeat(70_000);
  const before = process.cpuUsage();
  expect(removeXmlTag("checkpoint_id", text)).toBe(text);
  // A pass for each beginning would be 35 GB of text.
  expect(process.cpuUsage(before).user / 1_000).toBeLessThan(1_000);
});
