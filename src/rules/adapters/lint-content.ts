/** Finds mistakes in the packs, profiles and adapters that people write. */
import { readdirSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import {
  type Caller,
  homeDirectory,
  listForeign,
  loadConfig,
  loadYaml,
  projectRoot,
  readForeignText,
} from "../../host/index.ts";
import { applyBudgets, isEnforced } from "../audit/limits.ts";
import { type ContentProblem, readEmbeddedContent } from "../content/load-content.ts";
import { loadLint, mergeLayers, type PackBudget, type PackLayer, packFileNames, packTextName } from "../packs/index.ts";
import { expandLayers } from "../sync/expand-layers.ts";
import { pinFolder } from "../sync/fetched-texts.ts";
import type { Adapter } from "./adapter.ts";
import { type ContentChoice, loadPacksContent, type PacksContent } from "./packs-content.ts";
import { chooseBudgets } from "./prepare-inject.ts";

/** Checks every pack, also those that inject would not use. Problems are in the order of their places; `packs` is how
 *  many packs were checked. */
export async function lintContent(
  choice: ContentChoice,
  { cwd, env, ...caller }: Caller,
): Promise<{ readonly problems: readonly ContentProblem[]; readonly packs: number }> {
  const content = await loadPacksContent({ ...choice, profile: "all", isEvery: true }, { cwd, env, ...caller });
  const { values: config } = await loadConfig({ cwd, env });
  const budgets = chooseBudgets(undefined, config.budgets, { ...content, limits: content.company?.budgets });
  const budgeted = applyBudgets(content.adapters, budgets, choice.scope).map((adapter) => ({
    ...adapter,
    onOverflow: adapter.onOverflow ?? config.on_overflow,
  }));
  // Problems in the texts of languages that this run does not use.
  const folder = pinFolder(choice.scope, { root: projectRoot(cwd, homeDirectory(env)), env });
  const { layers, explain } = await expandLayers(content.layers, folder);
  const names = layers.flatMap(({ sources }) => sources.flatMap(({ texts }) => Object.keys(texts)));
  const languages = new Set(names.map((name) => /\.(.+)\.md$/.exec(name)?.[1] ?? "en"));
  const found = [
    ...content.problems,
    ...[...languages].flatMap((language) => mergeLayers(layers, { language }).warnings.map(explain)),
    // Without a title of its own, a block may hold headings of level 1.
    ...(await findMistakes({ ...content, budgeted })).filter(
      (each) => config.title !== "" || each.rule !== "heading-level",
    ),
    ...findUnusedFiles(content),
  ];
  // The loader and a rule may report the same.
  const byText = new Map(found.map((each) => [`${each.file}\n${each.line}\n${each.message}`, each]));
  const key = ({ file, rule, message }: ContentProblem) => [file, rule, message].join("\n");
  const problems = [...byText.values()].sort((a, b) => {
    if (a.file === b.file && a.line !== b.line) return a.line - b.line;
    return key(a) < key(b) ? -1 : 1;
  });
  return { problems, packs: content.packs.length };
}

async function findMistakes(
  content: PacksContent & { readonly budgeted: readonly Adapter[] },
): Promise<ContentProblem[]> {
  const lines = await createLineFinder(content.directories);
  const { lintPacks } = await loadLint();
  const found = lintPacks({
    packs: content.packs,
    sources: content.layers.flatMap(ownSources),
    profiles: content.profiles.filter(({ id }) => lines.profileFile(id) !== undefined),
    tools: content.adapters.flatMap(({ id, reads }) => [id, ...reads]),
    knownIds: readEmbeddedContent().sources.map(({ id }) => id),
    budgets: content.budgeted.flatMap(listBudgets),
  });
  return found.map(({ place, severity, rule, message }) => {
    const about = { severity, rule, message };
    if ("line" in place) return { file: join(place.directory, place.file), line: place.line, ...about };
    const file = "profile" in place ? lines.profileFile(place.profile)! : join(place.directory, "pack.yaml");
    return { file, line: lines.lineOf(file, place.key), ...about };
  });
}

/** Reports files of packs that are not read. A run never mentions them: a pack may serve other programs too. */
function findUnusedFiles({ layers, problems }: PacksContent): ContentProblem[] {
  const reported = new Set(problems.filter(({ rule }) => rule === "unknown-file").map(({ file }) => file));
  return layers.flatMap(ownSources).flatMap(({ directory }) => {
    const unused = readdirSync(directory, { withFileTypes: true })
      .map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name))
      .filter((name) => !name.startsWith(".") && !["skills/", "commands/", "agents/"].includes(name))
      // People explain a pack in these files.
      .filter((name) => !/^(readme|license|licence|changelog)\b/i.test(name))
      .filter((name) => !packFileNames.includes(name) && !packTextName.test(name))
      .filter((name) => !reported.has(join(directory, name)))
      .sort();
    if (unused.length === 0) return [];
    const texts = "context.md, context.expanded.md, constraints.md, preamble.md, translations such as context.de.md";
    const read = `Plimsoll reads ${packFileNames.join(", ")}, ${texts}, skills/, commands/ and agents/.`;
    const message = `these files of the pack are not read: ${unused.join(", ")}. ${read}`;
    const file = join(directory, "pack.yaml");
    return [{ file, line: 1, severity: "warning" as const, rule: "unused-file", message }];
  });
}

