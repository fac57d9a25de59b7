/** Projects with instruction files, as they are found in public repositories, for `npm run accept:load`. Keys are paths; `canary` in a
 *  text becomes a word of the file's own; `-> NAME` makes a link. */

/** One file each, with its own word. */
function plain(...paths) {
  return Object.fromEntries(paths.map((path) => [path, `Rules of this place: canary.\n`]));
}

export const layouts = {
  "agents-md": { files: plain("AGENTS.md", "sub/AGENTS.md"), folders: [".", "sub"] },
  "agents-and-dot-claude": {
    files: { ...plain("AGENTS.md", "sub/AGENTS.md"), ".claude/settings.json": "{}\n" },
    folders: [".", "sub"],
    tools: ["claude-code", "agents-md"],
  },
  "import-in-claude-md": {
    files: { ...plain("AGENTS.md", "sub/AGENTS.md"), "CLAUDE.md": "canary\n\n@AGENTS.md\n" },
    folders: [".", "sub"],
    tools: ["claude-code", "agents-md"],
  },
  "import-only": {
    files: { ...plain("AGENTS.md"), "CLAUDE.md": "@AGENTS.md\n", "src/a.ts": "export {};\n" },
    folders: ["."],
    tools: ["claude-code", "agents-md"],
  },
  "five-tools": {
    files: {
      ...plain("AGENTS.md", "CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md", ".cursor/rules/own.mdc"),
      "src/a.ts": "export {};\n",
    },
    folders: [".", "src"],
    tools: ["agents-md", "claude-code", "gemini-cli", "github-copilot", "cursor"],
  },
  "no-own-files": {
    files: { "README.md": "A project.\n", "src/a.ts": "export {};\n" },
    folders: [".", "src"],
    tools: ["agents-md", "claude-code", "gemini-cli", "github-copilot"],
  },
  override: {
    files: plain("AGENTS.md", "AGENTS.override.md", "sub/AGENTS.md"),
    folders: [".", "sub"],
    tools: ["agents-md"],
  },
  "local-file": {
    files: plain("AGENTS.md", "CLAUDE.local.md", "sub/AGENTS.md"),
    folders: [".", "sub"],
    tools: ["agents-md", "claude-code"],
  },
  "claude-in-a-folder": {
    files: plain("AGENTS.md", "sub/AGENTS.md", "sub/CLAUDE.md"),
    folders: [".", "sub"],
    tools: ["agents-md", "claude-code"],
  },
  "claude-only": { files: plain("CLAUDE.md", "sub/CLAUDE.md"), folders: [".", "sub"], tools: ["claude-code"] },
  links: {
    files: {
      ...plain("AGENTS.md"),
      "CLAUDE.md": "-> AGENTS.md",
      "GEMINI.md": "-> AGENTS.md",
      "src/a.ts": "export {};\n",
    },
    folders: [".", "src"],
    tools: ["agents-md", "claude-code", "gemini-cli"],
  },
  home: {
    files: plain(
      "AGENTS.md",
      "~/.claude/CLAUDE.md",
      "~/.codex/AGENTS.md",
      "~/.copilot/copilot-instructions.md",
      "~/.gemini/GEMINI.md",
      "~/.config/opencode/AGENTS.md",
      "~/.pi/agent/AGENTS.md",
    ),
    folders: ["."],
    tools: ["agents-md", "claude-code"],
  },
  everything: {
    files: plain(
      ...["", "sub/", "sub/deep/"].flatMap((folder) =>
        [
          "AGENTS.md",
          "CLAUDE.md",
          "CLAUDE.local.md",
          ".claude/CLAUDE.md",
          ".claude/rules/a.md",
          "GEMINI.md",
          ".github/copilot-instructions.md",
          ".github/instructions/a.instructions.md",
          ".pi/APPEND_SYSTEM.md",
        ].map((name) => `${folder}${name}`),
      ),
    ),
    folders: [".", "sub", "sub/deep"],
    tools: ["agents-md", "claude-code", "gemini-cli", "github-copilot"],
  },
};
