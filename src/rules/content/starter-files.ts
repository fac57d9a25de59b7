/** The files of `init`. Comments in the YAML files explain them; AI tools never read those. The sample's text is true as
 *  written. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Environment, homeDirectory } from "../../host/index.ts";
import type { Adapter } from "../adapters/adapter.ts";
import { chooseAdapters } from "../adapters/choose-adapters.ts";
import { readEmbeddedContent } from "./load-content.ts";

export interface StarterOptions {
  readonly hadPacks: boolean;
  /** Ids of the built-in packs that the person chose. */
  readonly packs: readonly string[];
  readonly env: Environment;
}

/** Returns paths and texts in the order of writing. A pack.yaml comes last, because it makes its folder a pack. */
export async function planStarterFiles(
  root: string,
  { hadPacks, packs, env }: StarterOptions,
): Promise<[string, string][]> {
  const isInstalled = existsSync(join(root, "node_modules/plimsoll/schemas/config.schema.json"));
  const schemas = isInstalled ? "../node_modules/plimsoll/schemas" : "schemas";
  const options = { tools: await chooseStarterTools(root, env), packs, schemas };
  const isStarted = hadPacks && existsSync(join(root, ".plimsoll/config.yaml"));
  const files: [string, string][] = [["config.yaml", sampleConfig(options)]];
  if (!hadPacks) files.push(["packs/project/context.md", sampleContext]);
  if (!hadPacks) files.push(["packs/project/pack.yaml", samplePackFile(options)]);
  if (!isInstalled && !isStarted) files.push(...["config", "pack", "profile", "adapter"].map(schemaFile));
  return files.map(([path, text]) => [join(".plimsoll", path), text]);
}

/** The files that make Claude Code ignore AGENTS.md (seen with 2.1.327, 2026-11-18). */
const claudeFiles = ["CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md"];

/** Returns the ids of the tools in use here, or agents-md. Claude Code reads AGENTS.md unless one of its own files is
 *  there. A new CLAUDE.md would hide AGENTS.md from it. */
async function chooseStarterTools(root: string, env: Environment): Promise<readonly string[]> {
  const places = { scope: "project" as const, root, home: homeDirectory(env) };
  const found = await chooseAdapters(readEmbeddedContent<Adapter>().adapters, {
    tools: undefined,
    all: false,
    onlyInUse: true,
    places,
    env,
  });
  const ids = found.map(({ id }) => id);
  const isServed = !claudeFiles.some((name) => existsSync(join(root, name)));
  const needed = isServed ? ids.filter((id) => id !== "claude-code") : ids;
  const isAlone = needed.length === 0 || needed.length < ids.length;
  return isAlone && !needed.includes("agents-md") ? ["agents-md", ...needed] : needed;
}

function schemaFile(name: string): [string, string] {
  const path = fileURLToPath(new URL(`../../../schemas/${name}.schema.json`, import.meta.url));
  return [`schemas/${name}.schema.json`, readFileSync(path, "utf8")];
}

interface SampleOptions {
  /** Ids of the AI tools to write for. */
  readonly tools: readonly string[];
  readonly packs: readonly string[];
  /** Folder of the schemas, relative to `.plimsoll/`. */
  readonly schemas: string;
}

/** A configuration with every key, most of them commented out. */
function sampleConfig({ tools, packs, schemas }: SampleOptions): string {
  return `# yaml-language-server: $schema=${schemas}/config.schema.json
# Every key may be absent. A line in comments is the default; "plimsoll config" shows what is in force.
model: claude-sonnet-5        # the model that you use; its family decides how tokens are counted
counter: auto                 # how tokens are counted; auto: as the model's family does
tools: [${tools.join(", ")}]     # AI tools to write for; absent: those whose files are here
# title: Developer Context    # heading of what inject writes; "": only your packs, without facts
# profile: all                # order of packs: all, minimal (base packs only), or one in profiles/
# language: en
# own_files: []               # tools that get a file of their own though they read AGENTS.md, such as [cursor]
# verbosity: {}               # tool → minimal | standard | full, such as { claude-code: standard }
budgets: { "*": 4000 }        # tool → most tokens of its rules, such as { claude-code: 2500, "*": 4000 }
on_overflow: thin             # when a budget is exceeded: thin leaves out details first, drop leaves out whole packs
# on_drop: fail               # inject --check when packs were dropped: fail, or warn
packs: { built_in: [${packs.join(", ")}] }       # built-in packs to use besides yours; "plimsoll packs list" shows all of them
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

/** The sample has no comments, because they would cost tokens in the tools' files, and no tiers: a rule that a person
 *  adds at its end is part of the core, which every tool gets. */
const sampleContext = "## This project\n\n";
