/** A session's tools in the usual loop of Anthropic's SDK. Offline: the model is scripted.
 *
 *    node examples/session/anthropic-loop.mjs
 */
// @ts-check
import Anthropic from "@anthropic-ai/sdk";
import { openSession, scriptedModel } from "./project.mjs";

const session = await openSession();
const client = new Anthropic({ apiKey: "offline", fetch: scriptedModel().fetch, maxRetries: 0 });
const tools = session
  .toolSchemas()
  .map(({ name, description, inputSchema }) => ({ name, description, input_schema: inputSchema }));
/** @type {Anthropic.MessageParam[]} */
const messages = [{ role: "user", content: "Read long.ts." }];
for (;;) {
  const answer = await client.messages.create({ model: "claude-opus-5-5", max_tokens: 1_000, tools, messages });
  messages.push({ role: "assistant", content: answer.content });
  const calls = answer.content.filter((block) => block.type === "tool_use");
  if (calls.length === 0) {
    for (const block of answer.content) if (block.type === "text") console.log(block.text, session.status().summary);
    break;
  }
  /** @type {Anthropic.ToolResultBlockParam[]} */
  const results = await Promise.all(
    calls.map(async ({ id, name, input }) => {
      const { text, envelope } = await session.call(name, /** @type {Record<string, unknown>} */ (input));
      return { type: "tool_result", tool_use_id: id, content: text, is_error: envelope.status === "error" };
    }),
  );
  messages.push({ role: "user", content: results });
}
