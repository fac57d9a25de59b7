import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseSegments, textAt, type Verbosity, verbosities } from "../../core/text/index.ts";
import type { Pack } from "./pack.ts";
import type { AddedPart } from "./render-context.ts";
import { type FitOptions, fitPacks } from "./trim-packs.ts";

function pack(id: string, markdown: string, more: Partial<Pack> = {}): Pack {
  return {
    id,
    name: id,
    description: "",
    tags: [],
    weight: 0,
    base: false,
    overlaps: [],
    detect: [],
    versions: {},
    changelog: [],
    layer: "project",
    preamble: "",
    context: parseSegments(markdown).segments,
    constraints: [],
    samples: [],
    knownErrors: [],
    learning: [],
    ...{ globs: [], nested: false, skills: [] },
    ...more,
  };
}

/** Renders packs without headings, so sizes are easy to see. */
function bare(maxSize: number, more: Partial<FitOptions> = {}): FitOptions {
  return {
    verbosity: "full",
    onOverflow: "drop",
    maxBytes: 0,
    render: (packs, verbosityOf) => packs.map((each) => textAt(each.context, verbosityOf(each))).join(""),
    fits: (text) => text.length <= maxSize,
    ...more,
  };
}

/** Renders packs as `bare` does, and then each part as its text here. */
function withParts(texts: Partial<Record<AddedPart, string>>): FitOptions["render"] {
  const all: Record<AddedPart, string> = {
    "Current Context": "",
    "Runtime Context": "",
    Profile: "",
    "What's New": "",
    "Canonical Patterns": "",
    "Recommended Learning": "",
    ...texts,
  };
  return (packs, verbosityOf, parts) =>
    packs.map((each) => textAt(each.context, verbosityOf(each))).join("") + parts.map((part) => all[part]).join("");
}

const tiered = (letter: string) =>
  `${letter.repeat(10)}<!-- verbosity:detail -->`.replace("<!--", "\n<!--") +
  `\n${letter.repeat(10)}\n<!-- verbosity:extended -->\n${letter.repeat(10)}\n`;

