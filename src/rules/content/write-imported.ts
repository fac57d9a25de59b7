/** Writes the packs that `import` makes of instruction files, and the tools that they were for. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { ContextError } from "../../core/errors.ts";
import { printable, shorten, toByteString } from "../../core/text/index.ts";
import {
  type AttemptedChange,
  attemptChange,
  describeError,
  type Environment,
  readForeignText,
  shownPath,
} from "../../host/index.ts";
import { embeddedAdapters } from "../adapters/load-packs.ts";
import { toolsOfFiles } from "../audit/find-instructions.ts";
import type { EarlierPack, ImportedPack } from "../packs/index.ts";

/** Where to write, and what may be replaced. */
interface WriteOptions {
  readonly root: string;
  readonly cwd: string;
  readonly env: Environment;
  readonly dryRun: boolean;
  /** Replace packs that exist. */
  readonly force: boolean;
}

/** Reads the packs that an earlier import wrote, as far as they are still loaded as they were. */
export async function readEarlierPacks(root: string): Promise<EarlierPack[]> {
  const packs: EarlierPack[] = [];
  const folder = ".plimsoll/packs";
  for (const id of (await readdir(join(root, folder)).catch(() => [])).sort()) {
    const path = `${folder}/${id}/context.md`;
    const about = readForeignText(join(root, folder, id, "pack.yaml"), { within: root });
    const context = readForeignText(join(root, path), { within: root });
    const globs = "text" in about ? globsOfImported(about.text) : undefined;
    if (globs === undefined || !("text" in context) || /<!--\s*(?:verbosity|sync:)/.test(context.text)) continue;
    packs.push({ id, path, text: context.text.replace(/\r\n?/g, "\n"), globs });
  }
  return packs;
}

/** Returns the globs of a pack.yaml that has nothing but the lines that import writes. */
function globsOfImported(text: string): string[] | undefined {
  const lines = text.trimEnd().split(/\r?\n/);
  const isOurs = text.startsWith(importedFrom) && lines.slice(1).every((line) => ownLine.test(line));
  const list = lines.find((line) => line.startsWith("globs: "))?.slice("globs: ".length) ?? "[]";
  if (!isOurs || !/^\[(?:"[^"\\\p{C}]*"(?:, "[^"\\\p{C}]*")*)?\]$/u.test(list)) return undefined;
  return JSON.parse(list);
}

const importedFrom = "# Imported from ";
const ownLine = /^(?:id|name|description|weight|globs|nested): ./;

/** What happened to one file. */
export interface ImportResult {
  readonly pack: ImportedPack;
  /** `nothing new`: other files say all of it. */
  readonly state: "created" | "replaced" | "unchanged" | "kept" | "nothing new" | "failed";
  readonly directory: string;
  readonly problem?: string;
}

/** Writes pack.yaml last, because it makes the folder a pack. */
export async function writePack(pack: ImportedPack, options: WriteOptions): Promise<ImportResult> {
  const { root, cwd, env } = options;
  const directory = join(root, ".plimsoll/packs", pack.id);
  const shown = shownPath(directory, cwd, env);
  if (pack.text === "") return { pack, directory, state: "nothing new" };
  const files = [
    { path: join(directory, "context.md"), text: pack.text },
    { path: join(directory, "pack.yaml"), text: packFile(pack) },
  ];
  // Look at both files before the first one is written.
  const looks = [];
  for (const file of files) looks.push(await putFile(file, { ...options, dryRun: true }));
  const written = looks.some(({ problem }) => problem !== undefined) || options.dryRun ? [] : files;
  for (const file of written) looks.push(await putFile(file, options));
  const problem = looks.find((look) => look.problem !== undefined)?.problem;
  if (problem?.code === "refused_target" && problem.message === otherText) {
    const told = `${printable(shown)} exists and has another text, so it is kept. Use --force to replace it.`;
    return { pack, directory, state: "kept", problem: told };
  }
  if (problem !== undefined) return { pack, directory, state: "failed", problem: describeError(problem, () => shown) };
  const isNew = looks.slice(0, files.length).every(({ change }) => change?.before === undefined);
  const isSame = looks.slice(0, files.length).every(({ change }) => change?.before === change?.after);
  return { pack, directory, state: isSame ? "unchanged" : isNew ? "created" : "replaced" };
}

