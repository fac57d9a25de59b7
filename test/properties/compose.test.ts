import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { scanLines } from "../../src/core/text/index.ts";
import { type Counter, counterNames, createCounter } from "../../src/core/tokens/index.ts";
import { type ComposedLayer, type ContextLayers, createPromptComposer } from "../../src/plans/compose/index.ts";
import { caseCount } from "../case-count.ts";
import { checkSections, type DrawnSection, drawnFabric, fabricText } from "./drawn-fabric.ts";

const numRuns = caseCount({ few: 30, deep: 2_000, long: 10_000 });
const timeout = 300_000;

const counters = new Map<string, Counter>();
beforeAll(async () => {
  for (const name of counterNames) counters.set(name, await createCounter(name));
});

const counterName = fc.constantFrom(...counterNames);
const anyBudget = fc.oneof(
  { arbitrary: fc.integer({ min: 0, max: 40 }), weight: 2 },
  { arbitrary: fc.integer({ min: 30, max: 900 }), weight: 3 },
);

/** Lines that mean something, so that they meet. */
const oddLine = fc.oneof(
  fc.constantFrom(
    "",
    " ",
    "```",
    "````js",
    "~~~",
    "- ```",
    "> ~~~",
    ">",
    "    ~~~",
    "<!-- a",
    "-->",
    "[truncated]",
    "\t",
    "\r",
  ),
  fc.constantFrom("# One", "## Two", "### Phases", "#### Four", "## Discoveries", "- item", "  more", "ab\r"),
  fc.constantFrom("中文字符 текст", "👩‍👩‍👧 😀😀", "\ud83d", "a\udc00b", "word ".repeat(40), "x".repeat(150)),
  fc.string({ unit: "binary", maxLength: 12 }),
  fc.string({ unit: "grapheme", maxLength: 30 }),
);
const edge = fc.oneof(
  { arbitrary: fc.constant(""), weight: 6 },
  fc.constantFrom("\n".repeat(4_000), " ".repeat(4_000), "\u2003\r\n\t".repeat(50)),
);
const oddText = fc
  .tuple(edge, fc.array(oddLine, { maxLength: 30 }), edge)
  .map(([before, lines, after]) => before + lines.join("\n") + after);
const oddLayers: fc.Arbitrary<ContextLayers> = fc.record(
  { project: oddText, fabric: oddText, priorWork: oddText },
  { requiredKeys: [] },
);
const share = fc.constantFrom(0, 0.1, 0.4, 1);
const anyShares = fc.option(
  fc
    .record({ project: share, fabric: share, priorWork: share })
    .filter(({ project, fabric, priorWork }) => project + fabric + priorWork > 0),
  { nil: undefined },
);

test("any layers fit any budget by any counter, with whole characters, closed fences, true facts and the same bytes", {
  timeout,
}, () => {
  const property = fc.property(oddLayers, counterName, anyBudget, anyShares, (layers, name, maxTokens, shares) => {
    const counter = counters.get(name)!;
    const result = createPromptComposer({ counter, maxTokens, shares }).compose(layers);
    expect(counter.count(result.text)).toBeLessThanOrEqual(maxTokens);
    expect(result.tokens).toBe(counter.count(result.text));
    expect(result.omitted).toBe(result.layers.reduce((sum, { omitted }) => sum + omitted, 0));
    // UTF-8 has no half of a surrogate pair.
    expect(Buffer.from(result.text).toString()).toBe(result.text);
    expect(createPromptComposer({ counter, maxTokens, shares }).compose(layers)).toEqual(result);
    for (const [part, layer] of partsOf(result.text, result.layers)) {
      expect(counter.count(part)).toBe(layer.tokens);
      expect(scanLines(part, () => {})).toBeUndefined();
      checkPart(part, layer, encoded(layers[layer.name] as string));
    }
  });
  fc.assert(property, { numRuns });
});

