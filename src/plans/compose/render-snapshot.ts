/** Renders the project layer: facts, file tree and conventions within one limit. The same scan and limit give the
 *  same bytes. */
import {
  argumentChecks,
  checkKeys,
  closeFence,
  codeLanguage,
  fitForeignText,
  printable,
  printableLines,
  toByteString,
  wellFormed,
} from "../../core/text/index.ts";
import type { Counter } from "../../core/tokens/index.ts";
import type { ConventionsFile, ProjectScan } from "../../host/index.ts";
import { countLines, countUpTo, findLargest, type Measure, truncateText, wholeLines } from "./truncate-layer.ts";

/** A project described in Markdown, and what had to be left out of it. */
export interface Snapshot {
  /** The facts of the project, its file tree and its conventions. */
  readonly text: string;
  /** Tokens of the text, at most `maxTokens`. */
  readonly tokens: number;
  /**
   * Whether something is missing because of the limit. The text says where. A closed folder that shows its number of
   * entries is not missing.
   */
  readonly truncated: boolean;
  /** How many entries of the tree and lines of facts and conventions are missing. */
  readonly omitted: number;
  /** How many of these are entries of the tree. */
  readonly omittedEntries: number;
}

export const defaultMaxSnapshotTokens = 8_000;

/**
 * Describes a project in Markdown within a token limit: facts, file tree and conventions. The same scan and limit give
 * the same bytes.
 *
 * @example
 * ```ts
 * import { createCounter } from "plimsoll";
 * import { scanProject } from "plimsoll/agent";
 * import { renderSnapshot } from "plimsoll/compose";
 *
 * const counter = await createCounter("bytes/4");
 * const { text, omitted } = renderSnapshot(await scanProject("."), { counter, maxTokens: 4_000 });
 * console.log(text, omitted);
 * ```
 */
export function renderSnapshot(
  scan: ProjectScan,
  options: {
    /** Counts the tokens of the text. */
    readonly counter: Counter;
    /**
     * The most tokens that the snapshot may have. 0 gives an empty text.
     * @default 8_000
     */
    readonly maxTokens?: number | undefined;
  },
): Snapshot {
  checkKeys("options", options, ["counter", "maxTokens"]);
  argumentChecks.counter("counter", options.counter);
  argumentChecks.tokensFrom(0)("maxTokens", options.maxTokens ?? 0);
  checkKeys("scan", scan, ["facts", "paths", "conventions", "problems"]);
  for (const name of ["facts", "paths", "conventions"] as const) argumentChecks.list(`scan.${name}`, scan[name]);
  const { counter, maxTokens = defaultMaxSnapshotTokens } = options;
  const structure = createStructure(scan.paths);
  const shared = fitShares(scan, structure, { counter, maxTokens });
  const isTreeLost = shared[1].text === "" && shared[1].omitted > 0;
  const sections = isTreeLost ? fitWithoutTree(scan, structure, { counter, maxTokens }) : shared;
  const fitted = join(sections.map(({ text }) => text));
  const dropped = fitted !== "" && sections.some(({ text, omitted }) => omitted > 0 && text === "");
  const marked = join([fitted, "[truncated]"]);
  const text = dropped && counter.count(marked) <= maxTokens ? marked : fitted;
  const omitted = sections.reduce((sum, section) => sum + section.omitted, 0);
  const [, { omitted: omittedEntries }] = sections;
  return { text, tokens: counter.count(text), truncated: omitted > 0, omitted, omittedEntries };
}

type Sections = [project: FittedSection, structure: FittedSection, conventions: FittedSection];

function fitShares(scan: ProjectScan, structure: Structure, measure: Measure): Sections {
  const { counter, maxTokens } = measure;
  // The tree's share of the tokens that the facts leave. If the tree needs less, the conventions get the rest, and the
  // other way round.
  const structureShare = 0.4;
  const project = fitProject(scan, measure);
  const used = counter.count(project.text);
  const limitShare = (share: number) => ({ counter, maxTokens: used + Math.floor((maxTokens - used) * share) });
  const modest = fitConventions(scan.conventions, within(limitShare(1 - structureShare), [project.text]));
  if (modest.omitted === 0) return [project, structure.fit(within(measure, [project.text], modest.text)), modest];
  const tree = structure.fit(within(limitShare(structureShare), [project.text]));
  return [project, tree, fitConventions(scan.conventions, within(measure, [project.text, tree.text]))];
}

