/** An agent that reads forty files, which are too much for its window, first without a budget, then with one. Offline: the model is scripted.
 *
 *    node examples/anthropic/agent.mjs
 */
import Anthropic from "@anthropic-ai/sdk";
import { withContextBudget } from "plimsoll/anthropic";
import { runAgent } from "./agent-loop.mjs";
import { scriptedModel } from "./scripted-model.mjs";

const model = "claude-opus-5-5";
const contextWindow = 30_000;

async function attempt(name, wrap) {
  const { fetch, sizes } = await scriptedModel({ model, contextWindow, files: 40 });
  const client = wrap(new Anthropic({ apiKey: "offline", fetch, maxRetries: 0 }));
  const outcome = await runAgent(client, model).catch((error) => `${error.status} ${error.error.error.message}`);
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