/** Leaves out built-in packs, which nobody can change here. */
function ownSources({ sources }: PackLayer): PackLayer["sources"] {
  return sources.filter(({ directory }) => isAbsolute(directory));
}

/** The adapter's own budget, and the tool's known limits. A tool that thins takes a pack whose core fits. */
function listBudgets({ id, maxBytes, maxTokens, verbosity: own = "full", limits, onOverflow }: Adapter): PackBudget[] {
  const verbosity = onOverflow === "thin" ? "minimal" : own;
  const budgets: Omit<PackBudget, "adapter" | "verbosity">[] = [];
  if (maxBytes !== undefined && maxBytes > 0) budgets.push({ value: maxBytes, unit: "bytes" });
  else if (maxTokens !== undefined && maxTokens > 0) budgets.push({ value: maxTokens * 4, unit: "bytes" });
  for (const limit of limits.filter(isEnforced)) {
    if (limit.unit === "bytes" || limit.unit === "chars") budgets.push({ value: limit.value, unit: limit.unit });
  }
  return budgets.map((budget) => ({ ...budget, adapter: id, verbosity }));
}

/** Finds the line of a key in a YAML file. Returns 1 for an unreadable file, which is reported elsewhere. Uses the last
 *  layer that has the profile, as the loader does. */
async function createLineFinder(directories: readonly string[]): Promise<{
  /** Returns the line number from 1. */
  lineOf(file: string, key: readonly (string | number)[]): number;
  /** Returns the file of the profile; undefined for a built-in one. */
  profileFile(id: string): string | undefined;
}> {
  const { readYaml } = await loadYaml();
  const cache = new Map<string, ReturnType<typeof readYaml>>();
  const read = (file: string): ReturnType<typeof readYaml> => {
    const known = cache.get(file);
    if (known !== undefined) return known;
    const foreign = readForeignText(file);
    const document = readYaml("text" in foreign ? foreign.text : "");
    cache.set(file, document);
    return document;
  };
  const profiles = new Map<string, string>();
  for (const folder of directories.map((directory) => join(directory, "profiles"))) {
    const entries = listForeign(folder);
    const names = (Array.isArray(entries) ? entries : [])
      .map(({ name }) => name)
      .filter((name) => name.endsWith(".yaml"));
    for (const file of names.sort().map((name) => join(folder, name))) {
      const id = (read(file).input as { readonly id?: unknown } | null | undefined)?.id;
      if (typeof id === "string") profiles.set(id, file);
    }
  }
  return { profileFile: (id) => profiles.get(id), lineOf: (file, key) => read(file).lineOf(key) };
}