/** If the tree does not fit, a line that says so comes first, and facts and conventions share the rest. If even that
 *  line does not fit, nothing does. */
function fitWithoutTree(scan: ProjectScan, structure: Structure, measure: Measure): Sections {
  const { counter, maxTokens } = measure;
  const { text: facts } = fitProject(scan, { counter, maxTokens: Number.POSITIVE_INFINITY });
  const { least } = structure;
  const tree = least.find(({ text }) => counter.count(join([facts, text])) <= maxTokens) ?? least.at(-1)!;
  if (counter.count(tree.text) > maxTokens) return fitShares(scan, structure, { counter, maxTokens: 0 });
  const project = fitProject(scan, measure, tree.text);
  const limit = within(measure, [project.text, tree.text]);
  return [project, tree, fitConventions(scan.conventions, limit)];
}

/** The limit of a section, counted with the text before and after it. */
function within({ counter, maxTokens }: Measure, before: readonly string[], after = ""): SectionLimit {
  return {
    limit: maxTokens,
    tokensWith: (section) => countUpTo(counter, join([...before, section, after]), maxTokens),
  };
}

function fitProject({ facts }: ProjectScan, { counter, maxTokens }: Measure, after = ""): FittedSection {
  if (facts.length === 0) return { text: "", omitted: 0 };
  // Longer than any name of a module or command.
  const maxLength = 200;
  const lines = facts.map(({ name, value }) => {
    const visible = printable(value);
    return `- ${name}: ${visible.length > maxLength ? `${visible.slice(0, maxLength)}…` : visible}`;
  });
  const text = wellFormed(["## Project", "", ...lines].join("\n"));
  const withAfter = { name: "", count: (section: string) => counter.count(join([section, after])) };
  if (withAfter.count(text) <= maxTokens) return { text, omitted: 0 };
  const cut = truncateText(text, { counter: withAfter, limit: maxTokens, ending: "\n[truncated]" });
  // The heading does not count as a fact.
  const kept = Math.max(0, wholeLines(text, cut.kept) - 1);
  return { text: cut.text, omitted: lines.length - kept };
}

function join(sections: readonly string[]): string {
  return sections.filter((section) => section !== "").join("\n\n");
}

/** Renders the files in order: whole ones, then the beginning of one, then how many are left out. */
function fitConventions(files: readonly ConventionsFile[], { limit, tokensWith }: SectionLimit): FittedSection {
  const all = files.map(makeQuotable).filter(({ text }) => text !== "");
  if (all.length === 0) return { text: "", omitted: 0 };
  const wholeOnes = (count: number): string => renderConventions(all.slice(0, count), all.length - count);
  const count = findLargest({
    limit,
    largest: all.length,
    first: 1,
    tokensAt: (number) => tokensWith(wholeOnes(number)),
  });
  const next = all[count];
  if (next === undefined) return { text: wholeOnes(count), omitted: 0 };
  const withPart = (text: string): string =>
    renderConventions([...all.slice(0, count), { ...next, text }], all.length - count - 1);
  const part = truncateText(next.text, {
    counter: { name: "", count: (text) => tokensWith(withPart(text)) },
    limit,
    ending: "\n[truncated]",
  });
  const lines = all.slice(count).reduce((sum, { text }) => sum + countLines(text), 0);
  if (part.text !== "") return { text: withPart(part.text), omitted: lines - wholeLines(next.text, part.kept) };
  const fits = count > 0 || tokensWith(wholeOnes(0)) <= limit;
  return { text: fits ? wholeOnes(count) : "", omitted: lines };
}

/** Makes a file safe to quote. Comments could hide the text after them, control characters could steer a terminal,
 *  and invisible characters could instruct a model without any person seeing it. */
function makeQuotable({ path, text }: ConventionsFile): ConventionsFile {
  const visible = printableLines(fitForeignText(text).text);
  return { path: wellFormed(printable(path)), text: closeFence(wellFormed(visible).trim()) };
}

