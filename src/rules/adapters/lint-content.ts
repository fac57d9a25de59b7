/** Finds mistakes in the packs, profiles and adapters that people write. */
import { readdirSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { type Caller, homeDirectory, loadYaml, projectRoot, readForeignText } from "../../host/index.ts";
import { isEnforced } from "../audit/limits.ts";
import { type ContentProblem, readEmbeddedContent } from "../content/load-content.ts";
import {
  type LintFinding,
  loadLint,
  mergeLayers,
  type PackBudget,
  type PackLayer,
  packFileNames,
  packTextName,
} from "../packs/index.ts";
import { expandLayers } from "../sync/expand-layers.ts";
import { pinFolder } from "../sync/fetched-texts.ts";
import type { Adapter } from "./adapter.ts";
import { type ContentChoice, loadPacksContent, type PacksContent } from "./packs-content.ts";

export interface ContentReport {
  /** In the order of their places. */
  readonly problems: readonly ContentProblem[];
  /** How many packs were checked. */
  readonly packs: number;
}

/** Checks every pack, also those that inject would not use. */
export async function lintContent(choice: ContentChoice, caller: Caller): Promise<ContentReport> {
  const content = await loadPacksContent({ ...choice, profile: "all", isEvery: true }, caller);
  const found = [
    ...content.problems,
    ...(await textProblems(content, choice, caller)),
    ...(await findings(content)),
    ...unusedFiles(content),
  ];
  return { problems: sorted(found), packs: content.packs.length };
}

/** Finds problems in the texts of languages that this run does not use. */
async function textProblems(
  content: PacksContent,
  { scope }: ContentChoice,
  { cwd, env }: Caller,
): Promise<ContentProblem[]> {
  const root = projectRoot(cwd, homeDirectory(env));
  const folder = pinFolder(scope, { root, env });
  const { layers, problemOf } = await expandLayers(content.layers, folder);
  const names = layers.flatMap(({ sources }) => sources.flatMap(({ texts }) => Object.keys(texts)));
  const languages = new Set(names.map((name) => /\.(.+)\.md$/.exec(name)?.[1] ?? "en"));
  return [...languages].flatMap((language) => mergeLayers(layers, { language }).warnings.map(problemOf));
}

async function findings(content: PacksContent): Promise<ContentProblem[]> {
  const lines = await createLineFinder(content.directories);
  const { lintPacks } = await loadLint();
  const found = lintPacks({
    packs: content.packs,
    sources: content.layers.flatMap(ownSources),
    profiles: content.profiles.filter(({ id }) => lines.profileFile(id) !== undefined),
    knownIds: readEmbeddedContent().sources.map(({ id }) => id),
    budgets: content.adapters.flatMap(budgetsOf),
  });
  return found.map((finding) => locate(finding, lines));
}

/** Reports files of packs that are not read. A run never mentions them: a pack may serve other programs too. */
function unusedFiles({ layers, problems }: PacksContent): ContentProblem[] {
  const reported = new Set(problems.filter(({ rule }) => rule === "unknown-file").map(({ file }) => file));
  return layers.flatMap(ownSources).flatMap(({ directory }) => {
    const unused = unusedNames(directory).filter((name) => !reported.has(join(directory, name)));
    if (unused.length === 0) return [];
    const message = `these files of the pack are not read: ${unused.join(", ")}. ${readNames}`;
    const file = join(directory, "pack.yaml");
    return [{ file, line: 1, severity: "warning" as const, rule: "unused-file", message }];
  });
}

const readNames = `Plimsoll reads ${packFileNames.join(", ")}, context.md, context.expanded.md, constraints.md, \
preamble.md, translations such as context.de.md, and skills/.`;

/** People explain a pack in these files. */
const aboutPack = /^(readme|license|licence|changelog)\b/i;

function unusedNames(directory: string): string[] {
  const entries = readdirSync(directory, { withFileTypes: true });
  return entries
    .map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name))
    .filter((name) => !name.startsWith(".") && name !== "skills/" && !aboutPack.test(name))
    .filter((name) => !packFileNames.includes(name) && !packTextName.test(name))
    .sort();
}

/** Leaves out built-in packs, which nobody can change here. */
function ownSources({ sources }: PackLayer): PackLayer["sources"] {
  return sources.filter(({ directory }) => isAbsolute(directory));
}

/** The adapter's own budget, and the tool's known limits. */
function budgetsOf({ id, maxBytes, maxTokens, verbosity = "full", limits }: Adapter): PackBudget[] {
  const budgets: Omit<PackBudget, "adapter" | "verbosity">[] = [];
  if (maxBytes !== undefined && maxBytes > 0) budgets.push({ value: maxBytes, unit: "bytes" });
  else if (maxTokens !== undefined && maxTokens > 0) budgets.push({ value: maxTokens * 4, unit: "bytes" });
  for (const limit of limits.filter(isEnforced)) {
    if (limit.unit === "bytes" || limit.unit === "chars") budgets.push({ value: limit.value, unit: limit.unit });
  }
  return budgets.map((budget) => ({ ...budget, adapter: id, verbosity }));
}

function locate({ place, severity, rule, message }: LintFinding, lines: LineFinder): ContentProblem {
  const about = { severity, rule, message };
  if ("line" in place) return { file: join(place.directory, place.file), line: place.line, ...about };
  const file = "profile" in place ? lines.profileFile(place.profile)! : join(place.directory, "pack.yaml");
  return { file, line: lines.lineOf(file, place.key), ...about };
}

/** Sorts by place and removes duplicates, because the loader and a rule may report the same. */
function sorted(problems: readonly ContentProblem[]): ContentProblem[] {
  const byText = new Map(problems.map((each) => [`${each.file}\n${each.line}\n${each.message}`, each]));
  const key = ({ file, rule, message }: ContentProblem) => [file, rule, message].join("\n");
  return [...byText.values()].sort((a, b) => {
    if (a.file === b.file && a.line !== b.line) return a.line - b.line;
    return key(a) < key(b) ? -1 : 1;
  });
}

/** Finds the line of a key in a YAML file. Returns 1 for an unreadable file, which is reported elsewhere. */
interface LineFinder {
  /** Line number from 1. */
  lineOf(file: string, key: readonly (string | number)[]): number;
  /** The file of the profile; undefined for a built-in one. */
  profileFile(id: string): string | undefined;
}

/** Uses the last layer that has the profile, as the loader does. */
async function createLineFinder(directories: readonly string[]): Promise<LineFinder> {
  const { readYaml } = await loadYaml();
  const cache = new Map<string, ReturnType<typeof readYaml>>();
  const read = (file: string): ReturnType<typeof readYaml> => {
    const known = cache.get(file) ?? readYaml(textOf(file));
    cache.set(file, known);
    return known;
  };
  const profiles = new Map<string, string>();
  for (const file of directories.flatMap(profileFiles)) {
    const id = (read(file).input as { readonly id?: unknown } | null | undefined)?.id;
    if (typeof id === "string") profiles.set(id, file);
  }
  return { profileFile: (id) => profiles.get(id), lineOf: (file, key) => read(file).lineOf(key) };
}

function profileFiles(directory: string): string[] {
  const folder = join(directory, "profiles");
  try {
    const names = readdirSync(folder).filter((name) => name.endsWith(".yaml"));
    return names.sort().map((name) => join(folder, name));
  } catch {
    return [];
  }
}

function textOf(file: string): string {
  const read = readForeignText(file);
  return "text" in read ? read.text : "";
}
