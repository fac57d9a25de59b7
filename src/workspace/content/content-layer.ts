/** One layer of content from its directory: packs/, profiles/ and adapters/. Loads yaml and zod. */
import { join } from "node:path";
import type { z } from "zod";
import {
  builtInProfiles,
  createProfile,
  loadPackSchemas,
  type PackSource,
  type Profile,
} from "../../packs/index.ts";
import {
  type ContentScope,
  listContent,
  readContentYaml,
  report,
  statContent,
  yamlFilesIn,
} from "./content-files.ts";
import { type FoundPack, type PackSchemas, readPackFolder } from "./content-pack.ts";

export interface ContentLayer<Adapter> {
  readonly sources: readonly PackSource[];
  readonly profiles: readonly Profile[];
  readonly adapters: readonly Adapter[];
}

export async function readContentLayer<Adapter extends { readonly id: string }>(
  scope: ContentScope,
  loadAdapterSchema: () => Promise<z.ZodType<Adapter>>,
): Promise<ContentLayer<Adapter>> {
  const schemas = await loadPackSchemas();
  return {
    sources: readPacks(scope, schemas),
    profiles: readProfiles(scope, schemas),
    adapters: readAdapters(scope, await loadAdapterSchema()),
  };
}

function readPacks(scope: ContentScope, schemas: PackSchemas): PackSource[] {
  const directory = join(scope.directory, "packs");
  const folders = listContent(scope, directory)
    .filter((entry) => entry.isDirectory() || (entry.isSymbolicLink() && leadsToDirectory(scope, entry.name)))
    .map(({ name }) => name);
  const found = folders.flatMap((folder) => readPackFolder(scope, folder, schemas) ?? []);
  return unique(
    scope,
    found.map((pack) => ({ ...pack, id: pack.source.id })),
  ).map(({ source }: FoundPack) => source);
}

function leadsToDirectory(scope: ContentScope, name: string): boolean {
  return statContent(scope, join(scope.directory, "packs", name))?.isDirectory() === true;
}

function readProfiles(scope: ContentScope, schemas: PackSchemas): Profile[] {
  const reserved = builtInProfiles.map(({ id }) => id);
  return readDefinitions(scope, "profiles", schemas.profileFileSchema).flatMap(({ value, file, line }) => {
    if (!reserved.includes(value.id)) return [createProfile(value)];
    const message = `profile "${value.id}" is built in and cannot be replaced: choose another id`;
    report(scope, { file, line, severity: scope.strictness, rule: "reserved-id", message });
    return [];
  });
}

/** Where others maintain the content, a file without an id is no adapter and may be there for its own reasons. */
function readAdapters<Adapter extends { readonly id: string }>(
  scope: ContentScope,
  schema: z.ZodType<Adapter>,
): Adapter[] {
  const own: ContentScope = { ...scope, problems: [] };
  const definitions = readDefinitions(own, "adapters", schema);
  const withoutId = new Set(
    own.problems.filter(({ message }) => message === missingId).map(({ file }) => file),
  );
  for (const problem of own.problems) {
    const skipped = scope.strictness === "warning" && withoutId.has(problem.file);
    if (!skipped) scope.problems.push(problem);
    else if (problem.message === missingId) {
      scope.problems.push({ ...problem, severity: "warning", message: `${missingId}, so it is left out` });
    }
  }
  return definitions.map(({ value }) => value);
}

const missingId = '"id" is missing';

interface Definition<Value> {
  readonly id: string;
  readonly value: Value;
  readonly file: string;
  readonly line: number;
}

/** One definition a file; the id counts, the name of the file should be the same. */
function readDefinitions<Value extends { readonly id: string }>(
  scope: ContentScope,
  folder: string,
  schema: z.ZodType<Value>,
): Definition<Value>[] {
  const definitions = yamlFilesIn(scope, folder).flatMap(({ name, path: file }) => {
    const document = readContentYaml(scope, file, schema);
    if (document?.value === undefined) return [];
    const { value } = document;
    const line = document.lineOf(["id"]);
    if (value.id !== name) {
      const message = `id "${value.id}" differs from the file's name: rename one of them`;
      report(scope, { file, line, severity: "warning", rule: "id-mismatch", message });
    }
    return [{ id: value.id, value, file, line }];
  });
  return unique(scope, definitions);
}

/** The first of an id stays; every further one is a problem of its own. */
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
