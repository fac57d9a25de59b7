/** An agent of Mastra on Anthropic's provider, without a budget and with one: `node mastra.mjs`. Offline: the API is scripted. */
import { createAnthropic } from "@ai-sdk/anthropic";
import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { budgetedFetch } from "plimsoll/fetch";
import { z } from "zod";
import { contextWindow, onTrim, readFile, report, scriptedApi } from "./scripted-api.mjs";

const read_file = createTool({
  id: "read_file",
  description: "Reads a file of the project.",
  inputSchema: z.object({ path: z.string() }),
  execute: async (input) => readFile((input.context ?? input).path),
});

async function attempt(name, wrap) {
  const api = scriptedApi();
  const anthropic = createAnthropic({ apiKey: "offline", fetch: wrap(api.fetch) });
  const agent = new Agent({
    id: "bug-finder",
    name: "bug-finder",
    instructions: "You look for bugs.",
    model: anthropic("claude-sonnet-5"),
    tools: { read_file },
  });
  const outcome = await agent.generate("Where is the bug?", { maxSteps: 50, modelSettings: { maxRetries: 0 } }).then(
    ({ text, error }) => error?.message ?? text,
    (error) => error.message,
  );
  report(name, api, outcome);
}

await attempt("without a budget", (fetch) => fetch);
await attempt("with a budget", (fetch) => budgetedFetch(fetch, { contextWindow, onTrim }));
