import { describe, expect, test } from "vitest";
import { parseSegments, type Segment, textAt, tiersAt, verbosities } from "./verbosity.ts";

const detail = "<!-- verbosity:detail -->\n";
const extended = "<!-- verbosity:extended -->\n";
const core = "<!-- verbosity:core -->\n";
const segmentsOf = (markdown: string) => parseSegments(markdown).segments;
const warningsOf = (markdown: string) => parseSegments(markdown).warnings;
const at = (markdown: string) => verbosities.map((each) => textAt(segmentsOf(markdown), each));

describe("tiers", () => {
  test("text without markers is core at every verbosity", () => {
    const text = "## Title\n\nAll content here.\n";
    expect(segmentsOf(text)).toEqual([{ tier: "core", text }]);
    expect(at(text)).toEqual([text, text, text]);
  });

  test("each marker starts a tier that keeps its own final line break", () => {
    expect(segmentsOf(`Core content.\n${detail}Detail content.\n${extended}Extended content.\n`)).toEqual([
      { tier: "core", text: "Core content.\n" },
      { tier: "detail", text: "Detail content.\n" },
      { tier: "extended", text: "Extended content.\n" },
    ]);
  });

  // Grouping by tier would return "A.\\nC.\\nB.\\n" at full. A reader of the whole file gets the order of the document.
  test("a reset to core keeps the order of the document", () => {
    const text = `A.\n${detail}B.\n${core}C.\n`;
    expect(segmentsOf(text)).toEqual([
      { tier: "core", text: "A.\n" },
      { tier: "detail", text: "B.\n" },
      { tier: "core", text: "C.\n" },
    ]);
    expect(at(text)).toEqual(["A.\nC.\n", "A.\nB.\nC.\n", "A.\nB.\nC.\n"]);
  });

  test("a tier without text leaves no segment", () => {
    expect(segmentsOf(`Core.\n${detail}${extended}Extended.\n`)).toEqual([
      { tier: "core", text: "Core.\n" },
      { tier: "extended", text: "Extended.\n" },
    ]);
    expect(segmentsOf("")).toEqual([]);
  });

  test("a verbosity includes the tiers below it", () => {
    const segments: Segment[] = [
      { tier: "core", text: "C." },
      { tier: "detail", text: "D." },
      { tier: "extended", text: "E." },
    ];
    expect(verbosities.map((each) => textAt(segments, each))).toEqual(["C.", "C.D.", "C.D.E."]);
    const withoutDetail = segments.filter(({ tier }) => tier !== "detail");
    expect(verbosities.map((each) => textAt(withoutDetail, each))).toEqual(["C.", "C.", "C.E."]);
    expect(tiersAt("standard")).toEqual(["core", "detail"]);
  });
});

describe("markers", () => {
  test("an unknown level is core, with a helpful warning", () => {
    const text = "A.\n<!-- verbosity:bogus -->\nB.\n<!-- verbosity:Detial -->\nC.\n";
    expect(segmentsOf(text)).toEqual([{ tier: "core", text: "A.\nB.\nC.\n" }]);
    expect(warningsOf(text)).toEqual([
      {
        line: 2,
        message: 'unknown verbosity level "bogus", treated as core. Levels are core, detail, extended.',
      },
      { line: 4, message: 'unknown verbosity level "Detial", treated as core. Did you mean "detail"?' },
    ]);
    expect(segmentsOf("<!-- verbosity: -->\nB.")).toEqual([{ tier: "core", text: "B." }]);
  });

  test("markers inside code fences are text", () => {
    const text = `A.\n\`\`\`md\n${detail}\`\`\`\n~~~~\n${extended}~~~\n${core}~~~~\nB.\n`;
    expect(parseSegments(text)).toEqual({ segments: [{ tier: "core", text }], warnings: [] });
  });

  test("reports a fence without an end, which contains all the rest", () => {
    const text = `A.\n\`\`\`\n${detail}B.\n`;
    expect(segmentsOf(text)).toEqual([{ tier: "core", text }]);
    expect(warningsOf(text)).toEqual([{ line: 2, message: expect.stringContaining("has no end") }]);
  });

  test("an indented marker counts and is removed, with a warning", () => {
    const { segments, warnings } = parseSegments("A.\n  <!-- verbosity:detail -->\nB.\n");
    expect(segments).toEqual([
      { tier: "core", text: "A.\n" },
      { tier: "detail", text: "B.\n" },
    ]);
    expect(warnings).toEqual([{ line: 2, message: expect.stringContaining("indented") }]);
  });

  test("a quoted marker and one in inline code are text", () => {
    const text = "> <!-- verbosity:detail -->\nWrite `<!-- verbosity:detail -->`.\n";
    expect(parseSegments(text)).toEqual({ segments: [{ tier: "core", text }], warnings: [] });
  });

  test("keeps a marker after other text, with a warning", () => {
    const text = "A. <!-- verbosity:detail -->\nB.\n";
    expect(segmentsOf(text)).toEqual([{ tier: "core", text }]);
    expect(warningsOf(text)).toEqual([{ line: 1, message: expect.stringContaining("its own line") }]);
  });

  test("text after a marker on its line belongs to the new tier", () => {
    expect(segmentsOf("A.\n<!-- verbosity:detail --> B.\n")).toEqual([
      { tier: "core", text: "A.\n" },
      { tier: "detail", text: " B.\n" },
    ]);
  });

  test("CRLF, spaces, missing spaces and a byte order mark leave nothing behind", () => {
    expect(segmentsOf("A.\r\n<!-- verbosity:detail -->\r\nB.\r\n")).toEqual([
      { tier: "core", text: "A.\r\n" },
      { tier: "detail", text: "B.\r\n" },
    ]);
    expect(segmentsOf("<!--verbosity:detail-->  \nB.")).toEqual([{ tier: "detail", text: "B." }]);
    expect(warningsOf("\uFEFF<!-- verbosity:detail -->\nB.")).toEqual([]);
  });

  test("removes a marker in the last line without a line break", () => {
    expect(segmentsOf("A.\n<!-- verbosity:detail -->")).toEqual([{ tier: "core", text: "A.\n" }]);
  });
});
