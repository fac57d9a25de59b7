/** Reads one layer of content from its directory: packs/, profiles/ and adapters/. Loads yaml and zod only for files
 *  that need them. */

import { lstatSync } from "node:fs";
import { basename, join } from "node:path";
import type { z } from "zod";
import { closest, didYouMean } from "../../core/text/index.ts";
import { type CompanyConfig, loadYaml, readKnownShape, type ShapeName, type YamlDocument } from "../../host/index.ts";
import {
  builtInProfiles,
  type ContentLayer,
  createPackSource,
  loadPackSchemas,
  nestedFolders,
  type PackFile,
  type PackSource,
  type Profile,
  packFileNames,
  packTextName,
} from "../packs/index.ts";
import { type ContentScope, listContent, readContentText, report, statContent } from "./content-files.ts";
import type { AdapterFile, ContentProblem } from "./load-content.ts";
import { readPrompts, readSkills } from "./read-skills.ts";

export interface LayerContent<Adapter> {
  readonly sources: readonly PackSource[];
  readonly profiles: readonly Profile[];
  readonly adapters: readonly Adapter[];
  /** Ids of packs that profiles need. The packs may be in other layers. */
  readonly needed?: readonly NeededPack[] | undefined;
  /** For the company's layer only. */
  readonly company?: CompanyRules | undefined;
}

/** The place where a profile names a pack. */
type NeededPack = Pick<ContentProblem, "file" | "line" | "severity"> & { readonly id: string };

interface LayerOptions<Adapter> {
  readonly layer: ContentLayer;
  /** The adapters that a file of the layer changes. */
  readonly lower: readonly Adapter[];
  /** The adapters that a file changes only if it is no whole adapter. Without a whole one, they belong to the layer. */
  readonly spare: readonly Adapter[];
  readonly loadAdapterSchema: () => Promise<z.ZodType<AdapterFile<Adapter>>>;
}

export async function readContentLayer<Adapter extends { readonly id: string }>(
  scope: ContentScope,
  options: LayerOptions<Adapter>,
): Promise<LayerContent<Adapter>> {
  const needed: NeededPack[] = [];
  const company = options.layer === "company" ? await readCompanyRules(scope) : undefined;
  const sources = await readPacks(scope);
  const profiles = await readProfiles(scope, needed);
  const files = await readAdapters(scope, options.loadAdapterSchema);
  const changesOnly = files.every(({ value }) => "missing" in value.over(undefined));
  const adapters = files.flatMap((file) => mergeAdapter(scope, file, options) ?? []);
  return { company, needed, sources, profiles, adapters: changesOnly ? [...options.spare, ...adapters] : adapters };
}

/** What a company sets for its projects, and where. */
export interface CompanyRules extends CompanyConfig {
  readonly file: string;
  lineOf(path: readonly PropertyKey[]): number;
}

/** Reads the company's `config.yaml`. Every mistake is an error: a rule that nobody applies must not look as if it
 *  holds. */
async function readCompanyRules(scope: ContentScope): Promise<CompanyRules | undefined> {
  const file = join(scope.directory, "config.yaml");
  if (lstatSync(file, { throwIfNoEntry: false }) === undefined) return undefined;
  const kind = { shape: "company", load: loadCompanySchema } as const;
  const document = await readContentYaml({ ...scope, strictness: "error" }, file, kind);
  return document?.value && { ...document.value, file, lineOf: document.lineOf };
}

async function loadCompanySchema(): Promise<z.ZodType<CompanyConfig>> {
  return (await import("../../host/config/config-file.ts")).companyConfigSchema;
}

