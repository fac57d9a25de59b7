/** The plugin of Claude Code: a folder that the client loads by itself. Its hooks ask our process, which the client runs
 *  as an MCP server. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ContextError } from "../../core/errors.ts";
import { warnOfColdCache } from "../spend/cold-cache.ts";
import { findSkippedServer, mendSkippedServer } from "./claude-health.ts";
import { claudeTools } from "./claude-hooks.ts";
import { folderSettings, formatJson, ownedFolder, type PluginClient, type PluginSettings } from "./plugin.ts";

export const claudeCode: PluginClient = {
  id: "claude-code",
  program: "claude",
  home: ".claude",
  canGuard: true,
  canTrim: true,
  canLeaveOutImages: true,
  async files({ root }, settings) {
    return ownedFolder(join(root, folder), claudeFolder(settings), settings);
  },
  installedSettings: ({ root }) => folderSettings(join(root, folder)),
  notes: ["Claude Code loads the plugin in its next session.", 'For a status line, run "plimsoll setup".'],
  findSilence: ({ env }) => findSkippedServer(env, Date.now()),
  endSilence: ({ env }) => mendSkippedServer(env),
  serverTools: claudeTools,
  hook: ({ transcript_path: transcript }, { env }) =>
    warnOfColdCache(String(transcript ?? ""), { env, now: Date.now() }),
  async check(place) {
    const { checkClient } = await import("./check-client.ts");
    return checkClient("claude-code", place, {
      program: "claude",
      installed: { [folder]: folder },
      args: ["-p", "Read the file.", "--model", "claude-sonnet-4-5", "--allowedTools", "Read"],
      env: (url) => ({
        ANTHROPIC_API_KEY: "none",
        ANTHROPIC_BASE_URL: url,
        DISABLE_TELEMETRY: "1",
        DISABLE_AUTOUPDATER: "1",
        DISABLE_ERROR_REPORTING: "1",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      }),
      call: (file) => ({ name: "Read", input: { file_path: file } }),
      partOf: (text) => (text.startsWith("[") ? "the module inside the client" : "the hook after each tool"),
    });
  },
};

const folder = ".claude/skills/plimsoll";

/** Returns the files of the plugin's folder by their paths in it. */
export function claudeFolder(settings: PluginSettings): Readonly<Record<string, string>> {
  const { maxResultTokens, deltas, trim, guard } = settings;
  const args = ["plugin", "serve", "claude-code"];
  if (maxResultTokens !== undefined) args.push("--max-result-tokens", String(maxResultTokens));
  if (!deltas) args.push("--no-deltas");
  if (trim !== undefined) args.push("--trim", String(trim));
  const { version } = JSON.parse(readPackageFile("package.json")) as { readonly version: string };
  return {
    ".claude-plugin/plugin.json": formatJson({
      name: "plimsoll",
      description:
        "Shortens tool results that repeat what the conversation already has. Originals stay on this computer.",
      homepage: "https://github.com/plimsoll-dev/plimsoll",
      license: "Apache-2.0",
      version,
    }),
    ".mcp.json": formatJson({ mcpServers: { plimsoll: { command: "plimsoll", args } } }),
    "hooks/hooks.json": formatJson({
      ...hooks,
      hooks: guard === true ? { ...hooks.hooks, PreToolUse: [...hooks.hooks.PreToolUse, guardHook] } : hooks.hooks,
    }),
    "hooks/register.js": writeModule(settings),
  };
}

/** Writes the module that runs inside the client. Registering for `http.fetch` makes every request wait 45 ms, so the
 *  module does it only if it changes requests. This is decided at install, because the client reads the event names
 *  from the file's text and refuses a variable there (2.1.325). */
function writeModule({ trim, images }: PluginSettings): string {
  const module = readPackageFile("plugins/claude-code/hooks/register.js");
  const hasRequests = trim !== undefined || images !== undefined;
  return module
    .replace(/on\("http\.fetch", changeRequest\);|\/\/ Requests stay as they are\./, () =>
      hasRequests ? 'on("http.fetch", changeRequest);' : "// Requests stay as they are.",
    )
    .replace(/^const chosen = .*$/m, `const chosen = { trims: ${trim !== undefined}, images: ${images ?? 0} };`);
}

/** This module is in dist/clients/plugins/, in src/clients/plugins/ or, bundled, in dist/cli/bundle/. */
function readPackageFile(name: string): string {
  const path = fileURLToPath(new URL(`../../../${name}`, import.meta.url));
  if (existsSync(path)) return readFileSync(path, "utf8");
  throw new ContextError("unreadable_input", "a part of the package is missing", {
    file: path,
    hint: "Install plimsoll again; in a clone of its repository run npm run build.",
  });
}

/** The name that the client gives our tool. */
const recallName = "mcp__plugin_plimsoll_plimsoll__recall";

/** Asks a tool of our process with fields of the hook's input. */
function ask(tool: string, names: readonly string[] = [], more: object = {}): object[] {
  const fields = ["session_id", "agent_id", "transcript_path", ...names];
  const input = { ...Object.fromEntries(fields.map((name) => [name, `\${${name}}`])), ...more };
  // In seconds. A slow answer stalls the client, and the module may have waited before.
  return [{ type: "mcp_tool", server: "plugin:plimsoll:plimsoll", tool, input, timeout: 0.5 }];
}

const hooks = {
  modules: ["./register.js"],
  hooks: {
    PreToolUse: [{ matcher: recallName, hooks: ask("allow_recall", ["tool_input"]) }],
    PostToolUse: [
      {
        matcher: "*",
        hooks: ask("after_tool", ["tool_name", "tool_use_id", "tool_input", "tool_response", "duration_ms"], {
          ends: "after_batch",
        }),
      },
    ],
    // Once for all calls of an answer, before the next request.
    PostToolBatch: [{ hooks: ask("after_batch", ["tool_calls"]) }],
    // A process of its own: before the first prompt the client has not started ours, and would show an error.
    UserPromptSubmit: [
      { hooks: [{ type: "command", command: "plimsoll plugin hook claude-code || exit 0", timeout: 5 }] },
    ],
    PreCompact: [{ hooks: ask("before_compact") }],
    SessionStart: [{ matcher: "compact|clear", hooks: ask("after_compact") }],
  },
};

/** Starts a guard process before each tool call, which reads the transcripts and the configuration. Our own tool is left
 *  out: it costs nothing, and the module calls it for every result. */
const guardHook = {
  matcher: `^(?!${recallName}$)`,
  hooks: [{ type: "command", command: "plimsoll guard --hook", timeout: 10 }],
};
