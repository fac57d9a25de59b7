/** The files that each AI tool loads, in order, as of 2026-11-15. The names and orders come from the tools' source,
 *  from their documentation, or from tools that write these files. Two things are less certain: which tools also
 *  read folders below the root (`down`), and which front matter makes a rule wait. Files that need a setting are not
 *  listed. */

import { basename } from "node:path";
import type { Adapter, ToolLimit } from "../adapters/adapter.ts";

/** Names of which a tool reads only the first that exists. A name may end in a pattern: `.kiro/steering/*.md`,
 *  `.claude/rules/**\/*.md`. */
export type Alternatives = readonly string[];

export interface ToolFiles {
  readonly id: string;
  readonly name: string;
  /** Below HOME, or absolute if an administrator installs the file. */
  readonly user?: readonly Alternatives[];
  /** In the root of the repository. */
  readonly root?: readonly Alternatives[];
  /** In every folder from the root down to the current one. */
  readonly down?: readonly Alternatives[];
  /** Read in every folder if the project has none of the files above. */
  readonly otherwise?: Alternatives;
  /** A file in the root whose `read:` list names the files. */
  readonly listedIn?: string;
  /** Front matter of rule files that the tool loads only for a path or on request. Rule files are the files that a
   *  pattern matches. */
  readonly onDemand?: RegExp;
  /** A rule file without this front matter is loaded on demand. */
  readonly always?: RegExp;
  /** The tool does not load files that git ignores. */
  readonly skipsIgnored?: true;
  /** The user's file does not count toward a limit on the chain. */
  readonly userExempt?: true;
  /** The adapter of a shared file that also lists a limit of this tool. */
  readonly limitsFrom?: string;
  /** The files that a limit of this value applies to. Without an entry, a limit applies to all files. */
  readonly limitedFiles?: Readonly<Record<number, RegExp>>;
  /** The advice to print when the tool reads the file in `otherwise`. */
  readonly otherwiseAdvice?: string;
}

/** Adapters of a file that many tools share. The tools in their `reads` load it. */
const sharedFiles: readonly string[] = ["agents-md"];