function renderConventions(files: readonly ConventionsFile[], omitted: number): string {
  const marker = `[... truncated, ${omitted === 1 ? "1 file" : `${omitted} files`} omitted]`;
  return [
    "## Conventions",
    ...files.map(({ path, text }) => `### ${path}\n\n${text}`),
    ...(omitted === 0 ? [] : [marker]),
  ].join("\n\n");
}

interface FittedSection {
  /** Empty if nothing of it fits. */
  readonly text: string;
  /** Entries of the tree, or lines of text. 0 if the section is whole. */
  readonly omitted: number;
}

/** The limit of a section, measured on the whole text around it. */
interface SectionLimit {
  readonly limit: number;
  /** May be infinite above the limit. */
  tokensWith(section: string): number;
}

/** Replaces the conventions that an agent loads by itself with one line that names them, so that its prompt does not
 *  repeat them. Returns the same scan if there are none. */
export function leaveOutConventions(
  scan: ProjectScan,
  loadsItself: (file: ConventionsFile) => boolean = () => false,
): { readonly scan: ProjectScan; readonly leftOut: readonly string[] } {
  const leftOut = scan.conventions.filter(loadsItself).map(({ path }) => path);
  if (leftOut.length === 0) return { scan, leftOut };
  const line = { path: leftOut.join(", "), text: "Not repeated here: you load this by yourself." };
  const others = scan.conventions.filter((file) => !loadsItself(file));
  return { scan: { ...scan, conventions: [line, ...others] }, leftOut };
}

/** How deep every folder is shown, and how deep folders with code are if there is room. */
const [usualDepth, maxDepth] = [3, 8];

/** A folder with more entries stays closed. */
const maxInFolder = 20;

type Structure = ReturnType<typeof createStructure>;

/** Creates the tree of a snapshot. Each step shows more of it: first one entry of the root, then the content of one
 *  folder, level by level, then deeper folders with code. */
function createStructure(paths: readonly string[]) {
  const root = emptyFolder();
  for (const path of paths) addPath(root, path);
  // The root is never closed, but it must leave room for other text. Roots of real projects have fewer entries.
  const entries = listEntries(root, { depth: 1, maxEntries: 100 });
  // The folders that can be opened, level by level, each parent before its children.
  const usual: Entry[] = [];
  const deep: Entry[] = [];
  for (let [level, depth] = [entries, 1]; level.length > 0; level = level.flatMap(({ children }) => children), depth++)
    (depth < usualDepth ? usual : deep).push(...level.filter(({ children }) => children.length > 0));
  const order = new Map([...usual, ...deep].map((entry, index) => [entry, index]));
  const neverShown = countEntries(root) - entries.length;
  const total = countEntries(root) + usual.reduce((sum, { children }) => sum + children.length, 0);
  const allUsual = entries.length + usual.length;
  const largest = allUsual + deep.length;
  const render = (steps: number) => {
    const open = steps - entries.length;
    const lines = renderEntries(entries.slice(0, steps), "", (entry) => order.get(entry)! < open);
    // Entries down to `usualDepth` that are not shown, and those that are never shown because the root has too many.
    // Deeper entries do not count.
    const omitted = steps >= allUsual ? neverShown : total - lines.length;
    const marker = `[... truncated, ${describeCount(omitted)} omitted]`;
    return { text: renderStructure(lines, omitted === 0 ? [] : [marker]), omitted, marker };
  };
  const { text: heading, marker, omitted } = render(0);
  return {
    /** Only how much is left out: with a heading, or as one line. */
    least: largest === 0 ? [] : [heading, marker].map((text) => ({ text, omitted })),
    /** Renders as much of the tree as fits, in a fence, and how much is left out. */
    fit({ limit, tokensWith }: SectionLimit): FittedSection {
      if (largest === 0) return { text: "", omitted: 0 };
      const tokensAt = (steps: number) => tokensWith(render(steps).text);
      // A tree of 64 steps is small in any useful budget.
      const steps = findLargest({ limit, largest, first: 64, tokensAt });
      const fitted = render(steps);
      const fits = steps > 0 || tokensAt(0) <= limit;
      return { text: fits ? fitted.text : "", omitted: fitted.omitted };
    },
  };
}

