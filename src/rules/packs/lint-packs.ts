/** Checks what a schema cannot: how packs, profiles and budgets fit together. Pure: the caller turns keys into
 *  lines. */
import { Buffer } from "../../core/bytes.ts";
import {
  didYouMean,
  firstWarnings,
  type Line,
  parseSegments,
  scanLines,
  textAt,
  type Verbosity,
} from "../../core/text/index.ts";
import { findFetchMarkers } from "./fetch-markers.ts";
import type { Pack, PackSource, Profile } from "./pack.ts";

/** Returns all findings in a fixed order. */
export function lintPacks(input: LintInput): LintFinding[] {
  return [
    ...lintOverlaps(input),
    ...lintProfiles(input),
    ...lintTools(input),
    ...lintSimilar(input),
    ...input.sources.flatMap(lintTexts),
    ...input.sources.flatMap(lintLearning),
    ...lintSizes(input),
  ];
}

/** Reports ids that no pack has, packs that overlap themselves, and circles of packs that replace each other. */
function lintOverlaps(input: LintInput): LintFinding[] {
  const unknown = input.sources.flatMap((source) =>
    source.overlaps.flatMap((id, index) => {
      const message = id === source.id ? "overlaps itself. Remove the line." : unknownPack(id, input);
      const rule = id === source.id ? "overlap-cycle" : "unknown-overlap";
      const place = { directory: source.directory, key: ["overlaps", index] };
      return message === undefined ? [] : [{ place, severity: "error" as const, rule, message }];
    }),
  );
  return [...unknown, ...lintCycles(input)];
}

function lintProfiles(input: LintInput): LintFinding[] {
  return input.profiles.flatMap((profile) =>
    profile.packs.flatMap(({ id }, index) => {
      const message = unknownPack(id, input);
      const place = { profile: profile.id, key: ["packs", index, "id"] };
      const rule = "unknown-profile-pack";
      return message === undefined ? [] : [{ place, severity: "error" as const, rule, message }];
    }),
  );
}

/** Reports ids that no AI tool has, and a pack that no tool gets. */
function lintTools({ sources, tools }: LintInput): LintFinding[] {
  return sources.flatMap(({ directory, ...source }) => {
    const keys = [
      ["tools", source.tools ?? []],
      ["not_tools", source.notTools ?? []],
    ] as const;
    const unknown = keys.flatMap(([key, ids]) =>
      ids.flatMap((id, index) => {
        const message = `no AI tool has the id "${id}". ${didYouMean(id, tools) ?? "Remove it, or add an adapter."}`;
        return tools.includes(id) ? [] : [{ key: [key, index], rule: "unknown-tool", message }];
      }),
    );
    const isForNone = source.tools?.every((id) => source.notTools?.includes(id)) === true && source.tools.length > 0;
    const message = "tools and not_tools name the same tools, so no tool gets the pack. Remove one of the lists.";
    const none = isForNone ? [{ key: ["not_tools"], rule: "no-tools", message }] : [];
    return [...unknown, ...none].map(({ key, rule, message }) => ({
      place: { directory, key },
      severity: "error" as const,
      rule,
      message,
    }));
  });
}

function unknownPack(id: string, { packs, knownIds }: LintInput): string | undefined {
  const ids = [...packs.map((pack) => pack.id), ...knownIds];
  if (ids.includes(id)) return undefined;
  return `no pack has the id "${id}". ${didYouMean(id, ids) ?? "Remove it, or add the pack."}`;
}

/** Reports the shortest circles of at least two packs. Each circle starts with its smallest id, and a pack is in at most
 *  one circle. */
function lintCycles({ packs, sources }: LintInput): LintFinding[] {
  const overlapsById = new Map(packs.map(({ id, overlaps }) => [id, overlaps.filter((each) => each !== id)]));
  const seen = new Set<string>();
  const findings: LintFinding[] = [];
  for (const start of [...overlapsById.keys()].sort()) {
    const cycle = seen.has(start) ? undefined : shortestCycle(start, overlapsById);
    if (cycle === undefined) continue;
    for (const id of cycle) seen.add(id);
    const path = [...cycle, start].join(" → ");
    const why = "Each pack names the next one as its replacement, so only their order decides which one is kept.";
    const message = `overlaps form a circle: ${path}. ${why} Keep only the lines of the weaker packs.`;
    // The first line of the circle that is in a file people can change.
    for (const [index, id] of cycle.entries()) {
      const next = cycle[(index + 1) % cycle.length]!;
      const source = sources.findLast((each) => each.id === id && each.overlaps.includes(next));
      if (source === undefined) continue;
      const place = { directory: source.directory, key: ["overlaps", source.overlaps.indexOf(next)] };
      findings.push({ place, severity: "error", rule: "overlap-cycle", message });
      break;
    }
  }
  return findings;
}

