import fc from "fast-check";
import { expect, test } from "vitest";
import {
  fromByteString,
  type LineKind,
  scanLines,
  textAt,
  toByteString,
  verbosities,
} from "../../src/core/text/index.ts";
import { markedBlock } from "../../src/rules/files/marked-block.ts";
import {
  createPackSource,
  mergeLayers,
  orderPacks,
  type Pack,
  type PackSource,
  renderContext,
  trimPacks,
} from "../../src/rules/packs/index.ts";

const numRuns = process.env.PLIMSOLL_DEEP === "1" ? 5_000 : 100;

/** Lines that mean something, so that they meet: markers, fences, comments, blanks. */
const line = fc.constantFrom(
  ...[
    "text",
    "é 😀",
    "",
    " ",
    "## Heading",
    "- item",
    "    code",
    "```",
    "````js",
    "~~~",
    "- ```",
    "<!-- comment",
    "-->",
  ],
  ...[
    "<!-- verbosity:detail -->",
    "<!-- verbosity:extended -->",
    "<!-- verbosity:core -->",
    "  <!-- verbosity:core -->",
  ],
  ...[
    '<!-- sync:fetch url="u" -->',
    "<!-- plimsoll:end:context -->",
    "<!-- plimsoll:start:context sha256=0 -->",
    "| a | b |",
  ],
);
const text = fc
  .tuple(fc.array(line, { maxLength: 8 }), fc.boolean())
  .map(([lines, ended]) => lines.join("\n") + (ended ? "\n" : ""));
const id = fc.constantFrom("a", "b", "c", "d", "e");
const words = fc.array(fc.constantFrom("plain", "```", "- ~~~", "<!-- plimsoll:end:context -->", "a|b\\|c"), {
  maxLength: 4,
});

const source: fc.Arbitrary<PackSource> = fc
  .record({
    id,
    ...{ context: text, constraints: text, preamble: text, changelog: words },
    weight: fc.integer({ min: 0, max: 3 }),
    base: fc.boolean(),
    additive: fc.boolean(),
    position: fc.constantFrom("before" as const, "after" as const),
    overlaps: fc.array(id, { maxLength: 2 }),
  })
  .map(({ context, constraints, preamble, position, ...pack }) =>
    createPackSource({
      pack: { ...pack, additive_position: position },
      texts: { "context.md": context, "constraints.md": constraints, "preamble.md": preamble },
      samples: pack.changelog.map((label) => ({ label, inject: true })),
      directory: pack.id,
    }),
  );
const sources = fc.uniqueArray(source, { selector: (each) => each.id, maxLength: 5 });
const layers = fc.tuple(sources, sources).map(([low, high]) => [
  { layer: "embedded" as const, sources: low },
  { layer: "project" as const, sources: high },
]);
const packs = layers.map((each) => orderPacks(mergeLayers(each, { language: "en" }).packs));
const verbosity = fc.constantFrom(...verbosities);

function bytesOf(pack: Pack, level: (typeof verbosities)[number]): number {
  return Buffer.byteLength(textAt(pack.context, level) + textAt(pack.constraints, level));
}

test("trimming keeps order and stops at the first pack that does not fit, where base packs and own packs come first", () => {
  fc.assert(
    fc.property(packs, fc.integer({ min: -5, max: 150 }), verbosity, (given, maxBytes, level) => {
      const trimmed = trimPacks(given, maxBytes, level);
      const deduped = trimPacks(given, 0, level);
      const kept = trimmed.packs.filter(({ base }) => !base);
      expect(trimmed.packs).toEqual(given.filter((pack) => trimmed.packs.includes(pack)));
      const rank = ({ base, layer }: Pack) => (base ? 0 : layer === "project" ? 1 : 2);
      const ranked = deduped.packs.toSorted((first, second) => rank(first) - rank(second));
      expect(new Set(ranked.slice(0, trimmed.packs.length))).toEqual(new Set(trimmed.packs));
      expect(trimmed.packs.filter(({ base }) => base)).toEqual(given.filter(({ base }) => base));
      const used = kept.reduce((sum, pack) => sum + bytesOf(pack, level), 0);
      if (maxBytes > 0) expect(used).toBeLessThanOrEqual(maxBytes);
      const next = ranked[trimmed.packs.length];
      if (next !== undefined) expect(used + bytesOf(next, level)).toBeGreaterThan(maxBytes);
      const ids = [...trimmed.packs, ...trimmed.dropped].map((each) => each.id);
      expect(ids.sort()).toEqual(given.map((each) => each.id).sort());
      expect(trimPacks(trimmed.packs, maxBytes, level).packs).toEqual(trimmed.packs);
    }),
    { numRuns },
  );
});

