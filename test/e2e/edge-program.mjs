/** Uses every door that needs no disk. Tests run it in Node and where there is no Node, and compare what it returns. */
import { contextBudgetPrepareStep } from "plimsoll/ai-sdk";
import { withContextBudget as withAnthropicBudget } from "plimsoll/anthropic";
import { budgetedFetch } from "plimsoll/fetch";
import { createTrimmer } from "plimsoll/history";
import { withContextBudget as withOpenAiBudget } from "plimsoll/openai";
import { createCounter } from "plimsoll/tokens";

export async function runDoors() {
  const trimmer = await createTrimmer({ contextWindow: 20_000, model: "claude-sonnet-5" });
  const reduced = trimmer.reduce({ messages: anthropicMessages(40) });
  const posted = [];
  const client = { post: async (path, options) => posted.push([path, (await options).body]) };
  const settings = { contextWindow: 20_000, reserve: 2_000, intake: true };
  const body = { model: "claude-sonnet-5", max_tokens: 2_000, messages: anthropicMessages(40) };
  await withAnthropicBudget(client, settings).post("/v1/messages", { body });
  await withOpenAiBudget(client, settings).post("/chat/completions", {
    body: { model: "gpt-5", messages: openAiMessages(40) },
  });
  const fetched = [];
  const fetch = budgetedFetch(async (_, init) => {
    fetched.push(init.body);
    return new Response(JSON.stringify({ usage: { input_tokens: 9_000, output_tokens: 10 } }));
  }, settings);
  await fetch("https://api.anthropic.com/v1/messages", { method: "POST", body: JSON.stringify(body) });
  const step = contextBudgetPrepareStep({ ...settings, model: "gpt-5" });
  const image = { type: "image", image: Uint8Array.of(137, 80, 78, 71) };
  const messages = [1, 2, 3].flatMap((turn) => [
    { role: "user", content: [image, { type: "text", text: fileText(turn) }] },
    { role: "assistant", content: [{ type: "text", text: "Read." }] },
  ]);
  const prepared = await step({ messages, steps: [], model: "gpt-5", stepNumber: 0 });
  const counts = {};
  for (const name of ["bytes/4", "estimate:o200k", "estimate:claude-5"])
    counts[name] = (await createCounter(name)).count(odd);
  return JSON.stringify({ reduced, posted, fetched, prepared, counts });
}

/** Returns a count, or the code of the error where the counter is missing. */
export async function countExactly() {
  return createCounter("exact:o200k").then(
    (counter) => counter.count(odd),
    ({ code }) => code,
  );
}

const odd = "Hello, wörld! 你好 😀 \ud800 https://example.com/a?b=c\n\tconst x = 1;\n".repeat(20);

function anthropicMessages(turns) {
  const messages = [{ role: "user", content: "Why is the büild slow? 😀" }];
  for (let turn = 0; turn < turns; turn++) {
    const id = `call_${turn}`;
    const input = { path: `src/${turn}.ts` };
    messages.push({ role: "assistant", content: [{ type: "tool_use", id, name: "read", input }] });
    messages.push({ role: "user", content: [{ type: "tool_result", tool_use_id: id, content: fileText(turn) }] });
  }
  return messages;
}

function openAiMessages(turns) {
  const messages = [{ role: "user", content: "Why is the büild slow? 😀" }];
  for (let turn = 0; turn < turns; turn++) {
    const call = { id: `call_${turn}`, type: "function", function: { name: "read", arguments: `{"path":"${turn}"}` } };
    messages.push({ role: "assistant", content: null, tool_calls: [call] });
    messages.push({ role: "tool", tool_call_id: call.id, content: fileText(turn) });
  }
  return messages;
}

function fileText(turn) {
  return `export const value${turn} = "é${turn}"; // a line of this file\n`.repeat(90);
}
