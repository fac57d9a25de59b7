/** The folder of one pack. */
import { join } from "node:path";
import type { z } from "zod";
import { createPackSource, type loadPackSchemas, type PackSource, packTextName } from "../../packs/index.ts";
import { didYouMean } from "../../text/index.ts";
import { checkYaml } from "../yaml/yaml-document.ts";
import { type ContentScope, listContent, readContentText, readContentYaml, report } from "./content-files.ts";

export type PackSchemas = Awaited<ReturnType<typeof loadPackSchemas>>;

export interface FoundPack {
  readonly source: PackSource;
  /** Where its id stands. */
  readonly file: string;
  readonly line: number;
}

/** All problems of all its files are reported, also when the first one already keeps it from being used. */
export function readPackFolder(
  scope: ContentScope,
  folder: string,
  schemas: PackSchemas,
): FoundPack | undefined {
  const directory = join(scope.directory, "packs", folder);
  const names = listContent(scope, directory).map(({ name }) => name);
  const file = join(directory, "pack.yaml");
  if (!names.includes("pack.yaml")) return reportNoPack(scope, file, names);
  const document = readContentYaml(scope, file, schemas.packFileSchema);
  const yaml = <Value>(name: string, schema: z.ZodType<Value>) =>
    names.includes(name) ? readContentYaml(scope, join(directory, name), schema)?.value : undefined;
  const rest = {
    texts: readTexts(scope, directory, names),
    samples: yaml("samples.yaml", schemas.samplesFileSchema),
    knownErrors: yaml("known_errors.yaml", schemas.knownErrorsFileSchema),
    learning: yaml("learning.yaml", schemas.learningFileSchema),
    directory,
  };
  checkOtherFiles(scope, directory, names);
  const pack = document?.value;
  if (document === undefined || pack === undefined) return undefined;
  const line = document.lineOf(["id"]);
  reportOddities(
    scope,
    { file, line },
    { pack, folder, positionLine: document.lineOf(["additive_position"]) },
  );
  return { source: createPackSource({ pack, ...rest }), file, line };
}

/** A folder with a pack's text and no pack.yaml is a mistake; any other folder may be there for its own reasons. */
function reportNoPack(scope: ContentScope, file: string, names: readonly string[]): undefined {
  const severity = names.some((name) => packTextName.test(name)) ? "error" : "warning";
  const message = "is missing, so the folder is no pack. At least it must say `id:`.";
  return report(scope, { file, severity, rule: "missing-pack-file", message });
}

function readTexts(scope: ContentScope, directory: string, names: readonly string[]): Record<string, string> {
  const texts = names
    .filter((name) => packTextName.test(name))
    .map((name) => [name, readContentText(scope, join(directory, name))] as const);
  return Object.fromEntries(texts.filter((entry): entry is [string, string] => entry[1] !== undefined));
}

const ownFiles = ["pack.yaml", "samples.yaml", "known_errors.yaml", "learning.yaml"];
const ownTexts = ["context.md", "constraints.md", "preamble.md"];
const readTextName = new RegExp(`${packTextName.source}|^tips(\\.[\\w-]+)?\\.md$`, "i");
/** Optional files of the format that no command of ours acts on. */
const otherFiles = [
  ...["resources", "tools", "mcp", "hook", "skills", "tutorials", "discovery", "paths", "youtube"],
  ...["event-types", "event-instances", "influencers"],
].map((name) => `${name}.yaml`);

/** What we do not act on keeps nothing from being written; a broken file or a name with a slip is worth a word. */
function checkOtherFiles(scope: ContentScope, directory: string, names: readonly string[]): void {
  for (const name of names) {
    const file = join(directory, name);
    const warn = (rule: string, message: string, line = 1) =>
      report(scope, { file, line, severity: "warning", rule, message });
    if (otherFiles.includes(name)) {
      const text = readContentText({ ...scope, problems: [] }, file);
      for (const { line, rule, message } of checkYaml(text ?? "")) warn(rule, message, line);
    } else if (/\.(md|ya?ml)$/.test(name) && !ownFiles.includes(name) && !readTextName.test(name)) {
      const meant = didYouMean(name, [...ownFiles, ...ownTexts, ...otherFiles]);
      if (meant !== undefined) warn("unknown-file", `is not read. ${meant}`);
    }
  }
}

interface Oddities {
  readonly pack: {
    readonly id: string;
    readonly additive?: boolean | undefined;
    readonly additive_position?: string | undefined;
  };
  readonly folder: string;
  readonly positionLine: number;
}

function reportOddities(
  scope: ContentScope,
  place: { readonly file: string; readonly line: number },
  { pack, folder, positionLine }: Oddities,
): void {
  if (pack.id !== folder) {
    const message = `id "${pack.id}" differs from the folder "${folder}": rename one of them`;
    report(scope, { ...place, severity: "warning", rule: "id-mismatch", message });
  }
  if (pack.additive_position !== undefined && pack.additive !== true) {
    const message = "additive_position has no effect without `additive: true`";
    report(scope, { file: place.file, line: positionLine, severity: "warning", rule: "unused-key", message });
  }
}