/** Returns the adapter of a file, with what it does not set from the layer below. */
function mergeAdapter<Adapter extends { readonly id: string }>(
  scope: ContentScope,
  { id, value, file, line }: Definition<AdapterFile<Adapter>>,
  { lower, spare }: LayerOptions<Adapter>,
): Adapter | undefined {
  const over = (adapters: readonly Adapter[]) => value.over(adapters.find((each) => each.id === id));
  const whole = over(lower);
  const adapter = "missing" in whole ? over(spare) : whole;
  if (!("missing" in adapter)) return adapter;
  const ids = [...lower, ...spare].map((each) => each.id);
  const meant = didYouMean(id, ids);
  const reason = `"${adapter.missing}" is missing, and no lower layer has an adapter "${id}" to change`;
  const message = meant === undefined ? reason : `${reason}. ${meant}`;
  return report(scope, { file, line, rule: "missing-key", message });
}

async function readPacks(scope: ContentScope): Promise<PackSource[]> {
  const directory = join(scope.directory, "packs");
  const folders = listContent(scope, directory).filter(
    (entry) =>
      entry.isDirectory() ||
      (entry.isSymbolicLink() && statContent(scope, join(directory, entry.name))?.isDirectory() === true),
  );
  const found: { readonly id: string; readonly source: PackSource; readonly file: string; readonly line: number }[] =
    [];
  for (const { name } of folders) {
    const pack = await readPackFolder(scope, name);
    if (pack !== undefined) found.push({ ...pack, id: pack.source.id });
  }
  return unique(scope, found).map(({ source }) => source);
}

async function readProfiles(scope: ContentScope, needed: NeededPack[]): Promise<Profile[]> {
  const reserved = builtInProfiles.map(({ id }) => id);
  const definitions = await readDefinitions(
    scope,
    "profiles",
    createKind("profile", (schemas) => schemas.profileFileSchema),
  );
  return definitions.flatMap(({ value, file, line, lineOf }) => {
    for (const [index, id] of (value.only ?? []).entries())
      needed.push({ id, file, line: lineOf(["only", index]), severity: scope.strictness });
    if (!reserved.includes(value.id)) {
      const { id, name = id, description = "", packs = [], only } = value;
      return [{ id, name, description, packs, ...(only !== undefined && { only }) }];
    }
    const message = `profile "${value.id}" is built in and cannot be replaced: choose another id`;
    report(scope, { file, line, severity: scope.strictness, rule: "reserved-id", message });
    return [];
  });
}

/** In content that others maintain, a file without an id is not an adapter and may have another purpose. */
async function readAdapters<Adapter>(
  scope: ContentScope,
  load: LayerOptions<Adapter>["loadAdapterSchema"],
): Promise<Definition<AdapterFile<Adapter>>[]> {
  const own: ContentScope = { ...scope, problems: [] };
  const definitions = await readDefinitions(own, "adapters", { load });
  const withoutId = new Set(own.problems.filter(({ message }) => message === missingId).map(({ file }) => file));
  for (const problem of own.problems) {
    const skipped = scope.strictness === "warning" && withoutId.has(problem.file);
    if (!skipped) scope.problems.push(problem);
    else if (problem.message === missingId) {
      scope.problems.push({ ...problem, severity: "warning", message: `${missingId}, so it is left out` });
    }
  }
  return definitions;
}

const missingId = '"id" is missing';

interface Definition<Value> {
  readonly id: string;
  readonly value: Value;
  readonly file: string;
  readonly line: number;
  readonly lineOf: YamlDocument<Value>["lineOf"];
}

/** Reads one definition per file. The id counts; the file should have the same name. */
async function readDefinitions<Value extends { readonly id: string }>(
  scope: ContentScope,
  folder: string,
  kind: FileKind<Value>,
): Promise<Definition<Value>[]> {
  const definitions: Definition<Value>[] = [];
  const directory = join(scope.directory, folder);
  const names = listContent(scope, directory).flatMap((entry) => (entry.isDirectory() ? [] : [entry.name]));
  for (const name of names.filter((each) => each.endsWith(".yml"))) {
    const message = `is not read: rename it to ${basename(name, ".yml")}.yaml`;
    report(scope, { file: join(directory, name), severity: "warning", rule: "unknown-file", message });
  }
  for (const name of names.filter((each) => each.endsWith(".yaml"))) {
    const file = join(directory, name);
    const document = await readContentYaml(scope, file, kind);
    if (document?.value === undefined) continue;
    const { value, lineOf } = document;
    const line = lineOf(["id"]);
    if (value.id !== basename(name, ".yaml")) {
      const message = `id "${value.id}" differs from the file's name: rename one of them`;
      report(scope, { file, line, severity: "warning", rule: "id-mismatch", message });
    }
    definitions.push({ id: value.id, value, file, line, lineOf });
  }
  return unique(scope, definitions);
}

