/** A session that is stored, and resumed by another process, sends the same bytes as one that never stopped. */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { build } from "rolldown";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createContextHook } from "./context-hook.ts";
import type { AgentState } from "./hook-context.ts";
import { createHookRegistry } from "./hook-registry.ts";

const root = mkdtempSync(join(tmpdir(), "plimsoll-resume-"));
const bundle = join(root, "agent.mjs");
const limit = 24_000;

/** The child does what an agent does after a restart: read the checkpoint, append the next turn, run the hooks. */
const child = `
import { readFileSync } from "node:fs";
const [bundle, checkpoint, turn] = process.argv.slice(-3);
const { createContextHook, createHookRegistry } = await import(bundle);
const state = JSON.parse(readFileSync(checkpoint, "utf8"));
state.messages = [...state.messages, ...JSON.parse(readFileSync(turn, "utf8"))];
const registry = createHookRegistry();
registry.register("before_inference", createContextHook());
await registry.run("before_inference", { model: { limit: { context: ${limit} } }, state });
process.stdout.write(JSON.stringify(state));
`;

// Bundled here and not taken from dist/: the child runs the sources of this very run. Packages are loaded only where they are
// needed, which is nowhere here.
beforeAll(async () => {
  const input = fileURLToPath(new URL("../index.ts", import.meta.url));
  const output = { dir: root, entryFileNames: "agent.mjs", chunkFileNames: "[name]-[hash].mjs" };
  await build({ input, output, external: /^[^./]/, platform: "node", logLevel: "silent" });
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

function turn(index: number): object[] {
  return [
    { role: "user", content: `question ${index} 😀 \ud83d` },
    {
      role: "assistant",
      content: [
        { type: "text", text: "é".repeat(200) },
        { type: "tool_use", id: `c${index}`, name: "ls", args: { index } },
      ],
    },
    {
      role: "tool",
      content: [
        { type: "tool_result", tool_use_id: `c${index}`, content: "x".repeat(index % 2 === 0 ? 3_000 : 30) },
      ],
    },
    { role: "assistant", content: `<checkpoint_id>cp-${index}</checkpoint_id>\nanswer ${index}` },
  ];
}

async function infer(state: AgentState): Promise<string> {
  const registry = createHookRegistry();
  registry.register("before_inference", createContextHook());
  await registry.run("before_inference", { model: { limit: { context: limit } }, state });
  return JSON.stringify(state);
}

async function resume(checkpoint: string, messages: readonly object[]): Promise<string> {
  const files = [join(root, "checkpoint.json"), join(root, "turn.json")] as const;
  writeFileSync(files[0], checkpoint);
  writeFileSync(files[1], JSON.stringify(messages));
  const args = ["--input-type=module", "-e", child, "--", pathToFileURL(bundle).href, ...files];
  const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 64 << 20 });
  return stdout;
}

test("a checkpoint resumed in a new process gives the same bytes, at rest and when the boundary moves", async () => {
  const state: AgentState = {
    messages: [],
    systemPrompt: "Be brief.",
    tools: [{ name: "ls", input_schema: {} }],
  };
  const boundaries: (number | undefined)[] = [];
  for (let index = 0; index < 18; index++) {
    const checkpoint = JSON.stringify(state);
    state.messages = [...state.messages, ...turn(index)];
    const here = await infer(state);
    boundaries.push(state.metadata?.trimmed_up_to_message_index);
    if (index >= 8) expect(await resume(checkpoint, turn(index))).toBe(here);
  }
  const resumed = boundaries.slice(8);
  expect(resumed[0]).toBeUndefined();
  expect(resumed.some((each, index) => each !== undefined && each === resumed[index - 1])).toBe(true);
  expect(new Set(resumed).size).toBeGreaterThan(2);
});
