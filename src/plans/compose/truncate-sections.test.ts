import { describe, expect, it } from "vitest";
import { type Counter, createCounter } from "../../core/tokens/index.ts";
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
  it("of the longest section are removed first; headings, discoveries and spacing stay", () => {
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

  it("come first from every section, then a second one from any", () => {
    const text = ["Entanglements", "Claims", "Phases", "Notes"]
      .map((name, index) => `### ${name}\n${list(`${name} ${"x".repeat(40 * index)}`, 12)}`)
      .join("\n");
    const kept = (limit: number) => {
      const { text: fitted } = fitTo(text, limit);
      return fitted
        .split("### ")
        .slice(1)
        .map((part) => part.split("\n- ").length - 1);
    };
    const seen = new Set<string>();
    for (let limit = 0; limit < text.length; limit += 5) {
      const counts = kept(limit);
      seen.add(counts.join());
      if (counts.length === 4 && Math.max(...counts) > 1) expect(Math.min(...counts)).toBeGreaterThan(0);
    }
    // The shortest first items come first.
    expect([...seen]).toEqual(expect.arrayContaining(["0,0,0,0", "1,1,0,0", "1,1,1,0", "1,1,1,1"]));
  });

  it("of a fabric with long entries are kept, one of each section, at 1,000 tokens", async () => {
    const counter = await createCounter("bytes/4");
    const words = (name: string, count: number, length: number) =>
      Array.from({ length: count }, (_, at) => `- ${name} ${at} ${"word ".repeat(length / 5)}\n`).join("");
    const large = [
      `### Completed Phases\n${words("phase", 8, 60)}`,
      `### Available Entanglements\n${words("entanglement", 20, 400)}`,
      `### Active File Claims\n${words("claim", 15, 60)}`,
      `### Unresolved Discoveries\n${words("discovery", 5, 300)}`,
      `### Shared Notes\n${words("note", 6, 300)}`,
    ].join("\n");
    const { text: fitted, tokens } = createSectionsLayer(large, { counter, maxTokens: 1_000 }).fit(1_000);
    expect(counter.count(large)).toBeGreaterThan(3_000);
    expect(tokens).toBeLessThanOrEqual(1_000);
    for (const name of ["phase", "entanglement", "claim", "note"]) expect(fitted).toContain(`\n- ${name} 0 `);
    expect(fitted.match(/- discovery/g)).toHaveLength(5);
  });

  it("go before headings at 38 tokens", async () => {
    const counter = await createCounter("bytes/4");
    const small = `## Entanglements\n${list("ent", 10)}\n## Discoveries\n- BLOCKER: critical issue\n\n## File Claims\n- file1\n- file2`;
    const { text: fitted, tokens } = createSectionsLayer(small, { counter, maxTokens: 38 }).fit(38);
    expect(tokens).toBeLessThanOrEqual(38);
    for (const heading of ["## Entanglements", "## Discoveries", "## File Claims"]) expect(fitted).toContain(heading);
    expect(fitted).toContain("- BLOCKER: critical issue");
  });

  it("of equally long sections are removed from the last one first", () => {
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

  it("stay if a line about them would be longer than they are", () => {
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
  it("in fences, in comments and of other levels start no section", () => {
    const text = `# Title\n\n\`\`\`md\n## code\n\`\`\`\n<!--\n## comment\n-->\n ## indented\n##none\n## Real\n${list("item", 40)}`;
    const { text: cut, omitted } = fitTo(text, 300);
    expect(cut).toContain("-->\n ## indented\n##none\n## Real\n- item 0");
    expect(omitted).toBe(40 - (cut.match(/- item/g)?.length ?? 0));
  });

  it("of sections without discoveries are removed before discoveries, the last first", () => {
    const text = `## One\n${list("one", 9)}## Discoveries\n${list("found", 5)}## Two\n${list("two", 9)}`;
    const discoveries = `## Discoveries\n${list("found", 5)}`;
    const both = `## One\n... and 9 more items\n\n${discoveries}## Two\n... and 9 more items\n\n[... truncated, 18 items omitted]`;
    expect(layerOf(text).least).toBe(both.length);
    const facts = { omitted: 18, overflow: 0 };
    expect(fitTo(text, both.length)).toMatchObject({ text: both, ...facts });
    const cuts = [
      both.replace("## Two\n... and 9 more items", "## Two"),
      both.replaceAll("\n... and 9 more items", ""),
      `## One\n\n${discoveries}\n[... truncated, 18 items omitted]`,
      `${discoveries}\n[... truncated, 18 items omitted]`,
    ];
    for (const cut of cuts) expect(fitTo(text, cut.length)).toMatchObject({ text: cut, ...facts });
  });
});

describe("discoveries", () => {
  const text = `## One\n${list("one", 9)}## Discoveries\n${list("found", 5)}`;
  const alone = `## Discoveries\n${list("found", 5)}\n[... truncated, 9 items omitted]`.length;

  it("that do not fit are cut, and the overflow is reported", () => {
    const cut = `## Discoveries\n- found 0\n... and 4 more discoveries\n\n[... truncated, 13 items omitted]`;
    const facts = { tokens: cut.length, truncated: true, omitted: 13, isBelowLeast: true };
    expect(fitTo(text, cut.length)).toEqual({ text: cut, ...facts, overflow: alone - cut.length });
  });

  it("alone in a layer overflow by the size of the layer, without a marker", () => {
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

async function fitManySections(section: string): Promise<void> {
  const counter = await createCounter("exact:o200k");
  const layer = createSectionsLayer(section.repeat(200_000), { counter, maxTokens: 10_000 });
  const { text, tokens } = layer.fit(10_000);
  expect(tokens).toBeGreaterThan(9_990);
  expect(text.startsWith(section)).toBe(true);
}

it.each(["## a\n- b\n", "## a\n", "## Discoveries\n- b\n"])(
  "a layer of a great many sections %j costs what can stay of it",
  { timeout: 20_000, tags: ["deep"] },
  fitManySections,
);

it("brackets that are never closed take linear time", { timeout: 2_000 }, () => {
  const heading = `## Notes (2) ${"(".repeat(100_000)}`;
  expect(fitTo(`${heading}\n### Claims\n${list("claim", 99)}`, 100)).toMatchObject({
    text: "[... truncated, 99 items omitted]",
    overflow: 0,
  });
});

it("a fence that ends with its item hides no later section", () => {
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