function shortestCycle(start: string, overlapsById: ReadonlyMap<string, readonly string[]>): string[] | undefined {
  const cameFrom = new Map<string, string>();
  const queue = [start];
  for (const id of queue) {
    for (const next of overlapsById.get(id) ?? []) {
      if (next === start) {
        const path = [id];
        for (let each = cameFrom.get(id); each !== undefined; each = cameFrom.get(each)) path.unshift(each);
        return path;
      }
      if (cameFrom.has(next)) continue;
      cameFrom.set(next, id);
      queue.push(next);
    }
  }
  return undefined;
}

/** Reports packs that can never fit a budget, even if everything else is dropped. */
function lintSizes({ packs, sources, budgets }: LintInput): LintFinding[] {
  if (budgets.length === 0) return [];
  return packs.flatMap((pack) => {
    const source = sources.findLast(({ id }) => id === pack.id);
    const message = source && describeOversize(pack, budgets);
    if (source === undefined || message === undefined) return [];
    const { directory, texts } = source;
    const file = ["context.md", ...Object.keys(texts)].find((name) => name in texts);
    const place = file === undefined ? { directory, key: ["id"] } : { directory, file, line: 1 };
    return [{ place, severity: "warning", rule: "oversize", message }];
  });
}

function describeOversize(pack: Pack, budgets: readonly PackBudget[]): string | undefined {
  if (budgets.every(({ verbosity, unit, value }) => measure(pack, verbosity, unit) > value)) {
    const largest = budgets.reduce((max, each) => (each.value > max.value ? each : max));
    const size = measure(pack, largest.verbosity, largest.unit);
    const limit = `the largest budget is ${largest.value}, for ${largest.adapter}`;
    const problem = `the pack has ${size} ${largest.unit}, more than any tool with a budget takes (${limit})`;
    return `${problem}. Split it, or move text to higher tiers.`;
  }
  // A base pack is meant for every tool, so its core should fit the smallest budget.
  const smallest = budgets.reduce((min, each) => (each.value < min.value ? each : min));
  const size = measure(pack, "minimal", smallest.unit);
  if (!pack.base || size <= smallest.value) return undefined;
  const problem = `the core of this base pack has ${size} ${smallest.unit}`;
  const limit = `more than ${smallest.adapter} takes (${smallest.value})`;
  return `${problem}, ${limit}, so it is dropped there. Mark less of it as core.`;
}

/** Counts only the pack's texts. Headings and tables of the block are not included. */
function measure({ preamble, constraints, context }: Pack, verbosity: Verbosity, unit: PackBudget["unit"]): number {
  const text = preamble + textAt(constraints, verbosity) + textAt(context, verbosity);
  return unit === "bytes" ? Buffer.byteLength(text) : [...text].length;
}

/** Checks every variant of every text, whatever the language of the run. */
function lintTexts({ texts, directory, ...source }: PackSource): LintFinding[] {
  const findings: LintFinding[] = [];
  const lists = [
    source.samples,
    source.knownErrors,
    source.learning,
    source.changelog,
    source.skills,
    source.prompts ?? [],
  ];
  // A pack may only add globs to the one below.
  const hasEntries = lists.some((list) => list.length > 0) || source.globs.length > 0;
  if (!hasEntries && Object.values(texts).every(isBlank)) {
    const message = "the pack has no text. Write context.md, or remove the pack.";
    findings.push({ place: { directory, key: ["id"] }, severity: "warning", rule: "empty-pack", message });
  }
  for (const [file, text] of Object.entries(texts)) {
    for (const found of [lintTiers(text), lintHeadings(text), lintFetches(text)]) {
      // If there are too many findings, warnings are left out before errors.
      const [warnings, errors] = [
        found.filter(({ severity }) => severity === "warning"),
        found.filter(({ severity }) => severity === "error"),
      ];
      for (const { line, ...finding } of firstWarnings([...errors, ...warnings])) {
        findings.push({ ...finding, place: { directory, file, line } });
      }
    }
  }
  return findings;
}

/** A finding in the Markdown of one pack. */
type FoundLine = Omit<LintFinding, "place"> & { readonly line: number };

function lintLearning({ learning, directory }: PackSource): LintFinding[] {
  const untitled = learning.filter(({ featured, title }) => featured && title === "").map(({ slug }) => slug);
  if (untitled.length === 0) return [];
  const message = `courses without a title are not shown: ${untitled.join(", ")}. Add title: and url:.`;
  const place = { directory, file: "learning.yaml", line: 1 };
  return [{ place, severity: "warning", rule: "untitled-course", message }];
}