/** Keeps the first entry of an id. Reports every other one. */
function unique<Entry extends { readonly id: string; readonly file: string; readonly line: number }>(
  scope: ContentScope,
  entries: readonly Entry[],
): Entry[] {
  const first = new Map<string, Entry>();
  for (const entry of entries) {
    const known = first.get(entry.id);
    if (known === undefined) first.set(entry.id, entry);
    else {
      const message = `id "${entry.id}" is already used by ${known.file}`;
      report(scope, { file: entry.file, line: entry.line, rule: "duplicate-id", message });
    }
  }
  return [...first.values()];
}

// Reads one folder of packs/: pack.yaml, texts and skills. Reports files that no reader will use.

/** A kind of YAML file: how it is checked. */
interface FileKind<Value> {
  /** The JSON Schema that accepts valid files. */
  readonly shape?: ShapeName | undefined;
  /** Loads the schema that reads every file and explains its mistakes. */
  readonly load: () => Promise<z.ZodType<Value>>;
}

function createKind<Value>(
  shape: ShapeName,
  choose: (schemas: Awaited<ReturnType<typeof loadPackSchemas>>) => z.ZodType<Value>,
): FileKind<Value> {
  return { shape, load: async () => choose(await loadPackSchemas()) };
}

/** Reports all problems of all files of the pack, even if the first one already makes the pack unusable. */
async function readPackFolder(
  scope: ContentScope,
  folder: string,
): Promise<{ readonly source: PackSource; readonly file: string; readonly line: number } | undefined> {
  const directory = join(scope.directory, "packs", folder);
  const names = listContent(scope, directory).map(({ name }) => name);
  const file = join(directory, "pack.yaml");
  const textNames = names.filter((name) => packTextName.test(name));
  if (!names.includes("pack.yaml")) {
    // A folder with a pack's text and no pack.yaml is a mistake. Any other folder may have another purpose.
    const misspelt = names.find((name) => closest(name, ["pack.yaml"]) !== undefined);
    const severity = misspelt !== undefined || textNames.length > 0 ? "error" : "warning";
    const advice =
      misspelt === undefined ? "Create the file with at least an `id:` line." : `Rename ${misspelt} to pack.yaml.`;
    const message = `is missing, so the folder is not a pack. ${advice}`;
    return report(scope, { file, severity, rule: "missing-pack-file", message });
  }
  const document = await readContentYaml(
    scope,
    file,
    createKind("pack", (schemas) => schemas.packFileSchema),
  );
  const yaml = async <Value>(name: string, kind: FileKind<Value>) =>
    names.includes(name) ? (await readContentYaml(scope, join(directory, name), kind))?.value : undefined;
  const rest = {
    texts: Object.fromEntries(
      textNames.flatMap((name) => {
        const text = readContentText(scope, join(directory, name));
        return text === undefined ? [] : [[name, text]];
      }),
    ),
    samples: await yaml(
      "samples.yaml",
      createKind("samples", (schemas) => schemas.samplesFileSchema),
    ),
    knownErrors: await yaml(
      "known_errors.yaml",
      createKind("known-errors", (schemas) => schemas.knownErrorsFileSchema),
    ),
    learning: await yaml(
      "learning.yaml",
      createKind("learning", (schemas) => schemas.learningFileSchema),
    ),
    skills: names.includes("skills") ? await readSkills(scope, join(directory, "skills")) : [],
    prompts: [
      ...(names.includes("commands") ? await readPrompts(scope, join(directory, "commands"), "command") : []),
      ...(names.includes("agents") ? await readPrompts(scope, join(directory, "agents"), "agent") : []),
    ],
    directory,
  };
  await checkOtherFiles(scope, directory, names);
  const pack = document?.value;
  if (document === undefined || pack === undefined) return undefined;
  reportOddities(pack, folder, (key, rule, message) =>
    report(scope, { file, line: document.lineOf([key]), severity: "warning", rule, message }),
  );
  return { source: createPackSource({ pack, ...rest }), file, line: document.lineOf(["id"]) };
}