test("answers fit any budget by any counter, and no line of one looks like ours", { timeout }, () => {
  const answers = fc.array(fc.record({ heading: oddText, text: oddText }), { minLength: 1, maxLength: 4 });
  const property = fc.property(answers, counterName, anyBudget, (priorWork, name, maxTokens) => {
    const counter = counters.get(name)!;
    const { text, tokens, layers } = createPromptComposer({ counter, maxTokens }).compose({ priorWork });
    expect(tokens).toBeLessThanOrEqual(maxTokens);
    expect(Buffer.from(text).toString()).toBe(text);
    const ours = /^(## Prior Work|Answers of other agents, .*|\[\.\.\. truncated, .* omitted\]|)$/;
    const lines = text.split("\n").filter((line) => !line.startsWith(">") && !ours.test(line));
    for (const line of lines) expect(line).toMatch(/^### /);
    if (text === "" || text.includes("answers omitted") || text.includes("answer omitted")) return;
    expect(lines).toHaveLength(priorWork.length);
    expect(layers[0]!.truncated).toBe(layers[0]!.omitted > 0);
  });
  // An answer costs as much as a layer.
  fc.assert(property, { numRuns: numRuns / 10 });
});

/** What is written, as it can be read again. */
function encoded(text: string): string {
  return Buffer.from(text).toString();
}

/** The parts of layers that are not empty. No text that is drawn holds a separator. */
function partsOf(text: string, layers: readonly ComposedLayer[]): [part: string, layer: ComposedLayer][] {
  const shown = layers.filter(({ tokens }) => tokens > 0);
  const parts = text === "" ? [] : text.split("\n\n---\n\n");
  expect(parts).toHaveLength(shown.length);
  return shown.map((layer, index) => [parts[index]!, layer]);
}

function checkPart(part: string, { name, truncated, omitted }: ComposedLayer, given: string): void {
  const closed = /\n[ >]*(`{3,}|~{3,})$/;
  const body = withoutEdges(given);
  if (!truncated) {
    const forms = [given, given.replace(/\n$/, ""), body];
    expect(forms.includes(part) || forms.includes(part.replace(closed, ""))).toBe(true);
    expect(omitted).toBe(0);
    return;
  }
  let markerKind = "";
  scanLines(part, (_, kind) => {
    markerKind = kind;
  });
  expect(markerKind).toBe("text");
  const marker = name === "fabric" ? `[... truncated, ${omitted} items omitted]` : "[truncated]";
  expect(part.split("\n").at(-1)).toBe(marker);
  if (name === "fabric") return;
  const kept = part.slice(0, -marker.length - 1);
  const beginnings = [kept, kept.replace(closed, "")].filter((each) => body.startsWith(each));
  expect(beginnings).not.toEqual([]);
  expect(beginnings.map((each) => linesOf(body) - wholeLines(body, each))).toContain(omitted);
}

/** What is cut loses the blank lines around it first, and indentation of more than means something. */
function withoutEdges(text: string): string {
  return text
    .replace(/^\s*\n/, "")
    .replace(/^\s{101,}/, "")
    .trimEnd();
}

function linesOf(text: string): number {
  return text.split("\n").filter((line) => /[^ \t\r]/.test(line)).length;
}

function wholeLines(given: string, beginning: string): number {
  const restOfLine = given.slice(beginning.length).split("\n", 1)[0]!;
  return linesOf(beginning) - (restOfLine.trim() === "" ? 0 : 1);
}

const lineOfText = fc.integer({ min: 1, max: 12 }).map((words) => "word ".repeat(words).trimEnd());
const plainText = fc.array(lineOfText, { minLength: 1, maxLength: 60 }).map((lines) => lines.join("\n"));

test("sections give way in their order, the longest first, and what is left out is counted", {
  timeout,
}, () => {
  const layers = fc.record({ project: plainText, priorWork: plainText }, { requiredKeys: [] });
  const property = fc.property(drawnFabric, layers, counterName, anyBudget, (sections, others, name, maxTokens) => {
    const counter = counters.get(name)!;
    const result = createPromptComposer({ counter, maxTokens }).compose({
      ...others,
      fabric: fabricText(sections),
    });
    const parts = new Map(partsOf(result.text, result.layers).map(([part, layer]) => [layer.name, { part, layer }]));
    const fabric = parts.get("fabric");
    const given = result.layers.find((layer) => layer.name === "fabric");
    if (fabric === undefined) {
      expect(given?.omitted ?? itemsOf(sections)).toBe(itemsOf(sections));
      return;
    }
    checkSections(fabric.part, sections, { counter, overflow: result.overflow, ...given! });
  });
  fc.assert(property, { numRuns });
});

function itemsOf(sections: readonly DrawnSection[]): number {
  return sections.reduce((sum, { items }) => sum + items.length, 0);
}

/** Its first word needs many tokens: the fence is there twice. */
const fencedText = fc
  .tuple(fc.integer({ min: 3, max: 160 }), plainText)
  .map(([marks, text]) => `${"`".repeat(marks)}\n${text}`);

test("discoveries stay whole while they fit beside the project's share, and so do all headings", {
  timeout,
}, () => {
  const project = fc.oneof({ arbitrary: plainText, weight: 2 }, fencedText);
  const others = fc.record({ project, priorWork: plainText }, { requiredKeys: [] });
  const property = fc.property(drawnFabric, others, counterName, anyBudget, (sections, layers, name, maxTokens) => {
    const counter = counters.get(name)!;
    const budget = createPromptComposer({ counter, maxTokens });
    const { text, overflow } = budget.compose({ ...layers, fabric: fabricText(sections) });
    // Prior work gives way, the project above its share too. Some tokens are for separators, and since counts do not add up.
    const available = maxTokens * (layers.project === undefined ? 1 : 0.6) - 12;
    const marker = `\n\n[... truncated, ${itemsOf(sections)} items omitted]`;
    const fits = (kept: readonly string[]) => counter.count(kept.join("\n\n") + marker) <= available;
    const discoveries = sections.filter(({ isDiscovery }) => isDiscovery).map((each) => fabricText([each]));
    if (fits(discoveries)) {
      expect(overflow).toBe(0);
      for (const discovery of discoveries) expect(text).toContain(discovery);
    }
    // For headings alone the project does not give up its place.
    if (!layers.project?.startsWith("`") && fits(sections.map(shortestForm)))
      for (const { heading } of sections) expect(text).toContain(heading);
  });
  fc.assert(property, { numRuns });
});

