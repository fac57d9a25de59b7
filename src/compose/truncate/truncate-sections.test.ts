import { describe, expect, it } from "vitest";
import { type Counter, createCounter } from "../../tokens/index.ts";
import { createSectionsLayer } from "./truncate-sections.ts";

/** A token a byte, so that the limits of the examples are their lengths. */
const bytes: Counter = { name: "bytes", count: (text) => Buffer.byteLength(text) };
const layerOf = (text: string) => createSectionsLayer(text, { counter: bytes, maxTokens: 100_000 });
const fitTo = (text: string, limit: number) => layerOf(text).fit(limit);

const list = (name: string, count: number): string =>
  Array.from({ length: count }, (_, at) => `- ${name} ${at}\n`).join("");
const fabric = `## Fabric

### Available Entanglements

${list("entanglement", 10)}
### Unresolved Discoveries

- BLOCKER: critical issue

### Active File Claims

${list("claim", 2)}`;

describe("items", () => {
  it("of the longest section give way first, and headings, discoveries and spacing stay", () => {
    const expected = `## Fabric

### Available Entanglements

${list("entanglement", 4)}... and 6 more entanglements

### Unresolved Discoveries

- BLOCKER: critical issue

### Active File Claims

${list("claim", 2)}
[... truncated, 6 items omitted]`;
    const facts = { tokens: expected.length, truncated: true, omitted: 6, isBelowLeast: false, overflow: 0 };
    expect(fitTo(fabric, expected.length)).toEqual({ text: expected, ...facts });
    expect(fitTo(fabric, expected.length + 16)).toEqual({ text: expected, ...facts });
    expect(fitTo(fabric, expected.length - 1)).toMatchObject({ omitted: 7 });
  });

  it("of several sections give way once they are equally long, of the last one first", () => {
    const text = `## Claims\n${list("claim", 20)}## Phases\n${list("phase", 4)}## Others\n${list("other", 20)}`;
    const expected = `## Claims
${list("claim", 9)}... and 11 more claims

## Phases
${list("phase", 4)}## Others
${list("other", 8)}... and 12 more items

[... truncated, 23 items omitted]`;
    expect(fitTo(text, expected.length)).toMatchObject({ text: expected, omitted: 23 });
  });

  it("are called after their section", () => {
    const section = (heading: string): string => {
      const other = "## Other\n- x\n";
      const { text } = fitTo(`${heading}\n${list("something long enough", 9)}${other}`, 90 + heading.length);
      return /more (\w+)/.exec(text)![1]!;
    };
    expect(section("## Completed Phases")).toBe("phases");
    expect(section("### Shared Notes")).toBe("notes");
    expect(section("### FILE CLAIMS")).toBe("claims");
    expect(section("## Entanglements (12)")).toBe("entanglements");
    expect(section("## Anything else")).toBe("items");
    expect(section("before a heading")).toBe("items");
  });

  it("are lines with what is indented below them, and groups are not counted", () => {
    const grouped = `## Entanglements
#### one (from: a)
- first
  more of it

  \`\`\`js
  ## no heading
  - no item
  \`\`\`
- second
#### two
- third, which is a little longer than the others
plain
#### empty
## Notes
`;
    const expected = `## Entanglements
#### one (from: a)
- first
  more of it

  \`\`\`js
  ## no heading
  - no item
  \`\`\`
... and 4 more entanglements

## Notes

[... truncated, 4 items omitted]`;
    expect(fitTo(grouped, expected.length)).toMatchObject({ text: expected, omitted: 4 });
    expect(fitTo(grouped, 100).text).toBe(
      "## Entanglements\n... and 5 more entanglements\n\n## Notes\n\n[... truncated, 5 items omitted]",
    );
  });

  it("that would need more room to be told of than to be shown stay", () => {
    const text = `## Claims\n- a\n## Notes\n${list("note", 30)}`;
    expect(fitTo(text, 110).text).toContain("## Claims\n- a\n## Notes\n");
  });

  it("of which not one fits show the beginning of the first", () => {
    const { text, omitted } = fitTo(`## Notes\n- ${"word ".repeat(100)}\n- more\n`, 120);
    expect(text).toMatch(
      /^## Notes\n- word [word ]+word\n\.\.\. and 2 more notes\n\n\[\.\.\. truncated, 2 items omitted\]$/,
    );
    expect(omitted).toBe(2);
  });
});

describe("headings", () => {
  it("in fences, comments and of other levels begin no section", () => {
    const text = `# Title\n\n\`\`\`md\n## code\n\`\`\`\n<!--\n## comment\n-->\n ## indented\n##none\n## Real\n${list("item", 40)}`;
    const { text: cut, omitted } = fitTo(text, 300);
    expect(cut).toContain("-->\n ## indented\n##none\n## Real\n- item 0");
    expect(omitted).toBe(40 - (cut.match(/- item/g)?.length ?? 0));
  });

  it("of sections without discoveries give way for discoveries, the last first", () => {
    const text = `## One\n${list("one", 9)}## Discoveries\n${list("found", 5)}## Two\n${list("two", 9)}`;
    const discoveries = `## Discoveries\n${list("found", 5)}`;
    const withOne = `## One\n... and 9 more items\n\n${discoveries}\n[... truncated, 18 items omitted]`;
    expect(fitTo(text, withOne.length)).toMatchObject({ text: withOne, omitted: 18, overflow: 0 });
    const alone = `${discoveries}\n[... truncated, 18 items omitted]`;
    expect(fitTo(text, withOne.length - 1)).toMatchObject({ text: alone, omitted: 18, overflow: 0 });
    const withBoth = withOne.replace("\n[", "## Two\n... and 9 more items\n\n[");
    expect(layerOf(text).least).toBe(withBoth.length);
    expect(fitTo(text, withBoth.length).text).toBe(withBoth);
  });
});