describe("fitPacks", () => {
  it("keeps everything that fits, up to exactly the limit", () => {
    const packs = [pack("a", "12345"), pack("b", "67890")];
    expect(fitPacks(packs, bare(10))).toMatchObject({ text: "1234567890", dropped: [], thinned: [] });
    expect(fitPacks(packs, bare(9))).toMatchObject({
      text: "12345",
      dropped: [{ id: "b", reason: "budget" }],
    });
  });

  it("drops from the end, and base packs last, after thinning them to their core", () => {
    const packs = [pack("base", tiered("x"), { base: true }), pack("a", "aaaaa"), pack("b", "bbbbb")];
    expect(fitPacks(packs, bare(38)).packs.map(({ id }) => id)).toEqual(["base", "a"]);
    expect(fitPacks(packs, bare(33))).toMatchObject({ packs: [{ id: "base" }], thinned: [] });
    const thin = fitPacks(packs, bare(11));
    expect(thin.thinned).toEqual([
      { id: "base", tier: "extended" },
      { id: "base", tier: "detail" },
    ]);
    expect(thin.text).toBe(`${"x".repeat(10)}\n`);
    // The other packs would fit beside the core, but they are dropped before the base pack is thinned.
    expect(fitPacks(packs, bare(20)).packs.map(({ id }) => id)).toEqual(["base"]);
  });

  it("keeps to the budget for whole packs if it drops packs, and not if it thins them", () => {
    const packs = [pack("a", "12345"), pack("b", "67890")];
    const fitted = (onOverflow: "drop" | "thin") => fitPacks(packs, bare(1_000, { maxBytes: 9, onOverflow }));
    expect(fitted("drop")).toMatchObject({ text: "12345", dropped: [{ id: "b", reason: "budget" }] });
    expect(fitted("thin")).toMatchObject({ text: "1234567890", dropped: [] });
    const large = fitPacks([pack("a", tiered("a"))], bare(1_000, { maxBytes: 11, verbosity: "minimal" }));
    expect(large).toMatchObject({ text: `${"a".repeat(10)}\n`, thinned: [] });
  });

  it("thins packs if not even the first one is within the budget for whole packs", () => {
    const fitted = fitPacks([pack("a", tiered("a"))], bare(11, { maxBytes: 11 }));
    expect(fitted).toMatchObject({ text: `${"a".repeat(10)}\n`, packs: [{ id: "a" }], dropped: [] });
  });

  it("needs no pack if none was asked for", () => {
    const render = withParts({ "Current Context": "notes" });
    expect(fitPacks([], bare(5, { render }))).toMatchObject({ text: "notes", dropped: [], leftOut: [] });
    expect(fitPacks([], bare(4, { render }))).toMatchObject({ text: undefined });
  });

  it("uses smaller packs if a base pack's core does not fit, and nothing if no pack fits", () => {
    const packs = [pack("base", tiered("x"), { base: true }), pack("a", "aaaaa"), pack("b", tiered("b"))];
    expect(fitPacks(packs, bare(10))).toMatchObject({
      text: "aaaaa",
      dropped: [
        { id: "base", reason: "budget" },
        { id: "b", reason: "budget" },
      ],
    });
    expect(fitPacks(packs, bare(4))).toMatchObject({ text: undefined, packs: [] });
    const render = withParts({ Profile: "a long profile" });
    expect(fitPacks(packs, bare(4, { render }))).toMatchObject({ text: undefined, leftOut: [] });
  });

  it("does not use a pack of which only the details would be left out", () => {
    const packs = [pack("base", "xxxxx", { base: true }), pack("a", "<!-- verbosity:detail -->\naaaaaaaa\n")];
    expect(fitPacks(packs, bare(4))).toMatchObject({ text: undefined, packs: [] });
  });

  it("gives up a pack before what the person wrote for the project, and that before the last pack", () => {
    const packs = [pack("a", "12345"), pack("b", "67890")];
    const render = withParts({ "Current Context": "CCC", "What's New": "W" });
    const fitted = (limit: number) => fitPacks(packs, bare(limit, { render }));
    expect(fitted(13)).toMatchObject({ text: "1234567890CCC", leftOut: ["What's New"] });
    expect(fitted(12)).toMatchObject({ text: "12345CCCW", leftOut: [], dropped: [{ id: "b" }] });
    expect(fitted(7)).toMatchObject({ text: "12345W", leftOut: ["Current Context"], dropped: [{ id: "b" }] });
    const large = [pack("base", tiered("x"), { base: true }), ...packs];
    const small = (limit: number) => fitPacks(large, bare(limit, { render }));
    expect(small(9)).toMatchObject({ text: "12345CCCW", leftOut: [] });
    expect(small(7)).toMatchObject({ text: "12345W", leftOut: ["Current Context"] });
  });

  it("gives up parts before packs, and fills the room that is left with parts", () => {
    const packs = [pack("a", "12345"), pack("b", "67890")];
    const render = withParts({ Profile: "PPP", "What's New": "WW" });
    const fitted = (limit: number) => fitPacks(packs, bare(limit, { render }));
    expect(fitted(15)).toMatchObject({ text: "1234567890PPPWW", leftOut: [] });
    expect(fitted(14)).toMatchObject({ text: "1234567890PPP", leftOut: ["What's New"] });
    expect(fitted(12)).toMatchObject({ text: "1234567890WW", leftOut: ["Profile"] });
    expect(fitted(10)).toMatchObject({ text: "1234567890", leftOut: ["Profile", "What's New"], dropped: [] });
    expect(fitted(9)).toMatchObject({ text: "12345PPP", leftOut: ["What's New"], packs: [{ id: "a" }] });
  });

  it("thins the least important pack's extended tier first, then details, then drops", () => {
    const packs = [pack("a", tiered("a")), pack("b", tiered("b"))];
    const thinned = (limit: number) =>
      fitPacks(packs, bare(limit, { onOverflow: "thin" })).thinned.map(({ id, tier }) => `${id}/${tier}`);
    expect(thinned(66)).toEqual([]);
    expect(thinned(65)).toEqual(["b/extended"]);
    expect(thinned(54)).toEqual(["b/extended", "a/extended"]);
    expect(thinned(43)).toEqual(["b/extended", "a/extended", "b/detail"]);
    expect(thinned(32)).toEqual(["b/extended", "a/extended", "b/detail", "a/detail"]);
    expect(fitPacks(packs, bare(21, { onOverflow: "thin" })).dropped).toEqual([{ id: "b", reason: "budget" }]);
    const bases = packs.map((each) => ({ ...each, base: true }));
    expect(fitPacks(bases, bare(21, { onOverflow: "thin" }))).toMatchObject({
      dropped: [{ id: "b", reason: "budget" }],
      thinned: [
        { id: "a", tier: "extended" },
        { id: "a", tier: "detail" },
      ],
    });
  });

  it("thins and drops the person's own packs after all others, whatever the weights", () => {
    const packs = [
      pack("base", "xxxxx", { base: true, layer: "embedded" }),
      pack("a", tiered("a"), { layer: "company" }),
      pack("own", tiered("o")),
    ];
    const steps = (limit: number) => {
      const { thinned, dropped, lost } = fitPacks(packs, bare(limit, { onOverflow: "thin" }));
      return { steps: [...thinned.map(({ id, tier }) => `${id}/${tier}`), ...dropped.map(({ id }) => id)], lost };
    };
    expect(steps(60)).toEqual({ steps: ["a/extended"], lost: [] });
    expect(steps(49)).toEqual({ steps: ["a/extended", "a/detail"], lost: [] });
    expect(steps(38)).toMatchObject({ lost: [{ id: "own", tiers: ["extended"] }] });
    expect(steps(26)).toEqual({
      steps: ["own/extended", "own/detail", "a"],
      lost: [{ id: "own", required: false, tiers: ["detail", "extended"] }],
    });
    expect(steps(11)).toMatchObject({ steps: ["own/extended", "own/detail", "base", "a"] });
    const dropping = (limit: number) => fitPacks(packs, bare(limit, { maxBytes: limit })).packs.map(({ id }) => id);
    expect(dropping(71)).toEqual(["base", "a", "own"]);
    expect(dropping(70)).toEqual(["base", "own"]);
    expect(dropping(33)).toEqual(["own"]);
    expect(fitPacks(packs, bare(70))).toMatchObject({ dropped: [{ id: "a" }], lost: [] });
    expect(fitPacks(packs, bare(5))).toMatchObject({ text: "xxxxx", lost: [{ id: "own", tiers: [] }] });
    const personal = packs.with(2, { ...packs[2]!, layer: "user" });
    expect(fitPacks(personal, bare(70)).packs.map(({ id }) => id)).toEqual(["base", "own"]);
  });

  it("drops required packs after the person's own, and reports them as lost", () => {
    const packs = [pack("own", "ooooo"), pack("house", "hhhhh", { layer: "company", required: true })];
    const { packs: kept, lost } = fitPacks(packs, bare(8));
    expect(kept.map(({ id }) => id)).toEqual(["house"]);
    expect(lost).toEqual([{ id: "own", required: false, tiers: [] }]);
    expect(fitPacks([pack("a", "aaaaaaaaaa", { required: true }), pack("b", "b")], bare(8)).lost).toMatchObject([
      { id: "a", required: true, tiers: [] },
    ]);
  });

  it("decides overlaps by the order of the packs, before it looks at layers", () => {
    const packs = [pack("a", "aaaaa", { layer: "embedded", overlaps: ["own"] }), pack("own", "ooooo")];
    expect(fitPacks(packs, bare(10, { maxBytes: 10 }))).toMatchObject({ text: "aaaaaooooo", dropped: [] });
    const included = [pack("a", "aaaaa", { layer: "embedded" }), pack("own", "ooooo", { overlaps: ["a"] })];
    expect(fitPacks(included, bare(10, { maxBytes: 10 }))).toMatchObject({
      text: "aaaaa",
      dropped: [{ id: "own", reason: "overlap", by: "a" }],
      lost: [],
    });
  });

  it("treats a pack's tables as part of its tiers", () => {
    const knownErrors = [{ id: "e", pattern: "p", cause: "c", fix: "f", tags: [] }];
    const withTable = pack("a", "core", { knownErrors });
    const options = bare(4, {
      onOverflow: "thin",
      render: ([only], verbosityOf) =>
        only === undefined ? "" : verbosityOf(only) === "full" ? "core + table" : "core",
    });
    expect(fitPacks([withTable], options)).toMatchObject({
      text: "core",
      thinned: [{ id: "a", tier: "extended" }],
    });
  });

  it("thins only tiers that a pack has", () => {
    const sample = {
      id: "s",
      title: "s",
      language: "ts",
      code: "x",
      inject: true,
    } as unknown as Pack["samples"][number];
    const course = { title: "c", url: "u", featured: true } as unknown as Pack["learning"][number];
    const knownErrors = [{ id: "e", pattern: "p", cause: "c", fix: "f", tags: [] }];
    const tiersOf = (more: Partial<Pack>) => {
      const packs = [pack("a", "core", more), pack("b", tiered("b"))];
      // The other pack does not fit, so all tiers were dropped before it.
      return fitPacks(packs, bare(4, { onOverflow: "thin" })).thinned.map(({ tier }) => tier);
    };
    expect(tiersOf({})).toEqual([]);
    expect(tiersOf({ knownErrors })).toEqual(["extended"]);
    expect(tiersOf({ learning: [course] })).toEqual(["extended"]);
    expect(tiersOf({ learning: [{ ...course, featured: false }] })).toEqual([]);
    expect(tiersOf({ samples: [sample] })).toEqual(["detail"]);
    expect(tiersOf({ samples: [{ ...sample, inject: false }] })).toEqual([]);
    expect(tiersOf({ constraints: [{ tier: "detail", text: "never" }] })).toEqual(["detail"]);
    expect(tiersOf({ constraints: [{ tier: "detail", text: "" }] })).toEqual([]);
  });

  it("removes as little as possible, whatever the packs are", () => {
    const anyPack = fc
      .record({ size: fc.nat(30), detail: fc.nat(30), base: fc.boolean() })
      .map(({ size, detail, base }) => ({
        markdown: `${"c".repeat(size)}\n<!-- verbosity:detail -->\n${"d".repeat(detail)}\n`,
        base,
      }));
    const property = fc.property(
      fc.array(anyPack, { maxLength: 12 }),
      fc.nat(300),
      fc.constantFrom<Verbosity>(...verbosities),
      fc.constantFrom("drop" as const, "thin" as const),
      (drawn, limit, verbosity, onOverflow) => {
        const packs = drawn.map(({ markdown, base }, index) => pack(`p${index}`, markdown, { base }));
        const ordered = [...packs.filter((each) => each.base), ...packs.filter((each) => !each.base)];
        const options = bare(limit, { verbosity, onOverflow });
        const fit = fitPacks(ordered, options);
        if (fit.text === undefined) {
          expect(fit.packs).toEqual([]);
          return;
        }
        expect(fit.text.length).toBeLessThanOrEqual(limit);
        expect(fit.packs.length + fit.dropped.length).toBe(packs.length);
        const whole = options.render(ordered, () => verbosity, []);
        if (whole.length <= limit) expect(fit.text).toBe(whole);
      },
    );
    fc.assert(property, { numRuns: process.env.PLIMSOLL_DEEP === "1" ? 10_000 : 300 });
  });
});

