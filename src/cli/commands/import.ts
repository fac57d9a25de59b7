import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { ContextError } from "../../core/errors.ts";
import { countNoun, printable, shorten, toByteString } from "../../core/text/index.ts";
import {
  attemptChange,
  describeError,
  homeDirectory,
  loadConfig,
  projectRoot,
  readForeignText,
  readProjectTree,
  renderTable,
  shownPath,
} from "../../host/index.ts";
import { embeddedAdapters, loadInstructions, readEmbeddedContent } from "../../rules/index.ts";
import { type EarlierPack, type ImportedPack, loadImport } from "../../rules/packs/index.ts";
import { type Call, type Command, defineCommand } from "../command.ts";

export const importCommand: Command = defineCommand({
  arguments: [
    { name: "FILE", optional: true, repeated: true, summary: "files to import (default: those found in the project)" },
  ],
  options: {
    "dry-run": { summary: "show what would be written, and write nothing" },
    force: { summary: "replace packs that exist" },
  },
  details: `Reads the files that AI tools read (AGENTS.md, CLAUDE.md, .cursorrules, .cursor/rules/*.mdc,
.github/copilot-instructions.md, GEMINI.md and others) and writes a pack for each of them to .plimsoll/packs.
Headings stay headings, one level lower if the file has a title. A section that several files have under the same
headings is kept once, in the first of them. Globs in the front matter of a rule (globs, applyTo, paths) become globs
of its pack. Plimsoll's own blocks are left out.
The files themselves are never changed. Packs that exist are not replaced without --force. If the project has no
configuration, import writes .plimsoll/config.yaml with the AI tools of the files, so that you may delete the files.`,
  examples: [
    { line: "plimsoll import --dry-run", meaning: "see what would become of the files here" },
    { line: "plimsoll import", meaning: "write the packs" },
    { line: "plimsoll import CLAUDE.md services/api/AGENTS.md", meaning: "only these files" },
    { line: "plimsoll import --json | jq '.duplicates'", meaning: "the texts that were in several files" },
  ],
  async run(call) {
    const { cwd, env, output } = call;
    const root = projectRoot(cwd, homeDirectory(env));
    const { files, leftOut, unreadable } = await findFiles(call, root);
    for (const { path, reason } of leftOut) output.note(`${printable(path)} ${reason}`);
    for (const { path, reason } of unreadable) output.problem(`${printable(path)} ${reason}. It was not imported.`);
    const isPartial = unreadable.length > 0;
    if (files.length === 0) {
      const text = 'Found no instruction files of AI tools here. Name them: "plimsoll import FILE".';
      return { json: { packs: [], duplicates: [], unreadable }, text: isPartial ? "" : text, failed: isPartial };
    }
    const { values: config } = await loadConfig({ cwd, env, projectOnly: true });
    const takenIds = readEmbeddedContent().sources.map(({ id }) => id);
    const earlier = await readEarlierPacks(root);
    const packs = (await loadImport()).importTexts(files, { takenIds, earlier });
    const results: Result[] = [];
    for (const pack of packs) results.push(await writePack(pack, { root, call }));
    const tools = await keepTools(results, { root, call, configured: config.tools });
    for (const { pack, problem } of results) {
      for (const note of pack.notes) output.note(`${printable(pack.from)}: ${printable(note)}`);
      if (problem !== undefined) output.problem(problem);
    }
    if (tools.problem !== undefined) output.problem(tools.problem);
    const failed = results.some(({ problem }) => problem !== undefined) || tools.problem !== undefined;
    const text = renderResults(results, { call, tools, failed });
    return { json: { ...toJson(results, { call, tools }), unreadable }, text, failed: failed || isPartial };
  },
});

type ImportCall = Call<{ readonly "dry-run"?: boolean | undefined; readonly force?: boolean | undefined }>;

async function findFiles({ arguments: named, cwd, env }: ImportCall, root: string) {
  const { findInstructions, readInstructions } = await loadInstructions();
  const adapters = embeddedAdapters();
  if (named.length > 0) return readInstructions(named, { adapters, root, cwd });
  return findInstructions({ adapters, tree: await readProjectTree(root, env) });
}

