/** An agent of the AI SDK 6 or 7 on Anthropic's provider: without a budget, with `budgetedFetch`, and with the middleware: `node ai-sdk.mjs`.
 *  Offline: the API is scripted. */
import { createAnthropic } from "@ai-sdk/anthropic";
import { generateText, stepCountIs, tool, wrapLanguageModel } from "ai";
import { contextBudgetMiddleware } from "plimsoll/ai-sdk";
import { budgetedFetch } from "plimsoll/fetch";
import { z } from "zod";
import { contextWindow, onTrim, readFile, report, scriptedApi } from "./scripted-api.mjs";

const read_file = tool({
  description: "Reads a file of the project.",
  inputSchema: z.object({ path: z.string() }),
  execute: async ({ path }) => readFile(path),
});

async function attempt(name, { wrapFetch = (fetch) => fetch, wrapModel = (model) => model }) {
  const api = scriptedApi();
  const anthropic = createAnthropic({ apiKey: "offline", fetch: wrapFetch(api.fetch) });
  const outcome = await generateText({
    model: wrapModel(anthropic("claude-sonnet-5")),
    prompt: "Where is the bug?",
    tools: { read_file },
    stopWhen: stepCountIs(50),
    maxRetries: 0,
  }).then(
    ({ text }) => text,
    (error) => error.message,
  );
  report(name, api, outcome);
  console.log(`  requests with cache markers: ${api.markers()}`);
}

await attempt("without a budget", {});
await attempt("with budgetedFetch", { wrapFetch: (fetch) => budgetedFetch(fetch, { contextWindow, onTrim }) });
await attempt("with the middleware", {
  wrapModel: (model) => wrapLanguageModel({ model, middleware: contextBudgetMiddleware({ contextWindow, onTrim }) }),
});
