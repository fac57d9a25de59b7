/** An agent of LangChain on Anthropic's and on OpenAI's models, without a budget and with one: `node langchain.mjs`. Offline: the API is
 *  scripted. */
import { ChatAnthropic } from "@langchain/anthropic";
import { ChatOpenAI } from "@langchain/openai";
import { createAgent, tool } from "langchain";
import { budgetedFetch } from "plimsoll/fetch";
import { z } from "zod";
import { contextWindow, onTrim, readFile, report, scriptedApi } from "./scripted-api.mjs";

const tools = [
  tool(({ path }) => readFile(path), {
    name: "read_file",
    description: "Reads a file of the project.",
    schema: z.object({ path: z.string() }),
  }),
];

const models = {
  anthropic: (fetch) =>
    new ChatAnthropic({ model: "claude-sonnet-5", apiKey: "offline", maxRetries: 0, clientOptions: { fetch } }),
  openai: (fetch) => new ChatOpenAI({ model: "gpt-5", apiKey: "offline", maxRetries: 0, configuration: { fetch } }),
};

async function attempt(name, createModel, wrap) {
  const api = scriptedApi();
  const agent = createAgent({ model: createModel(wrap(api.fetch)), tools, systemPrompt: "You look for bugs." });
  const question = { messages: [{ role: "user", content: "Where is the bug?" }] };
  const outcome = await agent.invoke(question, { recursionLimit: 200 }).then(
    ({ messages }) => messages.at(-1).text,
    (error) => error.message.split("\n")[0],
  );
  report(name, api, outcome);
}

for (const [name, createModel] of Object.entries(models)) {
  await attempt(`${name} without a budget`, createModel, (fetch) => fetch);
  await attempt(`${name} with a budget`, createModel, (fetch) => budgetedFetch(fetch, { contextWindow, onTrim }));
}
