/** The plugin of gemini-cli: an extension with one hook (0.61, 2026-11). A hook can replace a result only by refusing it,
 *  and the model then sees an error. So only results that are much too long are replaced. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createIntake } from "../../conversation/intake/index.ts";
import type { Fields } from "../../core/text/index.ts";
import { createCounter } from "../../core/tokens/index.ts";
import { readForeignBytes } from "../../host/index.ts";
import {
  folderSettings,
  formatJson,
  ownedFolder,
  type PluginCheck,
  type PluginClient,
  type PluginPlace,
  type PluginServer,
} from "./plugin.ts";
import { createSessionRecorder } from "./plugin-sessions.ts";

export const geminiCli: PluginClient = {
  id: "gemini-cli",
  program: "gemini",
  home: ".gemini",
  scopes: ["user"],
  async files({ root }, settings) {
    const { maxResultTokens } = settings;
    const limit = maxResultTokens === undefined ? [] : ["--max-result-tokens", String(maxResultTokens)];
    // gemini-cli shows the message of a command that fails to the model, in place of the result.
    const command = ["plimsoll", "plugin", "hook", "gemini-cli", ...limit, "|| exit 0"].join(" ");
    // A hook that takes longer is ended, and the result stays as it is.
    const hook = { type: "command", name: "plimsoll", command, timeout: 1_000 };
    const files = {
      "gemini-extension.json": formatJson({ name: "plimsoll", version: "1.0.0" }),
      "hooks/hooks.json": formatJson({ hooks: { AfterTool: [{ matcher: "*", hooks: [hook] }] } }),
    };
    return ownedFolder(join(root, folder), files, settings);
  },
  installedSettings: ({ root }) => folderSettings(join(root, folder)),
  notes: [
    "gemini-cli loads the extension at its next start.",
    "It can only cut long results, and shows them to its model as errors. Repeated text stays.",
  ],
  check: checkHook,
  hook: answerHook,
};

const folder = ".gemini/extensions/plimsoll";

/** Gives a planted result to the installed command, as the client would. */
async function checkHook({ root, env }: PluginPlace): Promise<PluginCheck> {
  const file = readForeignBytes(join(root, folder, "hooks/hooks.json"), { within: root, refuseLink: true });
  const command = /"command": "(.*)"/.exec(file ?? "")?.[1];
  if (command === undefined) {
    return { passed: false, lines: ['the plugin is not installed. Run "plimsoll plugin install gemini-cli"'] };
  }
  const planted = Array.from({ length: 40_000 }, (_, index) => `planted line ${index + 1}`).join("\n");
  const event = { session_id: "plimsoll-check", tool_name: "check", tool_response: { llmContent: planted } };
  const state = mkdtempSync(join(tmpdir(), "plimsoll-check-"));
  const { stdout } = spawnSync(command, {
    input: JSON.stringify(event),
    env: { ...env, PLIMSOLL_STORE: join(state, "state.db") },
    shell: true,
    encoding: "utf8",
    timeout: 20_000,
  });
  rmSync(state, { recursive: true, force: true });
  const passed = stdout.includes("planted line 1\\n") && stdout.includes('"decision":"deny"');
  const lines = [
    passed
      ? `a result of ${planted.length} characters becomes ${stdout.length}`
      : "the hook did not shorten a long result. Is plimsoll on PATH?",
    "only the hook's command was run, not gemini-cli itself",
  ];
  return { passed, lines };
}

/** Answers `AfterTool`. Returns undefined if the result should stay as it is. */
async function answerHook(event: Fields, { settings, store }: PluginServer): Promise<object | undefined> {
  const { session_id: sessionId, tool_name: tool, tool_input: input, tool_response: response } = event;
  const text = readOnlyText((Object(response) as Fields).llmContent);
  const { maxResultTokens = 16_000 } = settings;
  // A token has at least one character.
  if (text === undefined || text.length <= maxResultTokens) return undefined;
  if (typeof sessionId !== "string" || typeof tool !== "string") return undefined;
  const opened = await store();
  const counter = await createCounter("auto");
  const intake = await createIntake({ counter, store: opened, sessionId, maxResultTokens, deltas: false });
  const admitted = await intake.admit({ tool, input, text });
  const savedTokens = admitted.id === undefined ? 0 : counter.count(text) - admitted.tokens;
  const { edit, tokens } = admitted;
  const record = createSessionRecorder("gemini-cli");
  await record(opened, sessionId, [{ kind: "result", edit, savedTokens, tokens, at: Date.now() }]);
  // The model sees whatever we return as the message of an error, so a whole result stays as it is.
  if (savedTokens === 0) return undefined;
  const notice = "[The tool ran. Its result is too long for the conversation, so this is a part of it.]";
  return { decision: "deny", reason: `${notice}\n${admitted.text}` };
}

/** Results with images or several texts stay as they are. */
function readOnlyText(content: unknown): string | undefined {
  if (typeof content === "string") return content;
  const [only, ...rest] = Array.isArray(content) ? (content as Fields[]) : [];
  return rest.length === 0 && typeof only?.text === "string" ? only.text : undefined;
}
