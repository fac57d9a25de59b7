/** Stands in for the Responses API: asks for one file after the other, then is done. Like the real one, it refuses what is too long for its
 *  window, and tells in `usage` how many tokens a request had. */
import { countMessages, countTools } from "plimsoll/messages";
import { createCounter } from "plimsoll/tokens";

export async function scriptedModel({ model, contextWindow, files }) {
  const counter = await createCounter("auto", { model });
  const sizes = [];
  const fetch = async (_url, { body }) => {
    const { instructions, input, tools } = JSON.parse(body);
    const prompt = [{ role: "developer", content: instructions }, ...input];
    const format = "responses";
    const tokens = countMessages(prompt, counter, { format }) + countTools(tools, counter, { format, model });
    if (tokens > contextWindow) return refusal(tokens, contextWindow);
    sizes.push(tokens);
    return Response.json(answer(sizes.length, tokens, files));
  };
  return { fetch, sizes };
}

function refusal(tokens, contextWindow) {
  const message = `${tokens} tokens exceed the context window of ${contextWindow}`;
  return Response.json({ error: { code: "context_length_exceeded", message } }, { status: 400 });
}

function answer(call, tokens, files) {
  const text = { type: "output_text", text: "The bug is in src/file-7.ts.", annotations: [] };
  const output =
    call > files
      ? [{ type: "message", id: `msg_${call}`, role: "assistant", status: "completed", content: [text] }]
      : [{ type: "function_call", call_id: `call_${call}`, name: "read_file", arguments: argumentsOf(call) }];
  const usage = { input_tokens: tokens, output_tokens: 40, total_tokens: tokens + 40 };
  return { id: `resp_${call}`, object: "response", status: "completed", output, usage };
}

function argumentsOf(call) {
  return JSON.stringify({ path: `src/file-${call}.ts` });
}
