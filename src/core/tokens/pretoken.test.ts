import { Tiktoken } from "tiktoken";
import { describe, expect, it } from "vitest";
import { type PretokenEnd, pretokenEnds } from "./pretoken.ts";
import { pretokenClasses } from "./pretoken-classes.data.ts";

function split(text: string, pretokenEnd: PretokenEnd): string[] {
  const bytes = new TextEncoder().encode(text);
  const pieces: string[] = [];
  for (let start = 0; start < bytes.length; ) {
    const end = pretokenEnd(bytes, start, bytes.length);
    pieces.push(new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(start, end)));
    start = end;
  }
  return pieces;
}

describe("o200k", () => {
  it.each([
    ["camelCaseWord HTTPServer", ["camel", "Case", "Word", " HTTPServer"]],
    ["it's IT'S x'ſ o'clock", ["it's", " IT'S", " x'ſ", " o", "'clock"]],
    ["12345 67", ["123", "45", " ", "67"]],
    ["a   b\n\n  c  ", ["a", "  ", " b", "\n\n", " ", " c", "  "]],
    ["x();\n//\n/ y", ["x", "();\n//\n/", " y"]],
    ["中A中a e\u0301", ["中A中a", " e\u0301"]],
    ["中AB", ["中", "AB"]],
    ["!\u0301 !!\u0301", ["!\u0301", " !!\u0301"]],
    ["\u0301A", ["\u0301", "A"]],
    ["a\ufeffb\u0085c", ["a", "\ufeffb", "\u0085c"]],
  ])("splits %j", (text, pieces) => {
    expect(split(text, pretokenEnds.o200k)).toEqual(pieces);
  });
});

describe("cl100k", () => {
  it.each([
    ["camelCaseWord HTTPServer", ["camelCaseWord", " HTTPServer"]],
    ["it's IT'S 'ſa o'clock", ["it", "'s", " IT", "'S", " '", "ſa", " o", "'clock"]],
    ["x();\n//\n/ y", ["x", "();\n", "//\n", "/", " y"]],
    ["e\u0301e", ["e", "\u0301e"]],
    ["a\n  ", ["a", "\n", "  "]],
  ])("splits %j", (text, pieces) => {
    expect(split(text, pretokenEnds.cl100k)).toEqual(pieces);
  });
});

it("has the same class as the reference for every code point", { tags: ["deep"] }, () => {
  const classes = new Array<string>(0x110000).fill("H");
  const patterns = {
    A: "[\\p{Lu}\\p{Lt}]",
    B: "\\p{Ll}",
    C: "[\\p{Lm}\\p{Lo}]",
    D: "\\p{M}",
    E: "\\p{N}",
    F: "\\s",
    G: "[\\r\\n]",
  };
  for (const [name, pattern] of Object.entries(patterns)) {
    for (const code of codePointsThatMatch(pattern)) classes[code] = name;
  }
  expect(pretokenClasses).toBe(encodeRuns(classes));
});

/** The reference drops text that no pretoken covers: it returns what the pattern matched. */
function codePointsThatMatch(pattern: string): number[] {
  const singleBytes = Array.from({ length: 256 }, (_, byte) => Buffer.from([byte]).toString("base64"));
  const reference = new Tiktoken(`! 0 ${singleBytes.join(" ")}`, {}, pattern);
  const found: number[] = [];
  for (let start = 0; start < 0x110000; start += 0x1000) {
    if (start >= 0xd000 && start < 0xe000) found.push(...matches(reference, start, 0xd800));
    else found.push(...matches(reference, start, start + 0x1000));
  }
  reference.free();
  return found;
}

function matches(reference: Tiktoken, start: number, end: number): number[] {
  const text = Array.from({ length: end - start }, (_, index) => String.fromCodePoint(start + index)).join("");
  const bytes = reference.decode(reference.encode_ordinary(text));
  return Array.from(new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes), (each) => each.codePointAt(0)!);
}

function encodeRuns(classes: readonly string[]): string {
  let runs = "";
  for (let start = 0; start < classes.length; ) {
    let end = start + 1;
    while (end < classes.length && classes[end] === classes[start]) end += 1;
    runs += classes[start]! + (end - start === 1 ? "" : (end - start).toString(36));
    start = end;
  }
  return runs;
}