test("a pack is dropped as an overlap exactly when a pack that it names was kept before it", () => {
  fc.assert(
    fc.property(packs, (given) => {
      const { packs: kept, dropped } = trimPacks(given, 0, "full");
      for (const pack of given.filter(({ base }) => !base)) {
        const before = kept.slice(0, kept.findLastIndex((each) => given.indexOf(each) < given.indexOf(pack)) + 1);
        const covered = before.some((each) => !each.base && pack.overlaps.includes(each.id));
        expect(dropped.some((each) => each.id === pack.id)).toBe(covered);
      }
    }),
    { numRuns },
  );
});

test("the same content gives the same bytes, whatever the order in its layers", () => {
  fc.assert(
    fc.property(layers, verbosity, fc.infiniteStream(fc.nat()), (given, level, numbers) => {
      const shuffled = given.map(({ layer, sources: each }) => ({ layer, sources: shuffle(each, numbers) }));
      expect(rendered(shuffled, level)).toBe(rendered(given, level));
    }),
    { numRuns },
  );
});

function rendered(given: Parameters<typeof mergeLayers>[0], level: (typeof verbosities)[number]): string {
  const ordered = orderPacks(mergeLayers(given, { language: "en" }).packs);
  return renderContext(ordered, { title: "T", verbosity: level, facts: [] });
}

function shuffle<Item>(items: readonly Item[], numbers: Iterator<number>): Item[] {
  const keyed = items.map((item) => ({ item, key: numbers.next().value as number }));
  return keyed.sort((a, b) => a.key - b.key).map(({ item }) => item);
}

test("whatever packs say, the block around them can be found again, whole and unedited", () => {
  fc.assert(
    fc.property(packs, verbosity, words, (given, level, notes) => {
      const body = renderContext(given, { title: "T", verbosity: level, notes, facts: [] });
      const file = markedBlock.put("before\n", "context", toByteString(body));
      const found = markedBlock.find(`${file}\nafter\n`, "context");
      expect(found).toMatchObject({ kind: "block", block: { edited: false } });
      if (found.kind === "block") expect(fromByteString(found.block.body)).toBe(body);
    }),
    { numRuns },
  );
});

test("nothing in a block swallows what stands behind it, and none of its lines is a marker of a block", () => {
  fc.assert(
    fc.property(packs, verbosity, words, (given, level, notes) => {
      const body = renderContext(given, { title: "T", verbosity: level, notes, facts: [] });
      const lines: { kind: LineKind; text: string }[] = [];
      const following = `${body}<!-- behind -->\n`;
      scanLines(following, ({ start, end }, kind) => lines.push({ kind, text: following.slice(start, end) }));
      expect(lines.at(-1)).toEqual({ kind: "text", text: "<!-- behind -->" });
      expect(
        lines.filter(({ kind, text: each }) => kind === "text" && /^\s*<!--.*plimsoll:|sync:fetch/.test(each)),
      ).toEqual([]);
    }),
    { numRuns },
  );
});

test("a text without markers comes out as it went in", () => {
  const plain = fc.array(fc.constantFrom("text", "é 😀", "", "## Heading\n\ntext", "- item", "    code"), {
    minLength: 1,
  });
  fc.assert(
    fc.property(plain, verbosity, (lines, level) => {
      const given = `# T\ntext\n${lines.join("\n")}`;
      const pack = createPackSource({ pack: { id: "a" }, texts: { "context.md": given }, directory: "a" });
      const { packs: merged } = mergeLayers([{ layer: "embedded", sources: [pack] }], { language: "en" });
      expect(renderContext(merged, { title: "T", verbosity: level })).toContain(`\n\n${given.trimEnd()}\n`);
    }),
    { numRuns },
  );
});

test("an addition loses no line of either text, and every tier stays what it was", () => {
  const tagged = fc.array(fc.constantFrom("core", "detail", "extended"), { maxLength: 5 });
  const write = (name: string, tiers: readonly string[]) =>
    tiers.map((tier, index) => `<!-- verbosity:${tier} -->\n${name}${index}\n`).join("");
  fc.assert(
    fc.property(tagged, tagged, fc.constantFrom("before" as const, "after" as const), (below, above, position) => {
      const make = (name: string, tiers: readonly string[], additive: boolean) =>
        createPackSource({
          pack: { id: "a", additive, additive_position: position },
          texts: { "context.md": write(name, tiers) },
          directory: name,
        });
      const [merged] = mergeLayers(
        [
          { layer: "embedded", sources: [make("low", below, false)] },
          { layer: "project", sources: [make("high", above, true)] },
        ],
        { language: "en" },
      ).packs;
      for (const [index, level] of verbosities.entries()) {
        const shown = ["core", "detail", "extended"].slice(0, index + 1);
        const expected = [["low", below] as const, ["high", above] as const].flatMap(([name, tiers]) =>
          tiers.flatMap((tier, at) => (shown.includes(tier) ? [`${name}${at}`] : [])),
        );
        const lines = textAt(merged!.context, level)
          .split("\n")
          .filter((each) => each !== "");
        expect(lines.sort()).toEqual(expected.sort());
      }
    }),
    { numRuns },
  );
});
