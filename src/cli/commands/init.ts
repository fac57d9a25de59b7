import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { ContextError, usageError } from "../../core/errors.ts";
import { printable, toByteString, unknownName } from "../../core/text/index.ts";
import { changeFile, describeError, homeDirectory, projectRoot, shownPath } from "../../host/index.ts";
import { embeddedAdapters, loadInstructions, readEmbeddedContent, readProjectTree } from "../../rules/index.ts";
import { type Call, type Command, defineCommand } from "../command.ts";
import { askText } from "../questions.ts";
import { runMove } from "../run-move.ts";

export const initCommand: Command = defineCommand({
  options: {
    packs: { value: "ID[,ID...]", list: true, summary: "built-in packs to use besides your own (default: none)" },
  },
  details: `Writes .plimsoll/config.yaml with the AI tools found here, or else with agents-md, and an empty pack for
your rules unless there are packs. Built-in packs are used only if you choose them: with --packs, or at a terminal,
where init asks. If the project has instruction files already, init offers to move their text into packs, as
"plimsoll import --move" does; otherwise it changes no file that exists. The files go to the root of the repository, or
else to the current directory. Editors with a YAML language server check the files against the schemas of the installed
package, or else against copies in .plimsoll/schemas.`,
  examples: [
    { line: "plimsoll init", meaning: "set up this project" },
    { line: "plimsoll init --packs base,typescript", meaning: "set up, with two of the built-in packs" },
    { line: "plimsoll init && plimsoll inject --dry-run", meaning: "set up, and see what inject would write" },
  ],
  async run(call) {
    const { cwd, env, output } = call;
    const root = projectRoot(cwd, homeDirectory(env));
    const folder = join(root, ".plimsoll/packs");
    const names = existsSync(folder) ? readdirSync(folder) : [];
    const hadPacks = names.some((name) => existsSync(join(folder, name, "pack.yaml")));
    const imported = hadPacks ? [] : await findRules(root, call);
    if (imported.length > 0 && (await wantsMove(imported, root, call))) return runMove({ ...call, options: {} });
    const packs = await choosePacks(root, call);
    const { planStarterFiles } = await import("../../rules/content/starter-files.ts");
    const files: InitFile[] = [];
    for (const [path, text] of await planStarterFiles(root, { hadPacks, packs, env })) {
      files.push(await createFile(join(root, path), text, { root, call }));
    }
    if (hadPacks) files.push({ path: shownPath(folder, cwd, env), state: "kept" });
    for (const { problem } of files) if (problem !== undefined) output.problem(problem);
    const failed = files.some(({ problem }) => problem !== undefined);
    const lines = files.map(
      ({ path, state }) => `${state} ${printable(path)}${state === "kept" ? " (it exists)" : ""}`,
    );
    const subject = shownPath(hadPacks ? folder : join(folder, "project/context.md"), cwd, env);
    if (!failed) lines.push("", ...nextSteps(subject, imported));
    return {
      json: { files: files.map(({ path, state }) => ({ path, state })) },
      text: lines.join("\n"),
      isReport: true,
      failed,
    };
  },
});

/** Returns the built-in packs that the person chooses. An existing configuration has decided already. */
async function choosePacks(root: string, call: Call<{ readonly packs?: readonly string[] | undefined }>) {
  const { cwd, env, options, output } = call;
  const config = join(root, ".plimsoll/config.yaml");
  const known = readEmbeddedContent().sources.map(({ id }) => id);
  const stdin = call.stdin as NodeJS.ReadStream;
  let chosen = options.packs ?? [];
  if (existsSync(config)) {
    if (options.packs === undefined) return [];
    const path = shownPath(config, cwd, env);
    throw usageError(`--packs has no effect, because ${path} exists`, "Add them to packs.built_in in that file.");
  }
  if (options.packs === undefined && stdin.isTTY === true && !output.json && !output.quiet) {
    const question = `Which built-in packs do you want? ${known.join(", ")}. Press Enter for none, or write names:`;
    chosen = (await askText(question, { stdin, output })).split(/[\s,]+/).filter((id) => id !== "");
  }
  for (const id of chosen) if (!known.includes(id)) throw unknownName(id, { kind: "pack", known });
  return [...new Set(chosen)];
}

/** Returns the files of AI tools in the root that hold rules already. */
async function findRules(root: string, { env }: Call): Promise<readonly string[]> {
  const { findInstructions } = await loadInstructions();
  const { files } = await findInstructions({ adapters: embeddedAdapters(), tree: await readProjectTree(root, env) });
  return files.filter(({ text }) => text.trim() !== "").map(({ path }) => path);
}

/** Asks at a terminal. An existing configuration, or a choice of packs, means a setup of another kind. */
async function wantsMove(
  imported: readonly string[],
  root: string,
  call: Call<{ readonly packs?: readonly string[] | undefined }>,
): Promise<boolean> {
  const { options, output } = call;
  const stdin = call.stdin as NodeJS.ReadStream;
  const isSetUp = options.packs !== undefined || existsSync(join(root, ".plimsoll/config.yaml"));
  if (stdin.isTTY !== true || output.json || output.quiet || isSetUp) return false;
  const question = `${describeRules(imported)} Move them into packs, and write the files from the packs? "plimsoll undo" takes it back. [y/N]`;
  return /^y(?:es)?$/i.test(await askText(question, { stdin, output }));
}

function describeRules(imported: readonly string[]): string {
  const named = imported.slice(0, 3).map(printable);
  const more = imported.length > named.length ? ` and ${imported.length - named.length} more` : "";
  return `${named.join(", ")}${more} ${imported.length === 1 ? "has" : "have"} rules already.`;
}

function nextSteps(subject: string, imported: readonly string[]): string[] {
  const advice = '"plimsoll import --move" moves them into packs, and "plimsoll undo" takes it back.';
  return [
    ...(imported.length === 0 ? [] : [`${describeRules(imported)} ${advice}`, ""]),
    "Next:",
    `  1. write your rules into ${printable(subject)}`,
    "  2. plimsoll packs lint                 check them",
    "  3. plimsoll inject --dry-run --stats   see what each AI tool would get",
    "  4. plimsoll inject                     write it",
  ];
}

interface InitFile {
  readonly path: string;
  readonly state: "created" | "kept" | "failed";
  readonly problem?: string;
}

/** Creates a file. A failure does not stop the other files. */
async function createFile(
  path: string,
  text: string,
  { root, call: { cwd, env } }: { readonly root: string; readonly call: Call },
): Promise<InitFile> {
  const shown = shownPath(path, cwd, env);
  try {
    const { written } = await changeFile(path, {
      root,
      env,
      change: (current) => current ?? toByteString(text),
    });
    return { path: shown, state: written ? "created" : "kept" };
  } catch (error) {
    if (!(error instanceof ContextError)) throw error;
    return { path: shown, state: "failed", problem: describeError(error, () => shown) };
  }
}
