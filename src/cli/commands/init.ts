import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ContextError } from "../../core/errors.ts";
import { printable, toByteString } from "../../core/text/index.ts";
import { changeFile, describeError, homeDirectory, projectRoot, shownPath } from "../../host/index.ts";
import { type Adapter, chooseAdapters, readEmbeddedContent } from "../../rules/index.ts";
import { type Call, type Command, defineCommand } from "../command.ts";

export const initCommand: Command = defineCommand({
  options: {},
  details: `Writes .plimsoll/config.yaml with the AI tools found here, and a sample pack unless there are packs.
The files go to the root of the repository, or else to the current directory. Existing files are never changed.
Editors with a YAML language server check the files against the schemas of the installed package, or else against
copies in .plimsoll/schemas.`,
  examples: [
    { line: "plimsoll init", meaning: "set up this project" },
    { line: "plimsoll init && plimsoll inject --dry-run", meaning: "set up, and see what inject would write" },
  ],
  async run(call) {
    const { cwd, env, output } = call;
    const root = projectRoot(cwd, homeDirectory(env));
    const packs = join(root, ".plimsoll/packs");
    const hadPacks = hasPacks(packs);
    const files: InitFile[] = [];
    for (const [path, text] of await plannedFiles(root, { hadPacks, env })) {
      files.push(await createFile(join(root, path), text, { root, call }));
    }
    if (hadPacks) files.push({ path: shownPath(packs, cwd, env), state: "kept" });
    for (const { problem } of files) if (problem !== undefined) output.problem(problem);
    const failed = files.some(({ problem }) => problem !== undefined);
    const lines = files.map(
      ({ path, state }) => `${state} ${printable(path)}${state === "kept" ? " (it exists)" : ""}`,
    );
    const subject = shownPath(hadPacks ? packs : join(packs, "project/context.md"), cwd, env);
    return {
      json: { files: files.map(({ path, state }) => ({ path, state })) },
      text: [...lines, ...(failed ? [] : nextSteps(subject))].join("\n"),
      failed,
    };
  },
});

interface InitFile {
  readonly path: string;
  readonly state: "created" | "kept" | "failed";
  readonly problem?: string;
}

/** Returns paths and texts in the order of writing. A pack.yaml comes last, because it makes its folder a pack. */
async function plannedFiles(
  root: string,
  { hadPacks, env }: { readonly hadPacks: boolean; readonly env: Call["env"] },
): Promise<[string, string][]> {
  const isInstalled = existsSync(join(root, "node_modules/plimsoll/schemas/config.schema.json"));
  const schemas = isInstalled ? "../node_modules/plimsoll/schemas" : "schemas";
  const found = await chooseAdapters(readEmbeddedContent<Adapter>().adapters, {
    ...{ tools: undefined, all: false, env },
    places: { scope: "project", root, home: homeDirectory(env) },
  });
  const options = { tools: found.map(({ id }) => id), schemas };
  const isStarted = hadPacks && existsSync(join(root, ".plimsoll/config.yaml"));
  const files: [string, string][] = [["config.yaml", sampleConfig(options)]];
  if (!hadPacks) files.push(["packs/project/context.md", sampleContext]);
  if (!hadPacks) files.push(["packs/project/pack.yaml", samplePackFile(options)]);
  if (!isInstalled && !isStarted) files.push(...["config", "pack", "profile", "adapter"].map(schemaFile));
  return files.map(([path, text]) => [join(".plimsoll", path), text]);
}

/** Whether there are packs, so that no sample is needed. */
function hasPacks(directory: string): boolean {
  if (!existsSync(directory)) return false;
  return readdirSync(directory).some((name) => existsSync(join(directory, name, "pack.yaml")));
}

