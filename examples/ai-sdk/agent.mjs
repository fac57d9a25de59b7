/** An agent that reads forty files, which are too much for its window: first without a budget, then with the middleware, then with the
 *  `prepareStep` helper. Offline: the model is scripted.
 *
 *    node examples/ai-sdk/agent.mjs
 */
import { generateText, jsonSchema, stepCountIs, tool, wrapLanguageModel } from "ai";
import { contextBudgetMiddleware, contextBudgetPrepareStep } from "plimsoll/ai-sdk";
import { scriptedModel } from "./scripted-model.mjs";

const contextWindow = 30_000;
const readFile = tool({
  description: "Reads a file of the project.",
  inputSchema: jsonSchema({ type: "object", properties: { path: { type: "string" } }, required: ["path"] }),
  execute: async ({ path }) => `// ${path}\n${"export const answer = 42;\n".repeat(120)}`,
});

async function attempt(name, settingsFor) {
  const { model, sizes } = await scriptedModel({ modelId: "claude-sonnet-5", contextWindow, files: 40 });
  const outcome = await generateText({
    system: "You look for bugs.",
    prompt: "Where is the bug?",
    tools: { readFile },
    stopWhen: stepCountIs(50),
    maxRetries: 0,
    ...settingsFor(model),
  }).then(
    ({ text }) => text,
    (error) => error.message,
  );
  console.log(`${name}: ${sizes.length} calls, largest ${Math.max(...sizes)} of ${contextWindow} tokens. ${outcome}`);
}

const options = {
  contextWindow,
  onTrim: ({ stats }) => console.log(`  trimmed: ${stats.before} tokens came in, ${stats.after} go out`),
};
await attempt("without a budget", (model) => ({ model }));
await attempt("with the middleware", (model) => ({
  model: wrapLanguageModel({ model, middleware: contextBudgetMiddleware(options) }),
}));
await attempt("with prepareStep", (model) => ({ model, prepareStep: contextBudgetPrepareStep(options) }));
