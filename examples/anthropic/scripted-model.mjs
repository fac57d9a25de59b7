/** Stands in for the Messages API: asks for one file after the other, then is done. Like the real one, it refuses what is too long for its
 *  window, and tells in `usage` how many tokens a request had. */
import { countMessages, countTools } from "plimsoll/messages";
import { createCounter } from "plimsoll/tokens";

export async function scriptedModel({ model, contextWindow, files }) {
  const counter = await createCounter("auto", { model });
  const sizes = [];
  const requests = [];
  const fetch = async (_url, { body }) => {
    const { system, messages, tools } = JSON.parse(body);
    const prompt = [{ role: "system", content: system }, ...messages];
    const format = "anthropic";
    const tokens = countMessages(prompt, counter, { format }) + countTools(tools, counter, { format, model });
    if (tokens > contextWindow) return refusal(tokens, contextWindow);
    sizes.push(tokens);
    requests.push(messages);
    return Response.json(answer(sizes.length, tokens, files));
  };
  return { fetch, sizes, requests };
}

function refusal(tokens, contextWindow) {
  const message = `prompt is too long: ${tokens} tokens > ${contextWindow} maximum`;
  return Response.json({ type: "error", error: { type: "invalid_request_error", message } }, { status: 400 });
}

function answer(call, tokens, files) {
  const isDone = call > files;
  const content = isDone
    ? [{ type: "text", text: "The bug is in src/file-7.ts." }]
    : [{ type: "tool_use", id: `toolu_${call}`, name: "read_file", input: { path: `src/file-${call}.ts` } }];
  const usage = { input_tokens: tokens, output_tokens: 40 };
  const stop_reason = isDone ? "end_turn" : "tool_use";
  return { id: `msg_${call}`, type: "message", role: "assistant", content, stop_reason, usage };
}
