/** An agent that reads forty files, which are too much for its window, first without a budget, then with one. Offline: the model is scripted.
 *
 *    node examples/anthropic/agent.mjs
 */
import Anthropic from "@anthropic-ai/sdk";
import { withContextBudget } from "plimsoll/anthropic";
import { scriptedModel } from "./scripted-model.mjs";

const model = "claude-sonnet-5";
const contextWindow = 30_000;
const tools = [
  {
    name: "read_file",
    description: "Reads a file of the project.",
    input_schema: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
  },
];

/** The usual loop. It knows nothing of a budget: that is the client's business. */
async function runAgent(client) {
  const messages = [{ role: "user", content: "Where is the bug?" }];
  for (;;) {
    const answer = await client.messages.create({
      model,
      max_tokens: 1_000,
      system: "You look for bugs.",
      tools,
      messages,
      cache_control: { type: "ephemeral" },
    });
    messages.push({ role: "assistant", content: answer.content });
    const calls = answer.content.filter(({ type }) => type === "tool_use");
    if (calls.length === 0) return answer.content[0].text;
    messages.push({ role: "user", content: calls.map(runTool) });
  }
}

function runTool({ id, input }) {
  const content = `// ${input.path}\n${"export const answer = 42;\n".repeat(120)}`;
  return { type: "tool_result", tool_use_id: id, content };
}

async function attempt(name, wrap) {
  const { fetch, sizes } = await scriptedModel({ model, contextWindow, files: 40 });
  const client = wrap(new Anthropic({ apiKey: "offline", fetch, maxRetries: 0 }));
  const outcome = await runAgent(client).catch((error) => `${error.status} ${error.error.error.message}`);
  console.log(
    `${name}: ${sizes.length} calls, largest ${Math.max(...sizes)} of ${contextWindow} tokens. ${outcome}`,
  );
}

await attempt("without a budget", (client) => client);
await attempt("with a budget", (client) =>
  withContextBudget(client, {
    contextWindow,
    onTrim: ({ stats }) => console.log(`  trimmed: ${stats.before} tokens came in, ${stats.after} go out`),
  }),
);