const otherText = "has another text";

function putFile(
  { path, text }: { readonly path: string; readonly text: string },
  { root, env, dryRun, force }: WriteOptions,
): Promise<AttemptedChange<undefined>> {
  const after = toByteString(text);
  return attemptChange(path, {
    root,
    env,
    dryRun,
    plan: (current) =>
      current === undefined || current === after || force
        ? { after, facts: undefined }
        : { problem: new ContextError("refused_target", otherText), facts: undefined },
  });
}

/** What keeps inject writing for the same tools once the imported files are gone. */
export interface KeptTools {
  /** Absent if the configuration needs nothing. */
  readonly config?: {
    readonly path: string;
    /** `incomplete`: a person should add the tools. */
    readonly state: "created" | "incomplete";
    readonly tools: readonly string[];
  };
  /** What a person should do. */
  readonly advice?: string;
  readonly problem?: string;
}

/** Without `tools` in the configuration, inject finds a tool by its file. */
export async function keepTools(
  results: readonly ImportResult[],
  { root, cwd, env, dryRun, configured }: WriteOptions & { readonly configured: readonly string[] | undefined },
): Promise<KeptTools> {
  const done = results.filter(({ state }) => state !== "failed" && state !== "kept");
  const { owners, ids } = await toolsOfFiles(
    done.map(({ pack }) => pack.from),
    { adapters: embeddedAdapters(), root, env },
  );
  const file = join(root, ".plimsoll/config.yaml");
  const path = shownPath(file, cwd, env);
  if (configured !== undefined) {
    const missing = owners.filter(({ id, reads }) => ![id, ...reads].some((each) => configured.includes(each)));
    const tools = missing.map(({ id }) => id);
    const advice = `add ${tools.join(", ")} to tools in ${printable(path)}: inject does not write for other tools`;
    return tools.length === 0 ? {} : { config: { path, state: "incomplete", tools }, advice };
  }
  if (owners.length === 0) return {};
  const { change, problem } = await attemptChange(file, {
    root,
    env,
    dryRun,
    plan: (current) => ({ after: current ?? toByteString(`${aboutTools}\n${toolsLine(ids)}\n`), facts: undefined }),
  });
  if (problem !== undefined) return { problem: describeError(problem, () => path) };
  if (change.before === undefined) return { config: { path, state: "created", tools: ids } };
  const advice = `add this line to ${printable(path)}, because a tool is not found without its file: ${toolsLine(ids)}`;
  return { config: { path, state: "incomplete", tools: ids }, advice };
}

const aboutTools = "# Plimsoll writes for these tools, also if you delete the files that were imported.";

function toolsLine(ids: readonly string[]): string {
  return `tools: [${ids.join(", ")}]`;
}

/** JSON texts are YAML too. The first line tells a later import that the pack is not written by hand. */
function packFile({ id, name, description, globs, nested, tools, notTools, from }: ImportedPack): string {
  const text = (value: string) => JSON.stringify(shorten(printable(value), 200));
  const source = `${importedFrom}${shorten(printable(from), 200)}`;
  const lines = [source, `id: ${id}`, `name: ${text(name)}`, `description: ${text(description)}`, "weight: 80"];
  if (globs.length > 0) lines.push(`globs: [${globs.map((glob) => JSON.stringify(glob)).join(", ")}]`);
  if (nested) lines.push("nested: true");
  if (tools !== undefined) lines.push(`tools: [${tools.join(", ")}]`);
  if (notTools !== undefined) lines.push(`not_tools: [${notTools.join(", ")}]`);
  return `${lines.join("\n")}\n`;
}
