/** An agent of the OpenAI Agents SDK, without a budget and with one: `node openai-agents.mjs`. Offline: the API is scripted. */
import { Agent, OpenAIResponsesModel, run, setTracingDisabled, tool } from "@openai/agents";
import OpenAI from "openai";
import { budgetedFetch } from "plimsoll/fetch";
import { z } from "zod";
import { contextWindow, onTrim, readFile, report, scriptedApi } from "./scripted-api.mjs";

setTracingDisabled(true);

async function attempt(name, wrap) {
  const api = scriptedApi();
  const client = new OpenAI({ apiKey: "offline", maxRetries: 0, fetch: wrap(api.fetch) });
  const agent = new Agent({
    name: "Bug finder",
    instructions: "You look for bugs.",
    model: new OpenAIResponsesModel(client, "gpt-5"),
    tools: [
      tool({
        name: "read_file",
        description: "Reads a file of the project.",
        parameters: z.object({ path: z.string() }),
        execute: async ({ path }) => readFile(path),
      }),
    ],
  });
  const outcome = await run(agent, "Where is the bug?", { maxTurns: 50 }).then(
    ({ finalOutput }) => finalOutput,
    (error) => error.message,
  );
  report(name, api, outcome);
}

await attempt("without a budget", (fetch) => fetch);
await attempt("with a budget", (fetch) => budgetedFetch(fetch, { contextWindow, onTrim }));