const agents: readonly Alternatives[] = [["AGENTS.md"]];
const withPaths = /^paths:/m;
const forAllPaths = /^applyTo:\s*["']?\*\*(?:\/\*)?["']?\s*$/m;

const toolFiles: readonly ToolFiles[] = [
  { id: "aider", name: "Aider", listedIn: ".aider.conf.yml" },
  { id: "amazon-q", name: "Amazon Q Developer", root: all(".amazonq/rules/*.md") },
  // Fallback names: ampcode.com/manual.
  {
    id: "amp",
    name: "Amp",
    down: [["AGENTS.md", "AGENT.md", "CLAUDE.md"]],
    user: all("~/.config/amp/AGENTS.md"),
  },
  {
    id: "antigravity",
    name: "Antigravity",
    root: all("AGENTS.md", ".agents/rules/*.md", ".agent/rules/*.md"),
    user: all("~/.gemini/GEMINI.md"),
    skipsIgnored: true, // rulesync#981, #817
  },
  {
    id: "augment",
    name: "Augment",
    root: all(".augment/rules/*.md", "AGENTS.md", "CLAUDE.md"),
    user: all("~/.augment/rules/*.md"),
    onDemand: /^type:\s*["']?(?:manual|agent_requested)/m,
  },
  {
    id: "claude-code",
    name: "Claude Code",
    down: all("CLAUDE.md", ".claude/CLAUDE.md", ".claude/rules/**/*.md", "CLAUDE.local.md"),
    user: all("/etc/claude-code/CLAUDE.md", "~/.claude/CLAUDE.md", "~/.claude/rules/*.md"),
    onDemand: withPaths,
    // Third-party: several projects report it for 2.1.277 and later. The setting is called claude-md-or-agents-md.
    otherwise: ["AGENTS.md"],
    otherwiseAdvice: [
      "Claude Code reads AGENTS.md only from version 2.1.277 on, and only while there is no CLAUDE.md:",
      "a CLAUDE.md with the line @AGENTS.md works in every version.",
    ].join(" "),
  },
  {
    id: "cline",
    name: "Cline",
    root: all(".clinerules/*.md", "AGENTS.md"),
    user: all("~/Documents/Cline/Rules/*.md", "~/.agents/AGENTS.md"),
    onDemand: withPaths,
  },
  {
    id: "codex-cli",
    name: "Codex CLI",
    down: [["AGENTS.override.md", "AGENTS.md"]],
    user: all("~/.codex/AGENTS.md"),
    userExempt: true, // codex#37956
    limitsFrom: "agents-md",
  },
  {
    id: "continue",
    name: "Continue",
    ...rules(".continue/rules"),
    onDemand: /^(?:alwaysApply:\s*false|globs:)/m,
  },
  {
    id: "copilot-cli",
    name: "GitHub Copilot CLI",
    root: all(".github/copilot-instructions.md", ".github/instructions/*.instructions.md", "CLAUDE.md", "GEMINI.md"),
    down: agents,
    user: all("~/.copilot/copilot-instructions.md", "~/.copilot/instructions/*.instructions.md"),
    always: forAllPaths,
  },
  {
    id: "cursor",
    name: "Cursor",
    root: all(".cursorrules"),
    down: all(".cursor/rules/**/*.mdc", "AGENTS.md"),
    always: /^alwaysApply:\s*true/m,
  },
  {
    id: "devin-cli",
    name: "Devin CLI",
    root: all("AGENTS.md", "AGENT.md", "CLAUDE.md", ".devin/rules/*.md"),
    user: all("~/.config/devin/AGENTS.md"),
    onDemand: /^(?:globs:|trigger:\s*["']?(?:glob|model_decision|manual))/m,
  },
  {
    id: "devin-desktop",
    name: "Devin Desktop",
    root: all(".devin/rules/*.md", ".windsurf/rules/*.md", ".windsurfrules", "AGENTS.md"),
    user: all("~/.codeium/windsurf/memories/global_rules.md"),
    onDemand: /^trigger:\s*["']?(?:glob|model_decision|manual)/m,
    limitedFiles: { 12000: /\/rules\/[^/]*$/, 6000: /\/(?:global_rules\.md|\.windsurfrules)$/ },
  },
  {
    id: "factory-droid",
    name: "Factory Droid",
    root: all(".factory/rules/*.md"),
    down: agents,
    user: all("~/.factory/AGENTS.md"),
  },
  { id: "firebase-studio", name: "Firebase Studio", root: all(".idx/airules.md") },
  { id: "gemini-cli", name: "Gemini CLI", down: all("GEMINI.md"), user: all("~/.gemini/GEMINI.md") },
  {
    id: "github-copilot",
    name: "GitHub Copilot",
    root: all(".github/copilot-instructions.md", ".github/instructions/*.instructions.md"),
    down: agents,
    user: all("~/.copilot/copilot-instructions.md", "~/.copilot/instructions/*.instructions.md"),
    always: forAllPaths,
    limitedFiles: { 4000: /\/copilot-instructions\.md$/ },
  },
  {
    id: "goose",
    name: "Goose",
    down: all(".goosehints", "AGENTS.md"),
    user: all("~/.config/goose/.goosehints", "~/.agents/AGENTS.md"),
  },
  {
    id: "grok-cli",
    name: "Grok CLI",
    root: all("AGENTS.md", ".grok/rules/*.md"),
    user: all("~/.grok/AGENTS.md", "~/.grok/rules/*.md"),
  },
  { id: "jetbrains-ai", name: "JetBrains AI Assistant", root: all(".aiassistant/rules/*.md") },
  {
    id: "junie",
    name: "Junie",
    root: [[".junie/AGENTS.md", "AGENTS.md", ".junie/guidelines.md"]],
    user: all("~/.junie/AGENTS.md"),
  },
  {
    id: "kilo",
    name: "Kilo",
    root: all("AGENTS.md", ".kilo/rules/*.md"),
    user: all("~/.config/kilo/AGENTS.md"),
  },
  {
    id: "kiro",
    name: "Kiro",
    root: all(".kiro/steering/*.md", "AGENTS.md"),
    user: all("~/.kiro/steering/*.md"),
    onDemand: /^inclusion:\s*["']?(?:fileMatch|manual|auto)/m,
  },
  // OpenCode reads one name in the whole chain: the first of these that exists anywhere in it.
  {
    id: "opencode",
    name: "OpenCode",
    down: agents,
    otherwise: ["CLAUDE.md"],
    user: [["~/.config/opencode/AGENTS.md", "~/.claude/CLAUDE.md"]],
  },
  {
    id: "pi",
    name: "Pi",
    down: [["AGENTS.override.md", "AGENTS.md", "CLAUDE.md"]],
    user: all("~/.pi/agent/AGENTS.md"),
  },
  {
    id: "qwen-code",
    name: "Qwen Code",
    root: all(".qwen/rules/*.md"),
    down: all("QWEN.md", "AGENTS.md"),
    user: all("~/.qwen/QWEN.md"),
    onDemand: withPaths,
  },
  { id: "replit", name: "Replit", root: all("replit.md") },
  {
    id: "roo",
    name: "Roo Code / Zoo Code",
    root: all(".roo/rules/**/*.md", "AGENTS.md"),
    user: all("~/.roo/rules/**/*.md"),
  },
  {
    id: "rovo-dev",
    name: "Rovo Dev",
    root: all("AGENTS.md", ".rovodev/AGENTS.md", "AGENTS.local.md"),
    user: all("~/.rovodev/AGENTS.md"),
  },
  { id: "trae", name: "Trae", root: all(".trae/rules/project_rules.md") },
  { id: "warp", name: "Warp", root: all("AGENTS.md", "WARP.md"), user: all("~/.agents/AGENTS.md") },
  {
    id: "zed",
    name: "Zed",
    root: [
      [
        ".rules",
        ".cursorrules",
        ".windsurfrules",
        ".clinerules",
        ".github/copilot-instructions.md",
        "AGENT.md",
        "AGENTS.md",
        "CLAUDE.md",
        "GEMINI.md",
      ],
    ],
    user: all("~/.config/zed/AGENTS.md"),
  },
];

/** Returns whether a tool's limit applies to this file. Some limits apply to one of the tool's files only. */
export function isLimitOn(path: string, { value, scope }: ToolLimit, id: string): boolean {
  const pattern = toolFiles.find((tool) => tool.id === id)?.limitedFiles?.[value];
  return scope !== "file" || pattern === undefined || pattern.test(path);
}

/** Returns the tools of the table, and the tools that only an adapter describes by its targets. */
export function knownTools(adapters: readonly Adapter[]): ToolFiles[] {
  const known = new Set([...toolFiles.map((tool) => tool.id), ...sharedFiles]);
  const files = adapters.filter((adapter) => adapter.type === "file-inject");
  const ids = new Set(files.flatMap((adapter) => [adapter.id, ...adapter.reads]));
  const others = [...ids].filter((id) => !known.has(id)).map((id) => toolOfAdapters(id, files));
  return [...toolFiles, ...others].sort((a, b) => (a.id < b.id ? -1 : 1));
}

function toolOfAdapters(id: string, adapters: readonly Adapter[]): ToolFiles {
  const sharing = adapters.filter((adapter) => adapter.id === id || adapter.reads.includes(id));
  const targets = sharing.flatMap((adapter) => adapter.targets);
  const paths = (scope: string) => targets.filter((target) => target.scope === scope).map(({ path }) => [path]);
  const own = adapters.find((adapter) => adapter.id === id);
  // A limit on the chain means that the tool reads files of that name in every folder down to the current one.
  const hasChain = own?.limits.some((limit) => limit.scope === "chain") === true;
  const project = hasChain ? { down: paths("project").map(inEveryFolder) } : { root: paths("project") };
  return { id, name: own?.name ?? id, user: paths("global"), ...project };
}

/** A name such as `.tool/rules.md` is looked up in each folder. For `sub/RULES.md` only the file name is. */
function inEveryFolder(names: readonly string[]): string[] {
  return names.map((name) => (name.startsWith(".") ? name : basename(name)));
}

/** The tool loads every one of these files. */
function all(...names: readonly string[]): Alternatives[] {
  return names.map((name) => [name]);
}

/** The same folder of rules in the repository and under HOME. */
function rules(folder: string): Pick<ToolFiles, "root" | "user"> {
  return { root: all(`${folder}/*.md`), user: all(`~/${folder}/*.md`) };
}