function renderStructure(lines: readonly string[], notes: readonly string[]): string {
  if (lines.length === 0) return ["## Structure", "", ...notes].join("\n");
  // Longer than any run of backticks, so that no name can close the fence.
  let longestRun = 2;
  for (const line of lines)
    if (line.includes("```")) for (const [run] of line.matchAll(/`+/g)) longestRun = Math.max(longestRun, run.length);
  const fence = "`".repeat(longestRun + 1);
  return ["## Structure", "", fence, ...lines, ...notes, fence].join("\n");
}

interface Entry {
  readonly name: string;
  /** Its number of entries; undefined for a file, and for a folder whose content is unknown. */
  readonly count: number | undefined;
  /** Empty unless it can be opened. */
  readonly children: readonly Entry[];
}

/** Lists folders before files: those with code, other folders, documents, then folders that start with a dot. */
function listEntries(folder: Folder, { depth, maxEntries }: { depth: number; maxEntries: number }): Entry[] {
  const rank = (name: string): number => {
    if (name.startsWith(".")) return 3;
    if (/^(docs?|documentation)$/i.test(name)) return 2;
    return folder.folders.get(name)!.hasCode ? 0 : 1;
  };
  const ranked = sortNames(folder.folders.keys()).map((name) => ({ name, rank: rank(name) }));
  const folders = ranked.sort((one, two) => one.rank - two.rank).slice(0, maxEntries);
  const files = sortNames(folder.files).slice(0, maxEntries - folders.length);
  const render = (name: string) => wellFormed(printable(name));
  return [
    ...folders.map(({ name }) => {
      const inside = folder.folders.get(name)!;
      const count = countEntries(inside);
      const isDeepEnough = depth < usualDepth || (inside.hasCode && depth < maxDepth);
      const canOpen = isDeepEnough && count <= maxInFolder;
      return {
        name: `${render(name)}/`,
        count: count === 0 ? undefined : count,
        children: canOpen ? listEntries(inside, { depth: depth + 1, maxEntries: maxInFolder }) : [],
      };
    }),
    ...files.map((name) => ({ name: render(name), count: undefined, children: [] })),
  ];
}

function renderEntries(entries: readonly Entry[], indent: string, isOpen: (entry: Entry) => boolean): string[] {
  return entries.flatMap((entry) => {
    if (entry.children.length > 0 && isOpen(entry))
      return [indent + entry.name, ...renderEntries(entry.children, `${indent}  `, isOpen)];
    const { name, count } = entry;
    return count === undefined ? indent + name : `${indent}${name} (${describeCount(count)})`;
  });
}

function describeCount(entries: number): string {
  return entries === 1 ? "1 entry" : `${entries} entries`;
}

/** Paths as folders, as deep as a snapshot shows them. */
interface Folder {
  readonly folders: Map<string, Folder>;
  readonly files: string[];
  /** Whether it has code at any depth. */
  hasCode: boolean;
}

function emptyFolder(): Folder {
  return { folders: new Map(), files: [], hasCode: false };
}

/** Used for all folders below `maxDepth`, which are only counted. */
const closed: Folder = emptyFolder();

/** Adds a path to a tree. A path that ends with a slash is a folder. Folders at `maxDepth` still know their entries, so
 *  that these can be counted; nothing deeper is kept. */
function addPath(root: Folder, path: string): void {
  const isCode = codeLanguage(path) !== undefined;
  let folder = root;
  let start = 0;
  for (let depth = 0; depth <= maxDepth; depth++) {
    if (isCode) folder.hasCode = true;
    const slash = path.indexOf("/", start);
    if (slash === -1) {
      if (start < path.length) folder.files.push(path.slice(start));
      return;
    }
    const name = path.slice(start, slash);
    if (depth === maxDepth) folder.folders.set(name, closed);
    else {
      const inside = folder.folders.get(name) ?? emptyFolder();
      folder.folders.set(name, inside);
      folder = inside;
    }
    start = slash + 1;
  }
}

function countEntries({ folders, files }: Folder): number {
  return folders.size + files.length;
}

/** Sorts by UTF-8 bytes, as git does, independent of the locale. */
function sortNames(names: Iterable<string>): string[] {
  const keyed = Array.from(names, (name) => ({ name, bytes: toByteString(name) }));
  keyed.sort((a, b) => (a.bytes < b.bytes ? -1 : a.bytes > b.bytes ? 1 : 0));
  return keyed.map(({ name }) => name);
}
