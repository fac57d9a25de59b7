import { expect, test } from "vitest";
import { createMemoryStore } from "../../core/store/index.ts";
import { geminiCli } from "./gemini-cli.ts";
import { listPluginSessions } from "./plugin-sessions.ts";

const long = Array.from({ length: 2_000 }, (_, n) => `line ${n} of a log that goes on and on`).join("\n");
const eventOf = (llmContent: unknown) => ({
  session_id: "s",
  hook_event_name: "AfterTool",
  tool_name: "run_shell_command",
  tool_input: { command: "make" },
  tool_response: { llmContent },
});

function open() {
  const store = createMemoryStore();
  const server = {
    settings: { deltas: true, maxResultTokens: 2_000 },
    waitMs: 20_000,
    env: {},
    store: async () => store,
    log: () => {},
  };
  return { store, hook: (event: object) => geminiCli.hook?.(event as never, server) };
}

test.each([[long], [[{ text: long }]]])(
  "a result above the limit becomes a page that says that it is no error",
  async (content) => {
    const { store, hook } = open();
    const answer = await hook(eventOf(content));
    expect(answer).toEqual({
      decision: "deny",
      reason: expect.stringMatching(/^\[The tool ran\.[\s\S]*\[[a-z2-7]{4}: The whole result has 2,000 lines/),
    });
    expect(await listPluginSessions(store, "gemini-cli")).toMatchObject([{ results: 1, pages: 1 }]);
  },
);

test("what is short, repeated, an image or of an unknown shape stays as it is", async () => {
  const { hook } = open();
  const short = long.slice(0, 4_000);
  for (const content of [short, short, [{ inlineData: {} }], [{ text: long }, { text: "b" }], undefined, 7]) {
    expect(await hook(eventOf(content))).toBeUndefined();
  }
  expect(await hook({})).toBeUndefined();
});
