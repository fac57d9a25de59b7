/** The files that each AI tool loads, in order, as of 2026-11-15. The names and orders come from the tools' source,
 *  from their documentation, or from tools that write these files. Two things are less certain: which tools also
 *  read folders below the root (`down`), and which front matter makes a rule wait. Files that need a setting are not
 *  listed. `seen` is the version of the real tool that `npm run accept:load` agreed with on the day in the comment. */
import type { ToolFiles } from "./tool-files.ts";

export const toolFiles: readonly ToolFiles[] = [
  { id: "aider", name: "Aider", listedIn: ".aider.conf.yml" },
  { id: "amazon-q", name: "Amazon Q Developer", root: [[".amazonq/rules/*.md"]] },
  // Fallback names: ampcode.com/manual.
  {
    id: "amp",
    name: "Amp",
    down: [["AGENTS.md", "AGENT.md", "CLAUDE.md"]],
    user: [["~/.config/amp/AGENTS.md"]],
  },
  {
    id: "antigravity",
    name: "Antigravity",
    root: [["AGENTS.md"], [".agents/rules/*.md"], [".agent/rules/*.md"]],
    user: [["~/.gemini/GEMINI.md"]],
    skipsIgnored: true, // rulesync#981, #817
  },
  {
    id: "augment",
    name: "Augment",
    root: [[".augment/rules/*.md"], ["AGENTS.md"], ["CLAUDE.md"]],
    user: [["~/.augment/rules/*.md"]],
    onDemand: /^type:\s*["']?(?:manual|agent_requested)/m,
  },
  // 2026-11-18: any of the files in `unless`, in any folder from the root down, hides every AGENTS.md.
  {
    id: "claude-code",
    name: "Claude Code",
    seen: "2.1.327",
    down: [["CLAUDE.md"], [".claude/CLAUDE.md"], [".claude/rules/**/*.md"], ["CLAUDE.local.md"]],
    user: [["/etc/claude-code/CLAUDE.md"], ["~/.claude/CLAUDE.md"], ["~/.claude/rules/*.md"]],
    onDemand: /^paths:/m,
    above: true, // 2026-11-19
    otherwise: ["AGENTS.md"],
    unless: ["CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md"],
    imports: { onlyInCurrent: true },
    otherwiseAdvice: "Claude Code reads AGENTS.md from version 2.1.277 on, and only while no folder down to the current one has a CLAUDE.md, .claude/CLAUDE.md or CLAUDE.local.md.",
  },
  {
    id: "cline",
    name: "Cline",
    root: [[".clinerules/*.md"], ["AGENTS.md"]],
    user: [["~/Documents/Cline/Rules/*.md"], ["~/.agents/AGENTS.md"]],
    onDemand: /^paths:/m,
  },
  // 2026-11-18.
  {
    id: "codex-cli",
    name: "Codex CLI",
    seen: "0.169.0",
    down: [["AGENTS.override.md", "AGENTS.md"]],
    user: [["~/.codex/AGENTS.override.md", "~/.codex/AGENTS.md"]],
    userExempt: true, // codex#37956
    limitsFrom: "agents-md",
  },
  {
    id: "continue",
    name: "Continue",
    root: [[".continue/rules/*.md"]],
    user: [["~/.continue/rules/*.md"]],
    onDemand: /^(?:alwaysApply:\s*false|globs:)/m,
  },
  // 2026-11-18.
  {
    id: "copilot-cli",
    name: "GitHub Copilot CLI",
    seen: "1.0.102",
    siblingOf: "github-copilot",
    down: [["AGENTS.md"], ["CLAUDE.md"], ["GEMINI.md"], [".github/copilot-instructions.md"]],
    ends: [[".claude/rules/**/*.md"], [".github/instructions/**/*.instructions.md"]],
    between: [[".claude/CLAUDE.md"]],
    user: [["~/.copilot/copilot-instructions.md"], ["~/.copilot/instructions/*.instructions.md"]],
    onDemand: /^(?:paths:|applyTo:(?!\s*["']?\*\*(?:\/\*)?["']?\s*$))/m,
    imports: { from: ["CLAUDE.md", "copilot-instructions.md"], repeats: true },
    sendsTextOnce: true,
  },
  {
    id: "cursor",
    name: "Cursor",
    root: [[".cursorrules"]],
    down: [[".cursor/rules/**/*.mdc"], ["AGENTS.md"]],
    always: /^alwaysApply:\s*true/m,
  },
  {
    id: "devin-cli",
    name: "Devin CLI",
    root: [["AGENTS.md"], ["AGENT.md"], ["CLAUDE.md"], [".devin/rules/*.md"]],
    user: [["~/.config/devin/AGENTS.md"]],
    onDemand: /^(?:globs:|trigger:\s*["']?(?:glob|model_decision|manual))/m,
  },
  {
    id: "devin-desktop",
    name: "Devin Desktop",
    root: [[".devin/rules/*.md"], [".windsurf/rules/*.md"], [".windsurfrules"], ["AGENTS.md"]],
    user: [["~/.codeium/windsurf/memories/global_rules.md"]],
    onDemand: /^trigger:\s*["']?(?:glob|model_decision|manual)/m,
    limitedFiles: { 12000: /\/rules\/[^/]*$/, 6000: /\/(?:global_rules\.md|\.windsurfrules)$/ },
  },
  {
    id: "factory-droid",
    name: "Factory Droid",
    root: [[".factory/rules/*.md"]],
    down: [["AGENTS.md"]],
    user: [["~/.factory/AGENTS.md"]],
  },
  { id: "firebase-studio", name: "Firebase Studio", root: [[".idx/airules.md"]] },
  // 2026-11-18. Closed for individuals since 2026-06-18 (gemini-cli discussion 28017); keys and companies stay.
  { id: "gemini-cli", name: "Gemini CLI", seen: "0.61.0", down: [["GEMINI.md"]], user: [["~/.gemini/GEMINI.md"]] },
  {
    id: "github-copilot",
    name: "GitHub Copilot",
    root: [[".github/copilot-instructions.md"], [".github/instructions/*.instructions.md"]],
    down: [["AGENTS.md"]],
    user: [["~/.copilot/copilot-instructions.md"], ["~/.copilot/instructions/*.instructions.md"]],
    always: /^applyTo:\s*["']?\*\*(?:\/\*)?["']?\s*$/m,
    limitedFiles: { 4000: /\/copilot-instructions\.md$/ },
  },
  {
    id: "goose",
    name: "Goose",
    down: [[".goosehints"], ["AGENTS.md"]],
    user: [["~/.config/goose/.goosehints"], ["~/.agents/AGENTS.md"]],
  },
  {
    id: "grok-cli",
    name: "Grok CLI",
    root: [["AGENTS.md"], [".grok/rules/*.md"]],
    user: [["~/.grok/AGENTS.md"], ["~/.grok/rules/*.md"]],
  },
  { id: "jetbrains-ai", name: "JetBrains AI Assistant", root: [[".aiassistant/rules/*.md"]] },
  {
    id: "junie",
    name: "Junie",
    root: [[".junie/AGENTS.md", "AGENTS.md", ".junie/guidelines.md"]],
    user: [["~/.junie/AGENTS.md"]],
  },
  {
    id: "kilo",
    name: "Kilo",
    root: [["AGENTS.md"], [".kilo/rules/*.md"]],
    user: [["~/.config/kilo/AGENTS.md"]],
  },
  {
    id: "kiro",
    name: "Kiro",
    root: [[".kiro/steering/*.md"], ["AGENTS.md"]],
    user: [["~/.kiro/steering/*.md"]],
    onDemand: /^inclusion:\s*["']?(?:fileMatch|manual|auto)/m,
  },
  // OpenCode reads one name in the whole chain: the first of these that exists anywhere in it.
  {
    id: "opencode",
    name: "OpenCode",
    seen: "1.18.33",
    down: [["AGENTS.md"]],
    otherwise: ["CLAUDE.md"],
    user: [["~/.config/opencode/AGENTS.md", "~/.claude/CLAUDE.md"]],
  },
  // 2026-11-18.
  {
    id: "pi",
    name: "Pi",
    seen: "0.73.1",
    down: [["AGENTS.md", "CLAUDE.md"]],
    above: true, // 2026-11-19
    current: [[".pi/SYSTEM.md"], [".pi/APPEND_SYSTEM.md"]],
    user: [["~/.pi/agent/AGENTS.md", "~/.pi/agent/CLAUDE.md"]],
  },
  {
    id: "qwen-code",
    name: "Qwen Code",
    root: [[".qwen/rules/*.md"]],
    down: [["QWEN.md"], ["AGENTS.md"]],
    user: [["~/.qwen/QWEN.md"]],
    onDemand: /^paths:/m,
  },
  { id: "replit", name: "Replit", root: [["replit.md"]] },
  {
    id: "roo",
    name: "Roo Code / Zoo Code",
    root: [[".roo/rules/**/*.md"], ["AGENTS.md"]],
    user: [["~/.roo/rules/**/*.md"]],
  },
  {
    id: "rovo-dev",
    name: "Rovo Dev",
    root: [["AGENTS.md"], [".rovodev/AGENTS.md"], ["AGENTS.local.md"]],
    user: [["~/.rovodev/AGENTS.md"]],
  },
  { id: "trae", name: "Trae", root: [[".trae/rules/project_rules.md"]] },
  { id: "warp", name: "Warp", root: [["AGENTS.md"], ["WARP.md"]], user: [["~/.agents/AGENTS.md"]] },
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
    user: [["~/.config/zed/AGENTS.md"]],
  },
];
