/** The project layer: what a project is, its tree, and what people wrote for those who work in it, within one limit. The same scan and
 *  limit give the same bytes. */
import { printable, wellFormed } from "../../text/index.ts";
import type { Counter } from "../../tokens/index.ts";
import { checkCounter, checkKeys, checkList, checkMaxTokens } from "../check-arguments.ts";
import { countUpTo } from "../truncate/count-up-to.ts";
import { truncateText, wholeLines } from "../truncate/truncate-text.ts";
import { fitConventions } from "./fit-conventions.ts";
import { createStructure, type Structure } from "./fit-structure.ts";
import type { FittedSection, SectionLimit } from "./fitted-section.ts";
import type { ProjectScan } from "./project-scan.ts";

export interface SnapshotOptions {
  readonly counter: Counter;
  /** Default: `defaultMaxSnapshotTokens`. 0 gives an empty text. */
  readonly maxTokens?: number | undefined;
}

export interface Snapshot {
  readonly text: string;
  /** At most `maxTokens`. */
  readonly tokens: number;
  /** Something is missing for the limit's sake; the text says where. A folder that is shown closed, with its count, is not missing. */
  readonly truncated: boolean;
  /** What is missing: entries of the tree, lines of facts and conventions. */
  readonly omitted: number;
  /** Of these, the entries of the tree. */
  readonly omittedEntries: number;
}

export const defaultMaxSnapshotTokens = 8_000;

/** Of what the project's facts leave. What the tree does not need is for the conventions, and the other way round. */
const structureShare = 0.4;

export function renderSnapshot(scan: ProjectScan, options: SnapshotOptions): Snapshot {
  checkArguments(scan, options);
  const { counter, maxTokens = defaultMaxSnapshotTokens } = options;
  const sections = fitSections(scan, { counter, maxTokens });
  const fitted = joined(sections.map(({ text }) => text));
  const dropped = fitted !== "" && sections.some(({ text, omitted }) => omitted > 0 && text === "");
  const marked = joined([fitted, "[truncated]"]);
  const text = dropped && counter.count(marked) <= maxTokens ? marked : fitted;
  const omitted = sections.reduce((sum, section) => sum + section.omitted, 0);
  const [, { omitted: omittedEntries }] = sections;
  return { text, tokens: counter.count(text), truncated: omitted > 0, omitted, omittedEntries };
}

function checkArguments(scan: ProjectScan, options: SnapshotOptions): void {
  checkKeys("options", options, ["counter", "maxTokens"]);
  checkCounter(options.counter);
  checkMaxTokens(options.maxTokens ?? 0);
  checkKeys("scan", scan, ["facts", "paths", "conventions", "problems"]);
  for (const name of ["facts", "paths", "conventions"] as const) checkList(`scan.${name}`, scan[name]);
}

interface Measure {
  readonly counter: Counter;
  readonly maxTokens: number;
}

type Sections = [project: FittedSection, structure: FittedSection, conventions: FittedSection];

function fitSections(scan: ProjectScan, measure: Measure): Sections {
  const structure = createStructure(scan.paths);
  const sections = fitShares(scan, structure, measure);
  const [, tree] = sections;
  return tree.text === "" && tree.omitted > 0 ? fitWithoutTree(scan, structure, measure) : sections;
}

function fitShares(scan: ProjectScan, structure: Structure, measure: Measure): Sections {
  const { counter, maxTokens } = measure;
  const project = fitProject(scan, measure);
  const used = counter.count(project.text);
  const shareOf = (share: number): number => used + Math.floor((maxTokens - used) * share);
  const conventionsLimit = { ...measure, maxTokens: shareOf(1 - structureShare) };
  const modest = fitConventions(scan.conventions, within(conventionsLimit, [project.text]));
  if (modest.omitted === 0)
    return [project, structure.fit(within(measure, [project.text], modest.text)), modest];
  const treeLimit = { ...measure, maxTokens: shareOf(structureShare) };
  const tree = structure.fit(within(treeLimit, [project.text]));
  return [project, tree, fitConventions(scan.conventions, within(measure, [project.text, tree.text]))];
}

/** That a tree is missing is told before anything else: facts and conventions have what that leaves. Where there is no room even for
 *  that there is none for them. */
function fitWithoutTree(scan: ProjectScan, structure: Structure, measure: Measure): Sections {
  const { counter, maxTokens } = measure;
  const { text: facts } = fitProject(scan, { counter, maxTokens: Number.POSITIVE_INFINITY });
  const { least } = structure;
  const tree = least.find(({ text }) => counter.count(joined([facts, text])) <= maxTokens) ?? least.at(-1)!;
  if (counter.count(tree.text) > maxTokens) return fitShares(scan, structure, { counter, maxTokens: 0 });
  const project = fitProject(scan, measure, tree.text);
  const limit = within(measure, [project.text, tree.text]);
  return [project, tree, fitConventions(scan.conventions, limit)];
}

/** A limit on all the text: that before a section, it, and that after it. */
function within({ counter, maxTokens }: Measure, before: readonly string[], after = ""): SectionLimit {
  return {
    limit: maxTokens,
    tokensWith: (section) => countUpTo(counter, joined([...before, section, after]), maxTokens),
  };
}

/** No name of a module or command is longer. */
const maxFactLength = 200;

function fitProject({ facts }: ProjectScan, { counter, maxTokens }: Measure, after = ""): FittedSection {
  if (facts.length === 0) return { text: "", omitted: 0 };
  const lines = facts.map(({ name, value }) => `- ${name}: ${shortened(value)}`);
  const text = wellFormed(["## Project", "", ...lines].join("\n"));
  const withAfter = { name: "", count: (section: string) => counter.count(joined([section, after])) };
  if (withAfter.count(text) <= maxTokens) return { text, omitted: 0 };
  const cut = truncateText(text, { counter: withAfter, limit: maxTokens, ending: "\n[truncated]" });
  // Its heading is no fact.
  const kept = Math.max(0, wholeLines(text, cut.kept) - 1);
  return { text: cut.text, omitted: lines.length - kept };
}

function shortened(value: string): string {
  const shown = printable(value);
  return shown.length > maxFactLength ? `${shown.slice(0, maxFactLength)}…` : shown;
}

function joined(sections: readonly string[]): string {
  return sections.filter((section) => section !== "").join("\n\n");
}
