import { expect, test } from "vitest";
import { createDiff } from "./unified-diff.ts";

const diff = await createDiff((path) => path);
const of = (before: string | undefined, after: string | undefined) =>
  diff({ path: "A.md", before, after } as Parameters<typeof diff>[0]);

test("a change of a few lines is shown with the lines around it", () => {
  expect(of("a\nb\nc\n", "a\nx\nc\n")).toBe("--- A.md\n+++ A.md\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n");
  expect(of("same", "same")).toBe("");
});

test("a new file is all added, whatever its length and its last line", () => {
  for (const count of [1, 3, 9_000]) {
    const [text, added] = ["a\n".repeat(count), "+a\n".repeat(count)];
    const span = `1,${count}`;
    expect(of(undefined, text)).toBe(`--- /dev/null\n+++ A.md\n@@ -0,0 +${span} @@\n${added}`);
    expect(of(text, undefined)).toBe(`--- A.md\n+++ /dev/null\n@@ -${span} +0,0 @@\n${added.replaceAll("+", "-")}`);
    expect(of("", text.trimEnd())).toBe(
      `--- A.md\n+++ A.md\n@@ -0,0 +${span} @@\n${added}\\ No newline at end of file\n`,
    );
  }
});

test("very many other lines are replaced as a whole, soon", { tags: ["deep"] }, () => {
  const [before, after] = ["a\n".repeat(200_000), "b\n".repeat(200_000)];
  const start = process.cpuUsage();
  const patch = of(`one\n${before}`, `one\n${after}`);
  expect(process.cpuUsage(start).user / 1_000).toBeLessThan(4_000);
  expect(patch.startsWith("--- A.md\n+++ A.md\n@@ -1,200001 +1,200001 @@\n-one\n-a\n")).toBe(true);
  expect(patch.endsWith("+b\n+b\n")).toBe(true);
});