function schemaFile(name: string): [string, string] {
  const path = fileURLToPath(new URL(`../../../schemas/${name}.schema.json`, import.meta.url));
  return [`schemas/${name}.schema.json`, readFileSync(path, "utf8")];
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

function nextSteps(subject: string): string[] {
  return [
    "",
    "Next:",
    `  1. write what your team needs to know into ${printable(subject)}`,
    "  2. plimsoll packs lint                 check it",
    "  3. plimsoll inject --dry-run --stats   see what each AI tool would get",
    "  4. plimsoll inject                     write it",
  ];
}

/** The files of `init`. Comments in the YAML files explain them; AI tools never read those. The sample's text is
 *  true as written. */
interface SampleOptions {
  /** Ids of the AI tools to write for. */
  readonly tools: readonly string[];
  /** Folder of the schemas, relative to `.plimsoll/`. */
  readonly schemas: string;
}

/** A configuration with every key, most of them commented out. */
function sampleConfig({ tools, schemas }: SampleOptions): string {
  return `# yaml-language-server: $schema=${schemas}/config.schema.json
# Every key may be absent. A line in comments is the default; "plimsoll config" shows what is in force.
model: claude-sonnet-5        # the model that you use; its family decides how tokens are counted
counter: auto                 # how tokens are counted; auto: as the model's family does
tools: [${tools.join(", ")}]     # AI tools to write for; absent: those whose files are here
# title: Developer Context    # heading of what inject writes
# profile: all                # order of packs: all, minimal (base packs only), or one in profiles/
# language: en
# own_files: []               # tools that get a file of their own though they read AGENTS.md, such as [cursor]
# verbosity: {}               # tool → minimal | standard | full, such as { claude-code: standard }
budgets: { "*": 4000 }        # tool → most tokens of its rules, such as { claude-code: 2500, "*": 4000 }
on_overflow: thin             # when a budget is exceeded: thin leaves out details first, drop leaves out whole packs
# on_drop: fail               # inject --check when packs were dropped: fail, or warn
# packs: {}                   # { include: [git] } or { exclude: [sql] }; "plimsoll packs list" shows which and why
# context: { max_tokens: 10000, shares: { project: 0.4, fabric: 0.4, prior_work: 0.2 } }
# session: { total: 100000, per_tool_call: 8000, history_max: 12000, warning_threshold: 20000, tools: {} }
# nebula: { worktrees: false, worktree_copy: [] }  # a git worktree for each phase of a plan, and ignored files it needs
# run: { allow: edit }        # what agents may do: read, edit or all; counts once you trust the project
# history: { policy: economic, threshold: 0.8, keep: 10, reserve: 16000 }
# deny: []                    # further files whose contents no tool shows, such as ["*.tfstate"]
# allow: []                   # files that usually hold secrets and may be shown; counts once you trust the project
# prices: {}

# Packs that several projects share: a directory, or a git URL at a revision ("plimsoll sync" fetches it). Everyone who works
# here trusts it once, with "plimsoll trust".
# company: { source: ../packs-repo, revision: main }
`;
}

function samplePackFile({ schemas }: SampleOptions): string {
  return `# yaml-language-server: $schema=../../${schemas}/pack.schema.json
# A pack teaches one subject. Add more of them as folders beside this one; "plimsoll packs lint" checks them.
id: project                   # the folder's name
name: This project
description: What everyone who works here needs to know
weight: 90                    # heavier packs come first and are dropped last
# base: true                  # in every profile, before all others, dropped last
# overlaps: [other]           # this pack is redundant wherever the pack "other" is included before it
# changelog: ["Newest change first; three lines are shown"]
`;
}

/** The sample has no comments, because they would cost tokens in the tools' files. */
const sampleContext: string = `## This project

- Shared instructions for AI tools live in \`.plimsoll/packs/\`. Change the packs and run \`plimsoll inject\`; never edit the text between the \`plimsoll:start\` and \`plimsoll:end\` markers.

<!-- verbosity:detail -->
### Writing packs

- One rule a line, as you would tell a new colleague: what to do, then why if it is not obvious.
- Text above the first marker is \`core\` and reaches every tool, so it must make sense alone. \`detail\` goes to tools at \`standard\` and \`full\`.

<!-- verbosity:extended -->
### Checking packs

- \`plimsoll packs lint\` finds mistakes, \`plimsoll inject --dry-run --stats\` shows what each tool would get and what it weighs.
`;