/** Optional files of the format that no command uses. */
const otherFiles = `resources tools mcp hook skills tutorials discovery paths youtube event-types event-instances
  influencers`
  .split(/\s+/)
  .map((name) => `${name}.yaml`);

/** Unused files never stop a run. A broken file or a misspelled name gets a warning. */
async function checkOtherFiles(scope: ContentScope, directory: string, names: readonly string[]): Promise<void> {
  const isTextName = (name: string) => packTextName.test(name) || /^tips(\.[\w-]+)?\.md$/i.test(name);
  for (const name of names) {
    const file = join(directory, name);
    const warn = (rule: string, message: string, line = 1) =>
      report(scope, { file, line, severity: "warning", rule, message });
    if (otherFiles.includes(name)) {
      const { readYaml } = await loadYaml();
      const text = readContentText({ ...scope, problems: [] }, file);
      for (const { line, rule, message } of readYaml(text ?? "").problems) warn(rule, message, line);
    } else if (/\.(md|ya?ml)$/.test(name) && !packFileNames.includes(name) && !isTextName(name)) {
      const meant = didYouMean(name, [...packFileNames, "context.md", "constraints.md", "preamble.md"]);
      if (meant !== undefined) warn("unknown-file", `is not read. ${meant}`);
    }
  }
}

function reportOddities(
  pack: PackFile,
  folder: string,
  warn: (key: keyof PackFile, rule: string, message: string) => void,
): void {
  if (pack.id !== folder) {
    warn("id", "id-mismatch", `id "${pack.id}" differs from the folder "${folder}": rename one of them`);
  }
  if (pack.additive_position !== undefined && pack.additive !== true) {
    warn("additive_position", "unused-key", "additive_position has no effect without `additive: true`");
  }
  const { globs = [], nested = false } = pack;
  // Some tools split a text at its commas. A pack has a list instead, so there a comma is part of a file's name.
  for (const glob of globs.filter((each) => each.replace(/\{[^{}]*\}/g, "").includes(","))) {
    const parts = glob.split(",").map((part) => JSON.stringify(part.trim()));
    warn("globs", "glob-comma", `the glob "${glob}" has a comma. Write ${parts.length} globs: [${parts.join(", ")}].`);
  }
  // The globs of an additive pack may be in the layer below.
  const isMeant = globs.length > 0 || pack.additive !== true;
  if (nested && isMeant && nestedFolders({ globs, nested }).length === 0) {
    warn("nested", "unused-key", "nested has no effect, because each glob must name a folder, such as services/api/**");
  }
}

/** Checks a YAML file against its schema. Reports a file that cannot be used and returns `undefined` or no value. */
async function readContentYaml<Value>(
  scope: ContentScope,
  file: string,
  { shape, load }: FileKind<Value>,
): Promise<YamlDocument<Value> | undefined> {
  const text = readContentText(scope, file);
  if (text === undefined) return undefined;
  const quick = shape === undefined ? undefined : await readKnownShape<Value>(text, shape);
  if (quick !== undefined) return { ...quick, problems: [] };
  const { parseYamlDocument } = await loadYaml();
  const document = parseYamlDocument(text, await load());
  for (const { line, rule, message } of document.problems) {
    const severity = rule === "unknown-key" ? scope.strictness : "error";
    report(scope, { file, line, rule, message, severity });
  }
  return document;
}