describe("a block with notes of a person", () => {
  const notes = (length: number) => withParts({ "Current Context": "n".repeat(length) });

  it("keeps whole packs without the notes if nothing fits beside them", () => {
    const packs = [pack("a", tiered("a")), pack("b", tiered("b"))];
    const [first] = packs;
    const text = textAt(first!.context, "full");
    const fit = fitPacks(packs, bare(text.length + 5, { render: notes(100) }));
    expect(fit).toMatchObject({ text, thinned: [], dropped: [{ id: "b" }] });
    expect(fit.leftOut).toEqual(["Current Context"]);
  });

  it("drops a small pack before the notes if base packs are too large", () => {
    const packs = [pack("base", "x".repeat(50), { base: true }), pack("a", "aaaaa"), pack("b", "bbbbb")];
    expect(fitPacks(packs, bare(12, { render: notes(5) })).text).toBe("aaaaannnnn");
    const fit = fitPacks(packs, bare(20, { render: notes(100) }));
    expect(fit.text).toBe("aaaaabbbbb");
    expect(fit.leftOut).toEqual(["Current Context"]);
  });

  it("has left out no part if it holds nothing", () => {
    expect(fitPacks([pack("a", "aaaaa")], bare(-1))).toMatchObject({ text: undefined, leftOut: [] });
  });
});
