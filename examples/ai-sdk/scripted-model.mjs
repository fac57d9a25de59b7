/** Stands in for a provider of the AI SDK: asks for one file after the other, then is done. Like a real one, it refuses what is too long for
 *  its window, and tells in `usage` how many tokens a request had. */
import { countMessages, countTools } from "plimsoll/messages";
import { createCounter } from "plimsoll/tokens";

export async function scriptedModel({ modelId, contextWindow, files }) {
  const counter = await createCounter("auto", { model: modelId });
  const sizes = [];
  const doGenerate = async ({ prompt, tools }) => {
    const options = { format: "ai-sdk", model: modelId };
    const tokens = countMessages(prompt, counter, options) + countTools(tools, counter, options);
    if (tokens > contextWindow) {
      throw new Error(`prompt is too long: ${tokens} tokens > ${contextWindow} maximum`);
    }
    sizes.push(tokens);
    return answer(sizes.length, tokens, files);
  };
  const model = { specificationVersion: "v3", provider: "scripted", modelId, supportedUrls: {}, doGenerate };
  return { model, sizes };
}

function answer(call, tokens, files) {
  const isDone = call > files;
  const content = isDone
    ? { type: "text", text: "The bug is in src/file-7.ts." }
    : {
        type: "tool-call",
        toolCallId: `call_${call}`,
        toolName: "readFile",
        input: JSON.stringify({ path: `src/file-${call}.ts` }),
      };
  const unified = isDone ? "stop" : "tool-calls";
  const usage = { inputTokens: { total: tokens }, outputTokens: { total: 40 } };
  return { content: [content], finishReason: { unified, raw: unified }, usage, warnings: [] };
}
