import { countNoun, printable } from "../../core/text/index.ts";
import { homeDirectory, loadConfig, projectRoot, renderTable, shownPath } from "../../host/index.ts";
import {
  embeddedAdapters,
  type ImportResult,
  type KeptTools,
  loadInstructions,
  readEmbeddedContent,
  readProjectTree,
} from "../../rules/index.ts";
import { loadImport } from "../../rules/packs/index.ts";
import { type Call, type Command, type CommandResult, defineCommand } from "../command.ts";
import { runMove } from "../run-move.ts";

export const importCommand: Command = defineCommand({
  arguments: [
    { name: "FILE", optional: true, repeated: true, summary: "files to import (default: those found in the project)" },
  ],
  options: {
    move: { summary: "also take the text out of the files, and inject the packs; undo takes it back" },
    "dry-run": { summary: "show what would be written, and write nothing" },
    force: { summary: "replace packs that exist; with --move, move even if a tool then loads more" },
  },
  details: `Reads the files that AI tools read (AGENTS.md, CLAUDE.md, .cursorrules, .cursor/rules/*.mdc,
.github/copilot-instructions.md, GEMINI.md and others) and writes a pack for each of them to .plimsoll/packs.
Headings stay headings, one level lower if the file has a title. A section that several files have under the same
headings is kept once, in the first of them. Globs in the front matter of a rule (globs, applyTo, paths) become globs
of its pack. Plimsoll's own blocks are left out.
Without --move, the files themselves are never changed. Packs that exist are not replaced without --force. If the
project has no configuration, import writes .plimsoll/config.yaml with the AI tools of the files, so that you may
delete the files.
With --move, the text leaves the files, and inject writes it back from the packs, so that nothing is there twice.
A text that only some tools load stays with them: its pack has tools or not_tools. Files stay as they are if they
import another one, are about a folder and repeat nothing, or would be loaded more often as packs. The configuration
gets the tools, and a budget if it has none. If a tool would load more than before, apart from the markers around the
text, nothing is changed. "plimsoll undo" gives every file its earlier bytes. After a kill, run import --move again, or
undo.`,
  examples: [
    { line: "plimsoll import --dry-run", meaning: "see what would become of the files here" },
    { line: "plimsoll import", meaning: "write the packs" },
    { line: "plimsoll import --move", meaning: "packs instead of the files, with the tokens before and after" },
    { line: "plimsoll import CLAUDE.md services/api/AGENTS.md", meaning: "only these files" },
    { line: "plimsoll import --json | jq '.duplicates'", meaning: "the texts that were in several files" },
  ],
  run: (call) => (call.options.move === true ? runMove(call) : writePacks(call)),
});

type ImportCall = Call<{ readonly "dry-run"?: boolean | undefined; readonly force?: boolean | undefined }>;

/** Writes packs and leaves the files as they are. */
async function writePacks(call: ImportCall): Promise<CommandResult> {
  const { cwd, env, output } = call;
  const root = projectRoot(cwd, homeDirectory(env));
  const { findInstructions, readInstructions } = await loadInstructions();
  const adapters = embeddedAdapters();
  const { files, leftOut, unreadable } =
    call.arguments.length > 0
      ? await readInstructions(call.arguments, { adapters, root, cwd })
      : await findInstructions({ adapters, tree: await readProjectTree(root, env) });
  for (const { path, reason } of leftOut) output.note(`${printable(path)} ${reason}`);
  for (const { path, reason } of unreadable) output.problem(`${printable(path)} ${reason}. It was not imported.`);
  const isPartial = unreadable.length > 0;
  if (files.length === 0) {
    const text = 'Found no instruction files of AI tools here. Name them: "plimsoll import FILE".';
    return { json: { packs: [], duplicates: [], unreadable }, text: isPartial ? "" : text, failed: isPartial };
  }
  const { values: config } = await loadConfig({ cwd, env, projectOnly: true });
  const takenIds = readEmbeddedContent().sources.map(({ id }) => id);
  const { keepTools, readEarlierPacks, writePack } = await import("../../rules/content/write-imported.ts");
  const earlier = await readEarlierPacks(root);
  const packs = (await loadImport()).importTexts(files, { takenIds, earlier });
  const writing = { root, cwd, env, dryRun: call.options["dry-run"] === true, force: call.options.force === true };
  const results: ImportResult[] = [];
  for (const pack of packs) results.push(await writePack(pack, writing));
  const tools = await keepTools(results, { ...writing, configured: config.tools });
  for (const { pack, problem } of results) {
    for (const note of pack.notes) output.note(`${printable(pack.from)}: ${printable(note)}`);
    if (problem !== undefined) output.problem(problem);
  }
  if (tools.problem !== undefined) output.problem(tools.problem);
  const failed = [...results, tools].some(({ problem }) => problem !== undefined);
  const duplicates = results.flatMap(({ pack }) => pack.duplicates.map((each) => ({ file: pack.from, ...each })));
  const json = {
    packs: results.map(({ pack: { id, from, globs, nested, text, notes }, state, directory }) => ({
      id,
      from,
      state,
      path: shownPath(directory, cwd, env),
      lines: countLines(text),
      globs,
      nested,
      notes,
    })),
    duplicates: duplicates.map(({ file, line, sameAs }) => ({
      file,
      line,
      same_as: { file: sameAs.path, line: sameAs.line },
    })),
    ...(tools.config === undefined ? {} : { config: tools.config }),
    unreadable,
  };
  const text = renderResults(results, duplicates, { call, tools, failed });
  return { json, text, failed: failed || isPartial };
}

function countLines(text: string): number {
  return text.split("\n").length - 1;
}

/** How many duplicates are listed; the JSON has all. */
const maxDuplicates = 10;

function renderResults(
  results: readonly ImportResult[],
  duplicates: readonly (ImportResult["pack"]["duplicates"][number] & { readonly file: string })[],
  { call, tools, failed }: { readonly call: ImportCall; readonly tools: KeptTools; readonly failed: boolean },
): string {
  const rows = results.map(({ pack, state }) => {
    const scope = pack.globs.length === 0 ? "" : ` (${pack.globs.join(", ")})`;
    return [state, state === "nothing new" ? "" : pack.id, String(countLines(pack.text)), `${pack.from}${scope}`];
  });
  const table = [["state", "pack", "lines", "from"], ...rows];
  const lines = renderTable(table, ["left", "left", "right", "left"], call.output.style);
  if (tools.config?.state === "created") {
    lines.push("", `created ${printable(tools.config.path)} with tools: [${tools.config.tools.join(", ")}]`);
  }
  if (duplicates.length > 0) lines.push("", `${countNoun(duplicates.length, "text")} in several files, kept once:`);
  for (const { file, line, sameAs } of duplicates.slice(0, maxDuplicates)) {
    lines.push(`  ${printable(file)}:${line} is also in ${printable(sameAs.path)}:${sameAs.line}`);
  }
  const more = duplicates.length - maxDuplicates;
  if (more > 0) lines.push(`  and ${more} more; --json lists all`);
  if (call.options["dry-run"]) lines.push("", "Nothing was written, because this was a dry run.");
  else if (!failed) lines.push("", ...renderNextSteps(results, tools));
  return lines.join("\n");
}

/** Returns only what is left to do. */
function renderNextSteps(results: readonly ImportResult[], { advice }: KeptTools): string[] {
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
  if (steps.length === 0) return ["Nothing is left to do."];
  return ["Next:", ...steps.map((step, index) => `  ${index + 1}. ${step}`)];
}