/** Reads the packs that an earlier import wrote, as far as they are still loaded as they were. */
async function readEarlierPacks(root: string): Promise<EarlierPack[]> {
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

interface Result {
  readonly pack: ImportedPack;
  /** `nothing new`: other files say all of it. */
  readonly state: "created" | "replaced" | "unchanged" | "kept" | "nothing new" | "failed";
  readonly directory: string;
  readonly problem?: string;
}

/** Writes pack.yaml last, because it makes the folder a pack. */
async function writePack(
  pack: ImportedPack,
  { root, call }: { readonly root: string; readonly call: ImportCall },
): Promise<Result> {
  const directory = join(root, ".plimsoll/packs", pack.id);
  const shown = shownPath(directory, call.cwd, call.env);
  if (pack.text === "") return { pack, directory, state: "nothing new" };
  const files = [
    { path: join(directory, "context.md"), text: pack.text },
    { path: join(directory, "pack.yaml"), text: packFile(pack) },
  ];
  // Look at both files before the first one is written.
  const looks = [];
  for (const file of files) looks.push(await putFile(file, { root, call, dryRun: true }));
  const written = looks.some(({ problem }) => problem !== undefined) || call.options["dry-run"] === true ? [] : files;
  for (const file of written) looks.push(await putFile(file, { root, call, dryRun: false }));
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
  { root, call, dryRun }: { readonly root: string; readonly call: ImportCall; readonly dryRun: boolean },
) {
  const after = toByteString(text);
  return attemptChange(path, {
    ...{ root, env: call.env, dryRun },
    plan: (current) =>
      current === undefined || current === after || call.options.force === true
        ? { after, facts: undefined }
        : { problem: new ContextError("refused_target", otherText), facts: undefined },
  });
}

/** What keeps inject writing for the same tools once the imported files are gone. */
interface KeptTools {
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
async function keepTools(
  results: readonly Result[],
  options: { readonly root: string; readonly call: ImportCall; readonly configured: readonly string[] | undefined },
): Promise<KeptTools> {
  const { root, call, configured } = options;
  const done = results.filter(({ state }) => state !== "failed" && state !== "kept");
  const { toolsOfFiles } = await loadInstructions();
  const { owners, ids } = await toolsOfFiles(
    done.map(({ pack }) => pack.from),
    { adapters: embeddedAdapters(), root, env: call.env },
  );
  const file = join(root, ".plimsoll/config.yaml");
  const path = shownPath(file, call.cwd, call.env);
  if (configured !== undefined) {
    const missing = owners.filter(({ id, reads }) => ![id, ...reads].some((each) => configured.includes(each)));
    const tools = missing.map(({ id }) => id);
    const advice = `add ${tools.join(", ")} to tools in ${printable(path)}: inject does not write for other tools`;
    return tools.length === 0 ? {} : { config: { path, state: "incomplete", tools }, advice };
  }
  if (owners.length === 0) return {};
  const { change, problem } = await attemptChange(file, {
    ...{ root, env: call.env, dryRun: call.options["dry-run"] === true },
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
function packFile({ id, name, description, globs, nested, from }: ImportedPack): string {
  const text = (value: string) => JSON.stringify(shorten(printable(value), 200));
  const source = `${importedFrom}${shorten(printable(from), 200)}`;
  const lines = [source, `id: ${id}`, `name: ${text(name)}`, `description: ${text(description)}`, "weight: 80"];
  if (globs.length > 0) lines.push(`globs: [${globs.map((glob) => JSON.stringify(glob)).join(", ")}]`);
  if (nested) lines.push("nested: true");
  return `${lines.join("\n")}\n`;
}

function toJson(
  results: readonly Result[],
  { call, tools }: { readonly call: ImportCall; readonly tools: KeptTools },
): object {
  const { cwd, env } = call;
  return {
    packs: results.map(({ pack: { id, from, globs, nested, text, notes }, state, directory }) => ({
      ...{ id, from, state, path: shownPath(directory, cwd, env), lines: linesOf(text), globs, nested, notes },
    })),
    duplicates: duplicatesOf(results).map(({ file, line, sameAs }) => ({
      ...{ file, line, same_as: { file: sameAs.path, line: sameAs.line } },
    })),
    ...(tools.config === undefined ? {} : { config: tools.config }),
  };
}

function duplicatesOf(results: readonly Result[]) {
  return results.flatMap(({ pack }) => pack.duplicates.map((each) => ({ file: pack.from, ...each })));
}

function linesOf(text: string): number {
  return text.split("\n").length - 1;
}

function renderResults(
  results: readonly Result[],
  options: { readonly call: ImportCall; readonly tools: KeptTools; readonly failed: boolean },
): string {
  const { call, tools, failed } = options;
  const rows = results.map(({ pack, state }) => {
    const scope = pack.globs.length === 0 ? "" : ` (${pack.globs.join(", ")})`;
    return [state, state === "nothing new" ? "" : pack.id, String(linesOf(pack.text)), `${pack.from}${scope}`];
  });
  const table = [["state", "pack", "lines", "from"], ...rows];
  const [head = "", ...lines] = renderTable(table, ["left", "left", "right", "left"]);
  const { config } = tools;
  const isMade = config?.state === "created";
  const made = isMade ? ["", `created ${printable(config.path)} with ${toolsLine(config.tools)}`] : [];
  const steps = failed ? [] : nextSteps(results, tools);
  const rest = call.options["dry-run"] ? ["", "Nothing was written, because this was a dry run."] : steps;
  return [call.output.style.dim(head), ...lines, ...made, ...shownDuplicates(results), ...rest].join("\n");
}

const mostShown = 10;

function shownDuplicates(results: readonly Result[]): string[] {
  const all = duplicatesOf(results);
  if (all.length === 0) return [];
  const lineOf = ({ file, line, sameAs }: (typeof all)[number]) =>
    `  ${printable(file)}:${line} is also in ${printable(sameAs.path)}:${sameAs.line}`;
  const shown = all.slice(0, mostShown).map(lineOf);
  const more = all.length > mostShown ? [`  and ${all.length - mostShown} more; --json lists all`] : [];
  return ["", `${countNoun(all.length, "text")} in several files, kept once:`, ...shown, ...more];
}

/** Returns only what is left to do. */
function nextSteps(results: readonly Result[], { advice }: KeptTools): string[] {
  const isNew = results.some(({ state }) => state === "created" || state === "replaced");
  const files = results.filter(({ pack }) => !pack.isEmpty).map(({ pack }) => printable(pack.from));
  const rest = `(keep or delete the ${files.length === 1 ? "file" : "files"})`;
  const steps = [
    ...(isNew ? ["plimsoll packs lint                 check the packs, and edit them as you like"] : []),
    ...(files.length > 0 ? [`remove the old text from ${files.join(", ")} ${rest}`] : []),
    ...(advice === undefined ? [] : [advice]),
    ...(isNew ? ["plimsoll inject --dry-run --stats   see what each AI tool would get"] : []),
    ...(isNew || files.length > 0 ? ["plimsoll inject                     write it"] : []),
  ];
  if (steps.length === 0) return ["", "Nothing is left to do."];
  return ["", "Next:", ...steps.map((step, index) => `  ${index + 1}. ${step}`)];
}
