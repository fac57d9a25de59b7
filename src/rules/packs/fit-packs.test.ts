import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseSegments, textAt, type Verbosity, verbosities } from "../../core/text/index.ts";
import type { Pack } from "./pack.ts";
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
  });

  it("gives up parts before packs, and fills the room that is left with parts", () => {
    const packs = [pack("a", "12345"), pack("b", "67890")];
    const render: FitOptions["render"] = (some, verbosityOf, parts) =>
      some.map((each) => textAt(each.context, verbosityOf(each))).join("") +
      (parts.includes("Profile") ? "PPP" : "") +
      (parts.includes("What's New") ? "WW" : "");
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