function isBlank(text: string): boolean {
  return text.trim() === "";
}

function lintTiers(text: string): FoundLine[] {
  const empty: FoundLine[] = [];
  let marker: Line | undefined;
  const closeMarker = () => {
    const message = "a verbosity marker has no text below it. Write some, or remove the marker.";
    if (marker !== undefined) empty.push({ line: marker.number, severity: "warning", rule: "empty-tier", message });
    marker = undefined;
  };
  scanLines(text, (line, kind) => {
    const content = text.slice(line.start, line.end);
    const rest = kind === "text" ? textAfterMarker(content) : undefined;
    if (rest !== undefined) closeMarker();
    if (rest !== undefined && isBlank(rest)) marker = line;
    else if (!isBlank(rest ?? content)) marker = undefined;
  });
  closeMarker();
  return empty;
}

/** Returns the text after a marker on its line, or `undefined` without a marker. The parser decides what a marker is:
 *  it removes it. */
function textAfterMarker(line: string): string | undefined {
  if (!line.includes("verbosity")) return undefined;
  const rest = parseSegments(line)
    .segments.map(({ text }) => text)
    .join("");
  return rest === line ? undefined : rest;
}

function lintHeadings(text: string): FoundLine[] {
  const found: FoundLine[] = [];
  let above = "";
  scanLines(text, (line, kind) => {
    const content = kind === "text" ? text.slice(line.start, line.end) : "";
    const isUnderline = /^ {0,3}=+\s*$/.test(content) && !isBlank(above) && !/^\s*(#{1,6}\s|[-*+>|]|<!--)/.test(above);
    if (/^ {0,3}#(\s|$)/.test(content) || isUnderline) {
      const message = "a heading of level 1. The block has its own title, so start a pack's headings with `##`.";
      const number = isUnderline ? line.number - 1 : line.number;
      found.push({ line: number, severity: "warning", rule: "heading-level", message });
    }
    above = content;
  });
  return found;
}

function lintFetches(text: string): FoundLine[] {
  if (!text.includes("sync:fetch")) return [];
  const { markers, warnings } = findFetchMarkers(text);
  const fetched = new Set(markers.map(({ line }) => line));
  const finding = (line: number, severity: "error" | "warning", message: string) => ({
    line,
    severity,
    message,
    rule: "fetch-marker",
  });
  const odd = warnings.map(({ line, message }) => finding(line, fetched.has(line) ? "warning" : "error", message));
  const foreign = markers
    .filter(({ url }) => !/^https?:\/\/[^/]/i.test(url))
    .map(({ line, url }) => finding(line, "error", `sync:fetch: "${url}" is not an http or https address`));
  const known = new Set([...fetched, ...warnings.map(({ line }) => line)]);
  const torn: FoundLine[] = [];
  scanLines(text, ({ start, end, number }, kind) => {
    if ((kind !== "text" && kind !== "comment") || known.has(number)) return;
    // A quotation or inline code shows a marker on purpose.
    if (/^([^`>]*)<!--\s*sync:fetch(?![\w:-])/.test(text.slice(start, end))) {
      torn.push(finding(number, "error", "sync:fetch: a marker must be alone on its line"));
    }
  });
  return [...odd, ...foreign, ...torn];
}

// Finds packs with nearly the same text. A tool with enough room gets the text twice unless one of them declares
// `overlaps`.

/** What the lint of packs reads and finds. */
export interface LintInput {
  /** The merged packs of every layer, most important first. */
  readonly packs: readonly Pack[];
  /** The packs from files that people can change, lowest layer first. Only these get findings. */
  readonly sources: readonly PackSource[];
  /** The profiles from such files. */
  readonly profiles: readonly Profile[];
  /** Ids that are valid although no such pack is here. */
  readonly knownIds: readonly string[];
  /** Ids of the AI tools. */
  readonly tools: readonly string[];
  readonly budgets: readonly PackBudget[];
}

/** The most that one AI tool takes. */
export interface PackBudget {
  readonly adapter: string;
  readonly value: number;
  readonly unit: "bytes" | "chars";
  readonly verbosity: Verbosity;
}

export interface LintFinding {
  /** A line of a pack's text, counted from 1; a key of its pack.yaml; or a key of a profile's file. */
  readonly place:
    | { readonly directory: string; readonly file: string; readonly line: number }
    | { readonly directory: string; readonly key: readonly (string | number)[] }
    | { readonly profile: string; readonly key: readonly (string | number)[] };
  readonly severity: "error" | "warning";
  readonly rule: string;
  readonly message: string;
}

/** A pack is a near-duplicate if another pack also has this share of its word runs. */
const similarShare = 0.6;
/** Words in a run. It is long enough that two texts on one subject share few runs by chance. */
const runWords = 5;
/** With fewer runs, a share means nothing. */
const minRuns = 12;
/** Above this many runs in all packs, only a fixed part of them is compared, chosen by hash. This bounds the memory. */
const maxRuns = 400_000;
/** A run that more packs have in common is boilerplate. Comparing only the first ones keeps the work linear. */
const maxOwners = 16;

function lintSimilar({ packs, sources }: LintInput): LintFinding[] {
  const findSource = ({ id }: Pack) => sources.findLast((source) => source.id === id);
  return similarPacks(packs).flatMap(({ earlier, later, share }) => {
    if (earlier.overlaps.includes(later.id) || later.overlaps.includes(earlier.id)) return [];
    // The weaker pack gets the line. If that pack ships with the program, the other one can be changed.
    const source = findSource(later) ?? findSource(earlier);
    if (source === undefined) return [];
    const other = source.id === later.id ? earlier : later;
    // Base packs are exempt from overlaps, so declaring one would change nothing.
    const advice =
      earlier.base || later.base
        ? "Remove the repeated text from one of them."
        : `Add \`overlaps: [${other.id}]\` if "${other.id}" makes it redundant, or remove the repeated text.`;
    const shared = `they share ${Math.floor(share * 100)} % of the ${runWords}-word runs of the shorter one`;
    const threshold = `reported from ${similarShare * 100} %`;
    const message = `"${source.id}" and "${other.id}" have nearly the same text: ${shared} (${threshold}). ${advice}`;
    const place = { directory: source.directory, key: ["id"] };
    return [{ place, severity: "warning", rule: "near-duplicate", message }];
  });
}

/** Returns pairs in the order of the packs, each with the share of the runs of the pack with fewer runs. The work grows
 *  with the text, not with the number of pairs. */
export function similarPacks(
  packs: readonly Pack[],
): { readonly earlier: Pack; readonly later: Pack; readonly share: number }[] {
  const texts = packs.map(({ context, constraints }) => `${textAt(constraints, "full")}\n${textAt(context, "full")}`);
  // A hash is compared only if these low bits are 0, so about `maxRuns` hashes are compared.
  const words = texts.reduce((sum, text) => sum + text.length / 6, 0);
  const mask = 2 ** Math.min(20, Math.max(0, Math.ceil(Math.log2(words / maxRuns)))) - 1;
  const owners = new Map<number, number[]>();
  const sizes: number[] = [];
  const similar: ReturnType<typeof similarPacks> = [];
  for (const [index, text] of texts.entries()) {
    const runs = hashRuns(text, mask);
    sizes.push(runs.size);
    for (const [other, shared] of addOwner(owners, runs, index)) {
      const smaller = Math.min(runs.size, sizes[other]!);
      if (smaller < minRuns || shared / smaller < similarShare) continue;
      similar.push({ earlier: packs[other]!, later: packs[index]!, share: shared / smaller });
    }
  }
  return similar;
}

/** Returns the hashes of every run of words. Letter case and punctuation do not count. */
function hashRuns(text: string, mask: number): Set<number> {
  const words = (text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? []).map(hashWord);
  const runs = new Set<number>();
  for (let at = 0; at + runWords <= words.length; at++) {
    let hash = 0;
    for (let offset = 0; offset < runWords; offset++) hash = mix(hash ^ words[at + offset]!);
    if ((hash & mask) === 0) runs.add(hash);
  }
  return runs;
}

/** FNV-1a. */
function hashWord(word: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < word.length; at++) hash = Math.imul(hash ^ word.charCodeAt(at), 0x01000193);
  return hash;
}

/** Spreads every bit over the whole number, so the low bits can select. */
function mix(value: number): number {
  const half = Math.imul(value ^ (value >>> 16), 0x45d9f3b);
  const whole = Math.imul(half ^ (half >>> 16), 0x45d9f3b);
  return (whole ^ (whole >>> 16)) >>> 0;
}

/** Adds a pack to the owners of its runs. Returns how many of the runs each earlier pack also has, by ascending index. */
function addOwner(owners: Map<number, number[]>, runs: ReadonlySet<number>, index: number): [number, number][] {
  const counts = new Map<number, number>();
  for (const run of runs) {
    const known = owners.get(run);
    for (const owner of known ?? []) counts.set(owner, (counts.get(owner) ?? 0) + 1);
    if (known === undefined) owners.set(run, [index]);
    else if (known.length < maxOwners) known.push(index);
  }
  return [...counts].sort(([a], [b]) => a - b);
}
