/** `plugin check claude-code`. */
import { checkClient } from "./check-client.ts";
import type { PluginCheck, PluginPlace } from "./plugin.ts";

export function checkClaude(place: PluginPlace): Promise<PluginCheck> {
  return checkClient("claude-code", place, {
    program: "claude",
    installed: { ".claude/skills/plimsoll": ".claude/skills/plimsoll" },
    args: ["-p", "Read the file.", "--model", "claude-sonnet-4-5", "--allowedTools", "Read"],
    env: (url) => ({
      ...{ ANTHROPIC_API_KEY: "none", ANTHROPIC_BASE_URL: url },
      ...{ DISABLE_TELEMETRY: "1", DISABLE_AUTOUPDATER: "1", DISABLE_ERROR_REPORTING: "1" },
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    }),
    call: (file) => ({ name: "Read", input: { file_path: file } }),
    partOf: (text) => (text.startsWith("[") ? "the module inside of the client" : "the hook after each tool"),
  });
}
