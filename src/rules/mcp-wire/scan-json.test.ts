import { expect, test } from "vitest";
import { scanJson } from "./scan-json.ts";

test("skips comments and says where the last one ends", () => {
  const text = '{/* { */ "a//" // b\r\n: -1.5e3 // c\n}';
  const { root, read, lineAt } = scanJson(text, ["a//"]);
  const [member] = root!.object!.members;
  expect(member).toMatchObject({ key: "a//", gap: 8, start: 9, value: { start: 23, end: 29 }, commaEnd: undefined });
  expect(root!.object).toMatchObject({ lastEnd: 34, endsInLineComment: true });
  expect([lineAt(member!.start), lineAt(member!.value.start)]).toEqual([1, 2]);
  expect(read(root!)).toEqual({ data: { "a//": -1500 }, hasComments: true });
  expect(read(member!.value)).toEqual({ data: -1500, hasComments: false });
});

test.each(['"a', '"a\n"', '"a\\"', "+1", "nul", "/", "/* *", "\0"])("refuses %j", (text) => {
  expect(() => scanJson(text, [])).toThrow("is not valid JSON");
});
