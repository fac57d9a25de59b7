/** The plugin of Claude Code: a folder that the client loads by itself. Its hooks ask our process, which the client runs
 *  as an MCP server. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ContextError } from "../../core/errors.ts";
import { claudeTools } from "./claude-hooks.ts";
import { folderSettings, ownedFolder, type PluginClient, type PluginSettings } from "./plugin.ts";

export const claudeCode: PluginClient = {
  id: "claude-code",
  canGuard: true,
  canTrim: true,
  canLeaveOutImages: true,
  async files({ root }, settings) {
    return ownedFolder(join(root, folder), claudeFolder(settings), settings);
  },
  installedSettings: ({ root }) => folderSettings(join(root, folder)),
  notes: [
    "Claude Code loads the plugin in its next session.",
    'For a status line, add "statusLine": { "type": "command", "command": "plimsoll statusline" } to ~/.claude/settings.json.',
  ],
  serverTools: claudeTools,
  async check(place) {
    const { checkClient } = await import("./check-client.ts");
    return checkClient("claude-code", place, {
      program: "claude",
      installed: { [folder]: folder },
      args: ["-p", "Read the file.", "--model", "claude-sonnet-4-5", "--allowedTools", "Read"],
      env: (url) => ({
        ...{ ANTHROPIC_API_KEY: "none", ANTHROPIC_BASE_URL: url },
        ...{ DISABLE_TELEMETRY: "1", DISABLE_AUTOUPDATER: "1", DISABLE_ERROR_REPORTING: "1" },
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      }),
      call: (file) => ({ name: "Read", input: { file_path: file } }),
      partOf: (text) => (text.startsWith("[") ? "the module inside the client" : "the hook after each tool"),
    });
  },
};

const folder = ".claude/skills/plimsoll";

/** Returns the files of the plugin's folder by their paths in it. */
export function claudeFolder({
  maxResultTokens,
  deltas,
  guard,
  ...requests
}: PluginSettings): Readonly<Record<string, string>> {
  const { trim } = requests;
  const args = [
    ...["plugin", "serve", "claude-code"],
    ...(maxResultTokens === undefined ? [] : ["--max-result-tokens", String(maxResultTokens)]),
    ...(deltas ? [] : ["--no-deltas"]),
    ...(trim === undefined ? [] : ["--trim", String(trim)]),
  ];
  return {
    ".claude-plugin/plugin.json": json({ ...about, version: packageVersion() }),
    ".mcp.json": json({ mcpServers: { plimsoll: { command: "plimsoll", args } } }),
    "hooks/hooks.json": json(guard === true ? { ...hooks, hooks: { ...hooks.hooks, PreToolUse: guarded } } : hooks),
    "hooks/register.js": moduleFor(requests),
  };
}

/** The client makes each request wait 45 ms for a module that names this event. It finds names by reading the file, and
 *  does not load a module in which one is a variable (2.1.325). So only install can choose. */
function moduleFor({ trim, images }: Pick<PluginSettings, "trim" | "images">): string {
  const module = readFileSync(packageFile("plugins/claude-code/hooks/register.js"), "utf8");
  const hasRequests = trim !== undefined || images !== undefined;
  return module
    .replace(/on\("http\.fetch", changeRequest\);|\/\/ Requests stay as they are\./, () =>
      hasRequests ? 'on("http.fetch", changeRequest);' : "// Requests stay as they are.",
    )
    .replace(/^const chosen = .*$/m, `const chosen = { trims: ${trim !== undefined}, images: ${images ?? 0} };`);
}

/** This module is in dist/clients/plugins/, in src/clients/plugins/ or, bundled, in dist/cli/bundle/. */
function packageFile(name: string): string {
  const path = fileURLToPath(new URL(`../../../${name}`, import.meta.url));
  if (existsSync(path)) return path;
  throw new ContextError("unreadable_input", "a part of the package is missing", {
    file: path,
    hint: "Install plimsoll again; in a clone of its repository run npm run build.",
  });
}

function packageVersion(): string {
  const { version } = JSON.parse(readFileSync(packageFile("package.json"), "utf8")) as { readonly version: string };
  return version;
}

const about = {
  name: "plimsoll",
  description: "Shortens tool results that repeat what the conversation already has. Originals stay on this computer.",
  homepage: "https://github.com/plimsoll-dev/plimsoll",
  license: "Apache-2.0",
};

/** As the client names a server of a plugin, and its tools. */
const server = "plugin:plimsoll:plimsoll";
const recallName = "mcp__plugin_plimsoll_plimsoll__recall";

/** In seconds. A slow answer stalls the client, and the module may have waited before. */
const timeout = 0.5;

const inputs = (names: readonly string[]): object =>
  Object.fromEntries(["session_id", "agent_id", "transcript_path", ...names].map((name) => [name, `\${${name}}`]));

const ask = (tool: string, names: readonly string[] = []): object[] => [
  { type: "mcp_tool", server, tool, input: inputs(names), timeout },
];

const hooks = {
  modules: ["./register.js"],
  hooks: {
    PreToolUse: [{ matcher: recallName, hooks: ask("allow_recall", ["tool_input"]) }],
    PostToolUse: [
      {
        matcher: "*",
        hooks: ask("after_tool", ["tool_name", "tool_use_id", "tool_input", "tool_response", "duration_ms"]),
      },
    ],
    PreCompact: [{ hooks: ask("before_compact") }],
    SessionStart: [{ matcher: "compact|clear", hooks: ask("after_compact") }],
  },
};

/** The guard is a process for each tool call: it reads the transcripts and the configuration at that moment. Our own
 *  tool needs none, and the module calls it for every result. */
const guarded = [
  ...hooks.hooks.PreToolUse,
  { matcher: `^(?!${recallName}$)`, hooks: [{ type: "command", command: "plimsoll guard --hook", timeout: 10 }] },
];

function json(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
