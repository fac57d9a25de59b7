/** An agent whose tools share one token budget. It reads until the budget warns it, then finishes. Offline: the model is scripted.
 *
 *    node examples/session/agent.mjs
 */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createBudgetHook, createContextHook, createHookRegistry } from "plimsoll/agent";
import { createSession } from "plimsoll/session";
import { createTools } from "plimsoll/tools";

/** Reads one file after the other until the system prompt has a warning. It sees only `llmInput`, as a provider would. */
function infer({ messages: [system, ...rest] }) {
  const read = rest.filter(({ role }) => role === "tool").length;
  if (system.content.includes("[Budget "))
    return [{ type: "text", text: `Read ${read} files, then the budget was low.` }];
  return [{ type: "tool_use", id: `c${read}`, name: "read_file", args: { path: `src/file-${read}.ts` } }];
}

async function runTool(session, { id, name, args }) {
  const { text } = await session.call(name, args, { note: `looking for the bug, ${id}` });
  return { type: "tool_result", tool_use_id: id, content: text };
}

async function runAgent(session, state) {
  const hooks = createHookRegistry();
  for (const hook of [createBudgetHook(session), createContextHook()]) hooks.register("before_inference", hook);
  const context = { model: { limit: { context: 200_000 } }, state };
  for (;;) {
    await hooks.run("before_inference", context);
    const content = infer(state.llmInput);
    state.messages = [...state.messages, { role: "assistant", content }];
    const calls = content.filter(({ type }) => type === "tool_use");
    if (calls.length === 0) return content[0].text;
    const results = await Promise.all(calls.map((call) => runTool(session, call)));
    state.messages = [...state.messages, { role: "tool", content: results }];
  }
}

const root = await mkdtemp(join(tmpdir(), "session-"));
await mkdir(join(root, "src"));
for (let file = 0; file < 40; file += 1) {
  await writeFile(join(root, "src", `file-${file}.ts`), "export const answer = 42;\n".repeat(400));
}
const session = await createSession({
  tools: createTools({ root }),
  hints: "schema",
  format: "text",
  model: "claude-sonnet-5",
  now: Date.now,
});
const state = { messages: [{ role: "user", content: "Where is the bug?" }], systemPrompt: "You look for bugs." };
console.log(await runAgent(session, state));
console.log(state.systemPrompt);
console.log(session.status().summary);
await session.beginTurn();
console.log(session.status().summary);
await rm(root, { recursive: true });
