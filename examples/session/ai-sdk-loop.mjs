/** A session's tools in the loop of the AI SDK. Offline: the model is scripted.
 *
 *    node examples/session/ai-sdk-loop.mjs
 */
// @ts-check
import { dynamicTool, generateText, jsonSchema, stepCountIs } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { openSession } from "./project.mjs";

const session = await openSession();
const tools = Object.fromEntries(
  session.toolSchemas().map(({ name, description, inputSchema }) => [
    name,
    dynamicTool({
      description,
      inputSchema: jsonSchema(inputSchema),
      execute: async (input) => (await session.call(name, /** @type {Record<string, unknown>} */ (input))).text,
    }),
  ]),
);

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};
/** Asks for a file and follows the notes to its end. */
const model = new MockLanguageModelV3({
  async doGenerate({ prompt }) {
    const results = prompt.flatMap((message) => (message.role === "tool" ? message.content : []));
    const next = /next: offset=(\d+)/.exec(JSON.stringify(results.at(-1) ?? ""))?.[1];
    if (results.length > 0 && next === undefined) {
      const text = `Read long.ts in ${results.length} pages.`;
      return { content: [{ type: "text", text }], finishReason: { unified: "stop", raw: "stop" }, usage, warnings: [] };
    }
    const input = JSON.stringify({ path: "long.ts", offset: Number(next ?? 0) });
    const toolCallId = `call-${results.length}`;
    return {
      content: [{ type: "tool-call", toolCallId, toolName: "read_file", input }],
      finishReason: { unified: "tool-calls", raw: "tool-calls" },
      usage,
      warnings: [],
    };
  },
});

const { text } = await generateText({ model, tools, prompt: "Read long.ts.", stopWhen: stepCountIs(20) });
console.log(text, session.status().summary);
