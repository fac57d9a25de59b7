/** A session's tools in the usual loop of OpenAI's SDK. Offline: the model is scripted.
 *
 *    node examples/session/openai-loop.mjs
 */
// @ts-check
import OpenAI from "openai";
import { openSession, scriptedModel } from "./project.mjs";

const session = await openSession();
const client = new OpenAI({ apiKey: "offline", fetch: scriptedModel().fetch, maxRetries: 0 });
/** @type {OpenAI.ChatCompletionTool[]} */
const tools = session.toolSchemas().map(({ name, description, inputSchema }) => ({
  type: "function",
  function: { name, description, parameters: { ...inputSchema } },
}));
/** @type {OpenAI.ChatCompletionMessageParam[]} */
const messages = [{ role: "user", content: "Read long.ts." }];
for (;;) {
  const { choices } = await client.chat.completions.create({ model: "gpt-5", tools, messages });
  const message = choices[0]?.message;
  if (message === undefined) throw new Error("the model sent no message");
  messages.push(message);
  const calls = (message.tool_calls ?? []).filter((call) => call.type === "function");
  if (calls.length === 0) break;
  for (const { id, function: asked } of calls) {
    const { text } = await session.call(asked.name, JSON.parse(asked.arguments));
    messages.push({ role: "tool", tool_call_id: id, content: text });
  }
}
console.log(messages.at(-1)?.content, session.status().summary);
