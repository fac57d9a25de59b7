/** An agent with lifecycle hooks that is stopped in the middle of its work and resumes from a checkpoint. Offline: the model is scripted.
 *
 *    node examples/hooks/agent.mjs
 */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createDefaultHooks } from "plimsoll/agent";
import { estimateTokens } from "plimsoll/history";

const model = { limit: { context: 30_000 } };
const tools = [{ name: "read_file", description: "Reads a file.", input_schema: { type: "object" } }];
const files = 40;

/** Asks for one file after the other, then is done. It sees only `llmInput`, as a provider would. */
function infer({ messages }) {
  const read = messages.filter(({ role }) => role === "tool").length;
  if (read >= files) return [{ type: "text", text: "The bug is in src/file-7.ts." }];
  return [{ type: "tool_use", id: `c${read}`, name: "read_file", args: { path: `src/file-${read}.ts` } }];
}

function runTool({ id, args }) {
  return {
    type: "tool_result",
    tool_use_id: id,
    content: `// ${args.path}\n${"export const answer = 42;\n".repeat(120)}`,
  };
}

/** The loop: every step of the agent's life calls its hooks. A hook that returns "stop" ends it. */
async function runAgent(state, hooks) {
  const context = { model, state };
  await hooks.run("session_start", context);
  while ((await hooks.run("before_inference", context)) === "continue") {
    const content = infer(state.llmInput);
    state.messages = [...state.messages, { role: "assistant", content }];
    if ((await hooks.run("after_inference", context)) === "stop") break;
    const calls = content.filter(({ type }) => type === "tool_use");
    if (calls.length === 0) break;
    if ((await hooks.run("before_tool", context)) === "stop") break;
    state.messages = [...state.messages, { role: "tool", content: calls.map(runTool) }];
    await hooks.run("after_tool", context);
  }
  await hooks.run("session_end", context);
  return state;
}

/** The default hooks, a checkpoint after each tool, and a limit of calls, which plays the crash. */
function createHooks(file, mostCalls, sent) {
  const hooks = createDefaultHooks();
  hooks.register("before_inference", ({ state }) => {
    sent.push(state.llmInput.messages);
    return sent.length > mostCalls ? "stop" : "continue";
  });
  hooks.register("after_tool", async ({ state: { llmInput, ...saved } }) => {
    await writeFile(file, JSON.stringify(saved));
  });
  return hooks;
}

async function attempt(name, state, hooks, sent) {
  const before = state.messages.length;
  const { messages, metadata } = await runAgent(state, hooks);
  const largest = Math.max(...sent.map(estimateTokens));
  console.log(
    `${name}: ${before} to ${messages.length} messages, largest request ${largest} tokens, ${JSON.stringify(metadata)}`,
  );
}

const folder = await mkdtemp(join(tmpdir(), "hooks-"));
const file = join(folder, "checkpoint.json");
const start = { messages: [{ role: "user", content: "Where is the bug?" }], systemPrompt: "You look for bugs.", tools };

const whole = [];
await attempt("without a stop", structuredClone(start), createHooks(file, 1_000, whole), whole);
const first = [];
await attempt("stopped", structuredClone(start), createHooks(file, 25, first), first);
const second = [];
await attempt("resumed", JSON.parse(await readFile(file, "utf8")), createHooks(file, 1_000, second), second);
const isSame = JSON.stringify([...first.slice(0, 25), ...second]) === JSON.stringify(whole);
console.log(`the ${whole.length} requests are the same with and without the stop: ${isSame}`);
await rm(folder, { recursive: true });
