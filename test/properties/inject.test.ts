import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { fromByteString, toByteString, verbosities } from "../../src/core/text/index.ts";
import { type Counter, createCounter } from "../../src/core/tokens/index.ts";
import { type Adapter, adapterValues, type ToolLimit } from "../../src/rules/adapters/adapter.ts";
import { adapterFileSchema } from "../../src/rules/adapters/adapter-schema.ts";
import { chooseSettings, type DraftOptions, draftBody, type FileDraft } from "../../src/rules/adapters/draft-file.ts";
import { type FileTarget, placeBody, readTargetState } from "../../src/rules/adapters/targets.ts";
import { draftClip } from "../../src/rules/audit/clips.ts";
import { loadContent } from "../../src/rules/content/load-content.ts";
import { markedBlock, readOwnership } from "../../src/rules/files/marked-block.ts";
import { createPackSource, mergeLayers, orderPacks, type Pack } from "../../src/rules/packs/index.ts";
import { caseCount } from "../case-count.ts";

const numRuns = caseCount({ few: 10, deep: 100, long: 400 });
const content = fileURLToPath(new URL("../../content", import.meta.url));

const { adapters } = await loadContent<Adapter>({
  layers: [{ layer: "embedded", directory: content, strictness: "error", required: true }],
  loadAdapterSchema: async () => adapterFileSchema,
});
const counters: Record<string, Counter> = {};
let home: string;
beforeAll(async () => {
  for (const name of ["bytes/4", "exact:o200k", "estimate:claude-5"] as const)
    counters[name] = await createCounter(name);
  home = mkdtempSync(join(tmpdir(), "plimsoll-inject-"));
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

const sentence = fc.constantFrom(
  "Check what is there before you write. ",
  "Größe zählt in Bytes. ",
  "文字は三バイト。",
  "😀 ",
  "- item with `code` and @AGENTS.md\n",
  "\n\n## Heading\n\n",
  "\n```sh\n# not a heading *here*\n```\n",
  "| a | b |\n",
);
const paragraph = fc
  .tuple(fc.array(sentence, { maxLength: 6 }), fc.constantFrom(1, 3, 40))
  .map(([sentences, times]) => `${sentences.join("").repeat(times)}\n`);
const text = fc
  .array(fc.tuple(fc.constantFrom("core", "detail", "extended"), paragraph), { maxLength: 4 })
  .map((parts) => parts.map(([tier, body]) => `<!-- verbosity:${tier} -->\n${body}`).join(""));
const id = fc.constantFrom("a", "b", "c", "d", "e", "f");
const pack = fc
  .record({
    id,
    context: text,
    constraints: text,
    preamble: fc.oneof({ weight: 3, arbitrary: fc.constant("") }, { weight: 1, arbitrary: paragraph }),
    weight: fc.nat(3),
    base: fc.boolean(),
    overlaps: fc.array(id, { maxLength: 2 }),
    rows: fc.nat(3),
  })
  .map(({ context, constraints, preamble, rows, ...meta }) =>
    createPackSource({
      pack: meta,
      texts: { "context.md": context, "constraints.md": constraints, "preamble.md": preamble },
      samples: Array.from({ length: rows }, (_, row) => ({ label: `Pattern ${row}`, inject: true })),
      directory: meta.id,
    }),
  );
const packs = fc
  .uniqueArray(pack, { selector: (each) => each.id, maxLength: 6 })
  .map((sources) => orderPacks(mergeLayers([{ layer: "embedded", sources }], { language: "en" }).packs));

const limit: fc.Arbitrary<ToolLimit> = fc
  .tuple(fc.constantFrom(...adapterValues.limitUnit), fc.integer({ min: 1, max: 12_000 }))
  .chain(([unit, value]) =>
    fc.record({
      unit: fc.constant(unit),
      value: fc.constant(unit === "lines" ? Math.ceil(value / 60) : value),
      kind: fc.constantFrom(...adapterValues.limitKind),
      scope: fc.constantFrom("file" as const, "chain" as const, "field" as const),
      evidence: fc.constantFrom(...adapterValues.limitEvidence),
      checked: fc.constant("2026-11-15"),
    }),
  );
const budget = fc.option(fc.integer({ min: 1, max: 9_000 }), { nil: undefined, freq: 2 });
/** An adapter as it is, or with other budgets and limits: the real ones are seldom reached. */
const change = fc.option(
  fc.record({
    maxBytes: budget,
    maxTokens: budget.map((tokens) => tokens && Math.ceil(tokens / 4)),
    limits: fc.array(limit, { maxLength: 3 }),
    onOverflow: fc.constantFrom("drop" as const, "thin" as const, undefined),
    verbosity: fc.constantFrom(...verbosities, undefined),
  }),
  { freq: 4, nil: {} },
);
/** What a person has in the file: any bytes, any line ends. */
const own = fc.option(
  fc
    .tuple(
      fc.constantFrom("", "\xef\xbb\xbf"),
      fc.array(fc.constantFrom("# Mine", "caf\xe9", toByteString("größer 文"), "", "```", "- x"), {
        maxLength: 60,
      }),
      fc.constantFrom("\n", "\r\n"),
      fc.boolean(),
    )
    .map(([mark, lines, end, ended]) => mark + lines.join(end) + (ended ? end : "")),
  { nil: undefined, freq: 4 },
);
const options = fc
  .record({
    packs,
    counter: fc.constantFrom(undefined, "bytes/4", "exact:o200k", "estimate:claude-5"),
    verbosity: fc.constantFrom(undefined, ...verbosities),
    onOverflow: fc.constantFrom(undefined, "drop" as const, "thin" as const),
    notes: fc.array(fc.constantFrom("a note", "ü".repeat(300)), { maxLength: 2 }),
    facts: fc.constantFrom([], [{ name: "Language", value: "Go" }]),
  })
  .map(
    ({ counter, notes, facts, ...rest }): DraftOptions => ({
      ...rest,
      content: { title: "Developer Context", notes, facts },
      counter: counters[counter ?? "bytes/4"]!,
      verbosityOf: {},
      defaultOnOverflow: "drop",
      force: false,
    }),
  );
const chain = fc.array(fc.constantFrom("x".repeat(900), "line\n".repeat(50), "文"), { maxLength: 2 });

/** Measured again in another way than the engine does. */
function sizeOf(given: string, unit: ToolLimit["unit"], counter: Counter): number {
  if (unit === "bytes") return new TextEncoder().encode(given).length;
  if (unit === "chars") return Array.from(given).length;
  if (unit === "tokens") return counter.count(given);
  const lines = given.split("\n");
  return lines.at(-1) === "" ? lines.length - 1 : lines.length;
}

interface Texts {
  readonly field: string;
  readonly file: string;
  readonly chain: readonly string[];
}

/** The limits that may take content away and are broken all the same. */
function brokenLimits(given: readonly Adapter[], texts: Texts, options: DraftOptions): string[] {
  return given.flatMap((adapter) => [
    ...brokenBudget(adapter, texts.field, options),
    ...adapter.limits.flatMap((each) => brokenLimit(each, texts, options)),
  ]);
}

function brokenBudget({ maxBytes = 0, maxTokens = 0 }: Adapter, block: string, { counter }: DraftOptions): string[] {
  const bytes = sizeOf(block, "bytes", counter);
  if (maxBytes > 0) return bytes > maxBytes ? [`${bytes} of ${maxBytes} bytes`] : [];
  const tokens = counter.name === "bytes/4" ? bytes / 4 : counter.count(block);
  return maxTokens > 0 && tokens > maxTokens ? [`${tokens} of ${maxTokens} tokens`] : [];
}

function brokenLimit(
  { value, unit, kind, scope, evidence }: ToolLimit,
  texts: Texts,
  { counter }: DraftOptions,
): string[] {
  if (kind !== "hard" || evidence === "third-party") return [];
  const whole = [texts.file, ...(scope === "chain" ? texts.chain : [])];
  const read = scope === "field" ? [texts.field] : whole;
  const used = read.reduce((sum, each) => sum + sizeOf(each, unit, counter), 0);
  return used > value ? [`${used} of ${value} ${unit} a ${scope}`] : [];
}

function expectAllAccountedFor(
  { packs: kept, dropped, thinned }: Pick<FileDraft, "packs" | "dropped" | "thinned">,
  given: readonly Pack[],
) {
  expect([...kept, ...dropped.map((each) => each.id)].sort()).toEqual(given.map((each) => each.id).sort());
  expect(thinned.filter((each) => !kept.includes(each.id))).toEqual([]);
}

const fileAdapters = adapters.filter(({ type }) => type === "file-inject");

test.each(fileAdapters.map((adapter) => [adapter.id, adapter] as const))(
  "%s: what is written is within every limit or nothing is written; writing again changes nothing; removal restores",
  (_, adapter) => {
    const sharing = fc.array(fc.tuple(fc.constantFrom(...fileAdapters), change), { maxLength: 2 });
    const property = fc.property(
      fc.constantFrom(...adapter.targets),
      change,
      fc.oneof({ weight: 2, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: sharing }),
      own,
      chain,
      options,
      (target, changed, others, current, rest, given) => {
        const owners = [[adapter, changed] as const, ...others].map(([each, more]) => ({ ...each, ...more }));
        const fileTarget: FileTarget = {
          ...{ path: "/p", names: ["/p"], realPath: "/p", target, adapters: owners },
          limits: owners.flatMap(({ limits }) => limits),
        };
        const measured = (unit: ToolLimit["unit"]) =>
          rest.reduce((sum, each) => sum + sizeOf(each, unit, given.counter), 0);
        const chains = new Map(
          fileTarget.limits.map((each) => [each, [{ folder: "/", copies: 1, others: measured(each.unit) }]]),
        );
        const about = { adapters: owners, limits: fileTarget.limits, chains, settings: chooseSettings(owners, given) };
        const draftOf = (current: string | undefined) => {
          const place = (body: string) => placeBody(current, body, target);
          return draftBody({ ...about, state: readTargetState(current, target), place }, given);
        };
        const before = target.mode === "replace-file" ? undefined : current;
        const draft = draftOf(before);
        expectAllAccountedFor(draft, given.packs);
        if (draft.status !== "ok") {
          expect(["too small", "over budget"]).toContain(draft.status);
          expect(draft.file).toBeUndefined();
          return;
        }
        const file = fromByteString(draft.file!);
        const found = markedBlock.find(draft.file!, target.section);
        const size = found.kind === "block" ? found.block.end - found.block.start : draft.file!.length;
        expect(size).toBeLessThanOrEqual(Buffer.byteLength(draft.text!));
        expect(brokenLimits(owners, { field: draft.text!, file, chain: rest }, given)).toEqual([]);
        expect(draft.file!.startsWith(before ?? "")).toBe(true);
        expect(draftOf(draft.file)).toEqual({ ...draft, state: "injected" });
        if (target.mode === "replace-file") {
          expect(readOwnership(draft.file!)).toEqual({ kind: "ours", edited: false });
        } else {
          expect(markedBlock.find(draft.file!, target.section)).toMatchObject({ block: { edited: false } });
          expect(markedBlock.remove(draft.file!, target.section).file).toBe(before);
        }
      },
    );
    fc.assert(property, { numRuns });
  },
);

test.each(
  adapters.filter((adapter) => !fileAdapters.includes(adapter)).map((adapter) => [adapter.id, adapter] as const),
)(
  "%s: the text for the clipboard is within every limit, instructions included, or there is none",
  async (_, adapter) => {
    const property = fc.asyncProperty(change, options, async (changed, given) => {
      const owner = { ...adapter, ...changed };
      const places = { scope: "global" as const, root: home, home };
      const clip = await draftClip(owner, { ...given, places, env: { HOME: home }, dryRun: true });
      expectAllAccountedFor(clip, given.packs);
      if (clip.text === undefined) expect(["too small", "over budget"]).toContain(clip.status);
      else expect(brokenLimits([owner], { field: clip.text, file: clip.text, chain: [] }, given)).toEqual([]);
    });
    await fc.assert(property, { numRuns });
  },
);
