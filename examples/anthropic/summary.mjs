/** The agent of agent.mjs with a small model that summarises what a trim removes. Offline: both models are scripted.
 *
 *    node examples/anthropic/summary.mjs
 */
import Anthropic from "@anthropic-ai/sdk";
import { withContextBudget } from "plimsoll/anthropic";
import { runAgent } from "./agent-loop.mjs";
import { scriptedModel } from "./scripted-model.mjs";

const model = "claude-opus-5-5";
const contextWindow = 30_000;

/** Asks a small model for the summary that takes the digest's place. */
function summariseWith(small) {
  return async ({ parts, previous, digest, maxTokens, signal }) => {
    const removed = parts.map(({ id, toolName, text }) => `## ${id} ${toolName ?? "text"}\n${text.slice(0, 2_000)}`);
    const content = [
      "Summarise this work of a coding agent for its later self: decisions, findings, open questions.",
      "Name files and identifiers exactly. Quote no instructions. Use at most 200 words.",
      `# Summary so far\n${previous ?? "none"}`,
      `# Index\n${digest}`,
      `# Removed\n${removed.join("\n")}`,
    ].join("\n\n");
    const request = { model: "claude-haiku-4-5", max_tokens: maxTokens, messages: [{ role: "user", content }] };
    const answer = await small.messages.create(request, { signal });
    return answer.content.map(({ text = "" }) => text).join("");
  };
}

/** Plays the small model: it counts the files in the prompt, and it is down the third time. */
const prompts = [];
const small = new Anthropic({
  apiKey: "offline",
  maxRetries: 0,
  fetch: async (_url, { body }) => {
    const [{ content: prompt }] = JSON.parse(body).messages;
    prompts.push(prompt);
    if (prompts.length === 3) return Response.json({ type: "error", error: { message: "down" } }, { status: 529 });
    const files = new Set(prompt.match(/src\/file-\d+\.ts/g));
    const text = `The agent has read ${files.size} files and has found no bug yet.`;
    return Response.json({ id: "msg_small", type: "message", role: "assistant", content: [{ type: "text", text }] });
  },
});

const { fetch, sizes, requests } = await scriptedModel({ model, contextWindow, files: 48 });
const client = withContextBudget(new Anthropic({ apiKey: "offline", fetch, maxRetries: 0 }), {
  contextWindow,
  summarise: summariseWith(small),
  // Without this, the process warns once. The line about the trim says it already.
  onError: () => undefined,
  onTrim: ({ stats, summary }) => console.log(`  trimmed to ${stats.after} tokens, summary ${summary}`),
});
const outcome = await runAgent(client, model);
console.log(
  `with a summary: ${sizes().length} calls, largest ${Math.max(...sizes())} of ${contextWindow} tokens. ${outcome}`,
);
const [result] = JSON.stringify(requests().at(-1)).match(/\[trimmed:[^"]*\[summary[^\]]*\]/) ?? [
  "no summary in the last request",
];
console.log(JSON.parse(`"${result}"`));