test("a fabric alone overflows by no more than it is too long, and with as many tokens more it does not", {
  timeout,
}, () => {
  const fabrics = fc.oneof(drawnFabric.map(fabricText), oddText);
  const property = fc.property(fabrics, counterName, anyBudget, (fabric, name, maxTokens) => {
    const counter = counters.get(name)!;
    const compose = (tokens: number) => createPromptComposer({ counter, maxTokens: tokens }).compose({ fabric });
    const { overflow } = compose(maxTokens);
    if (overflow === 0) return;
    expect(compose(maxTokens + overflow).overflow).toBe(0);
    const whole = compose(1_000_000);
    expect(whole.layers[0]!.truncated).toBe(false);
    expect(overflow).toBeLessThanOrEqual(whole.tokens - maxTokens);
  });
  fc.assert(property, { numRuns });
});

test("prior work costs no heading and nothing of the discoveries: where they give way, they would without it", {
  timeout,
}, () => {
  const others = fc.record({ project: plainText, priorWork: plainText }, { requiredKeys: ["priorWork"] });
  const property = fc.property(
    fc.tuple(drawnFabric, others),
    counterName,
    anyBudget,
    anyShares,
    ([sections, { project, priorWork }], name, maxTokens, shares) => {
      const budget = createPromptComposer({ counter: counters.get(name)!, maxTokens, shares });
      const layers = { project, fabric: fabricText(sections) };
      const headingsIn = (text: string) =>
        sections.filter(({ heading }) => heading !== "" && text.split("\n").includes(heading));
      const { text, overflow } = budget.compose({ ...layers, priorWork });
      const whole = headingsIn(fabricText(sections));
      if (overflow === 0 && headingsIn(text).length === whole.length) return;
      const without = budget.compose(layers);
      expect(headingsIn(text)).toEqual(headingsIn(without.text));
      expect(overflow).toBe(without.overflow);
    },
  );
  fc.assert(property, { numRuns });
});

function shortestForm(section: DrawnSection): string {
  const whole = fabricText([section]);
  const note = `${section.heading}\n... and ${section.items.length} more ${section.noun}`;
  return section.isDiscovery || whole.length <= note.length ? whole : note;
}
