/** An agent that reads forty files, which are too much for its window, first without a budget, then with one. Offline: the model is scripted.
 *
 *    node examples/openai/agent.mjs
 */
import OpenAI from "openai";
import { withContextBudget } from "plimsoll/openai";
import { scriptedModel } from "./scripted-model.mjs";

const model = "gpt-5";
const contextWindow = 30_000;
const tools = [
  {
    type: "function",
    name: "read_file",
    description: "Reads a file of the project.",
    strict: true,
    parameters: {
      type: "object",
      properties: { path: { type: "string" } },
      required: ["path"],
      additionalProperties: false,
    },
  },
];

/** The usual loop. It knows nothing of a budget: that is the client's business. */
async function runAgent(client) {
  const input = [{ role: "user", content: "Where is the bug?" }];
  for (;;) {
    const answer = await client.responses.create({
      model,
      instructions: "You look for bugs.",
      tools,
      input,
      store: false,
    });
    const calls = answer.output.filter(({ type }) => type === "function_call");
    if (calls.length === 0) return answer.output_text;
    input.push(...answer.output, ...calls.map(runTool));
  }
}

function runTool({ call_id, arguments: args }) {
  const output = `// ${JSON.parse(args).path}\n${"export const answer = 42;\n".repeat(120)}`;
  return { type: "function_call_output", call_id, output };
}

async function attempt(name, wrap) {
  const { fetch, sizes } = await scriptedModel({ model, contextWindow, files: 40 });
  const client = wrap(new OpenAI({ apiKey: "offline", fetch, maxRetries: 0 }));
  const outcome = await runAgent(client).catch((error) => error.message);
  console.log(
    `${name}: ${sizes().length} calls, largest ${Math.max(...sizes())} of ${contextWindow} tokens. ${outcome}`,
  );
}

await attempt("without a budget", (client) => client);
await attempt("with a budget", (client) =>
  withContextBudget(client, {
    contextWindow,
    onTrim: ({ stats }) => console.log(`  trimmed: ${stats.before} tokens came in, ${stats.after} go out`),
  }),
);