describe("discoveries", () => {
  const text = `## One\n${list("one", 9)}## Discoveries\n${list("found", 5)}`;
  const alone = `## Discoveries\n${list("found", 5)}\n[... truncated, 9 items omitted]`.length;

  it("that do not fit are cut, and it is said by how much", () => {
    const cut = `## Discoveries\n- found 0\n... and 4 more discoveries\n\n[... truncated, 13 items omitted]`;
    const facts = { tokens: cut.length, truncated: true, omitted: 13, isBelowLeast: true };
    expect(fitTo(text, cut.length)).toEqual({ text: cut, ...facts, overflow: alone - cut.length });
  });

  it("that are all there is are too long by what the layer is, and not by a marker that it would not have", () => {
    const only = `## Discoveries\n${list("found", 20)}`.trimEnd();
    const note = "... and 20 more discoveries\n\n[... truncated, 20 items omitted]".length;
    for (let limit = note + 20; limit < only.length; limit++) {
      const { overflow } = fitTo(only, limit);
      expect(overflow).toBe(only.length - limit);
      expect(fitTo(only, limit + overflow)).toMatchObject({ text: only, overflow: 0 });
    }
    const beside = `## One\n- a\n${only}`;
    expect(fitTo(beside, 100).overflow).toBe(beside.length - 100);
  });

  it("of which none fits leave their heading, then the marker, then nothing", () => {
    const marker = "[... truncated, 14 items omitted]";
    const heading = `## Discoveries\n... and 5 more discoveries\n\n${marker}`;
    expect(fitTo(text, heading.length)).toMatchObject({ text: heading, overflow: alone - heading.length });
    expect(fitTo(text, marker.length)).toMatchObject({ text: marker, omitted: 14 });
    expect(fitTo(text, marker.length - 1)).toMatchObject({ text: "", tokens: 0, omitted: 14 });
  });

  it("are also the sections below their heading, but not those of a heading that counts them", () => {
    const below = `## Discoveries\n### Blocking\n${list("found", 20)}## Notes\n${list("note", 20)}`;
    expect(fitTo(below, 330).text).toContain(`### Blocking\n${list("found", 20)}`);
    const counted = `## Fabric (3 discoveries)\n### Notes\n${list("note", 20)}### Discoveries\n${list("found", 3)}`;
    expect(fitTo(counted, 200)).toMatchObject({ overflow: 0 });
    expect(fitTo(counted, 200).text).toMatch(/more notes/);
  });
});

it("blank lines around sections are no more than one where something is cut", () => {
  const text = `\n\n\n## Claims\n- one\n\n\n\n\n## Notes\n${list("note", 30)}\n\n`;
  expect(fitTo(text, 100).text).toMatch(/^## Claims\n- one\n\n## Notes\n- note 0\n/);
  expect(fitTo(`## Claims\n- one\n${"\n".repeat(100_001)}## Notes\n- two\n`, 1_000)).toMatchObject({
    text: "## Claims\n- one\n\n## Notes\n- two\n\n[... truncated, 0 items omitted]",
    omitted: 0,
  });
});

it("a layer of a great many sections costs what can stay of it", { timeout: 20_000 }, async () => {
  const counter = await createCounter("exact:o200k");
  const measure = { counter, maxTokens: 10_000 };
  for (const section of ["## a\n", "## a\n- b\n", "## Discoveries\n- b\n"]) {
    const layer = createSectionsLayer(section.repeat(200_000), measure);
    const { text, tokens } = layer.fit(10_000);
    expect(tokens).toBeGreaterThan(9_990);
    expect(text.startsWith(section)).toBe(true);
  }
});

it("brackets that are never closed cost what they are", { timeout: 2_000 }, () => {
  const heading = `## Notes (2) ${"(".repeat(100_000)}`;
  expect(fitTo(`${heading}\n### Claims\n${list("claim", 99)}`, 100)).toMatchObject({
    text: "[... truncated, 99 items omitted]",
    overflow: 0,
  });
});

it("a fence that ends with its item hides no section behind it", () => {
  const text = `### Entanglements\n- \`\`\`ts\n  function a()\n${list("function", 60)}\n### Discoveries\n- do not touch billing\n`;
  const { text: cut, omitted, overflow } = fitTo(text, 200);
  expect(cut).toMatch(/^### Entanglements\n- ```ts\n {2}function a\(\)\n- function 0\n/);
  expect(cut).toContain("\n### Discoveries\n- do not touch billing\n\n[");
  expect([omitted, overflow]).toEqual([61 - cut.split("function ").length + 1, 0]);
});

it("a fence that the layer leaves open is closed before the marker", () => {
  const text = `## Notes\n${list("note", 30)}## Discoveries\n- see\n\`\`\`\nthe rest is code\n## Claims\n`;
  const { text: cut } = fitTo(text, 200);
  expect(cut).toMatch(/## Claims\n```\n\n\[\.\.\. truncated, \d+ items omitted\]$/);
});
