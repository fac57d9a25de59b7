/** Stands in for the APIs of Anthropic and OpenAI: asks for one file after the other, then is done. Like the real ones, it refuses what is
 *  too long for its window, and reports in `usage` how many tokens a request had. */
import { countMessages, countTools } from "plimsoll/messages";
import { createCounter } from "plimsoll/tokens";

const counter = await createCounter("auto", { model: "claude-sonnet-5" });
export const contextWindow = 30_000;
const files = 40;

export function scriptedApi() {
  const sizes = [];
  let markers = 0;
  const fetch = async (url, init) => {
    const api = apis.find(({ path }) => String(url).includes(path));
    const body = JSON.parse(await new Response(init.body).text());
    const tokens = sizeOf(body, api.format);
    if (tokens > contextWindow) return Response.json(api.refusal(tokens), { status: 400 });
    if (JSON.stringify(body).includes("cache_control")) markers++;
    sizes.push(tokens);
    const answer = api.answer(sizes.length, tokens);
    return body.stream === true ? streamed(api.events(answer)) : Response.json(answer);
  };
  return { fetch, sizes, markers: () => markers };
}

/** Prints what an agent reached. */
export function report(name, { sizes }, outcome) {
  console.log(`${name}: ${sizes.length} calls, largest ${Math.max(...sizes)} of ${contextWindow} tokens. ${outcome}`);
}

export const onTrim = ({ stats }) => console.log(`  trimmed: ${stats.before} tokens came in, ${stats.after} go out`);

export function readFile(path) {
  return `// ${path}\n${"export const answer = 42;\n".repeat(120)}`;
}

function sizeOf({ system, instructions, messages, input, tools = [] }, format) {
  const prompt = system ?? instructions;
  const extra = prompt === undefined ? 0 : countMessages([{ role: "system", content: prompt }], counter);
  return countMessages(messages ?? input, counter, { format }) + countTools(tools, counter, { format }) + extra;
}

const done = "The bug is in src/file-7.ts.";
const inputOf = (call) => ({ path: `src/file-${call}.ts` });

const apis = [
  {
    path: "/v1/messages",
    format: "anthropic",
    refusal: (tokens) => {
      const message = `prompt is too long: ${tokens} tokens > ${contextWindow} maximum`;
      return { type: "error", error: { type: "invalid_request_error", message } };
    },
    answer(call, tokens) {
      const use = { type: "tool_use", id: `toolu_${call}`, name: "read_file", input: inputOf(call) };
      const content = call > files ? [{ type: "text", text: done }] : [use];
      const stop_reason = call > files ? "end_turn" : "tool_use";
      const usage = { input_tokens: tokens, output_tokens: 40 };
      return { id: `msg_${call}`, type: "message", role: "assistant", model: "m", content, stop_reason, usage };
    },
    events({ content: [block], stop_reason, usage, ...message }) {
      const isText = block.type === "text";
      const start = isText ? { ...block, text: "" } : { ...block, input: {} };
      const delta = isText
        ? { type: "text_delta", text: block.text }
        : { type: "input_json_delta", partial_json: JSON.stringify(block.input) };
      return [
        { type: "message_start", message: { ...message, content: [], stop_reason: null, usage } },
        { type: "content_block_start", index: 0, content_block: start },
        { type: "content_block_delta", index: 0, delta },
        { type: "content_block_stop", index: 0 },
        { type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 40 } },
        { type: "message_stop" },
      ];
    },
  },
  {
    path: "/chat/completions",
    format: "openai",
    refusal: refuseOpenAi,
    answer(call, tokens) {
      const called = { name: "read_file", arguments: JSON.stringify(inputOf(call)) };
      const calls = [{ id: `call_${call}`, type: "function", function: called }];
      const message = call > files ? { content: done } : { content: null, tool_calls: calls };
      const finish_reason = call > files ? "stop" : "tool_calls";
      const choices = [{ index: 0, finish_reason, message: { role: "assistant", ...message } }];
      const usage = { prompt_tokens: tokens, completion_tokens: 40, total_tokens: tokens + 40 };
      return { id: `c${call}`, object: "chat.completion", created: 1, model: "m", choices, usage };
    },
  },
  {
    path: "/responses",
    format: "responses",
    refusal: refuseOpenAi,
    answer(call, tokens) {
      const text = { type: "output_text", text: done, annotations: [] };
      const args = JSON.stringify(inputOf(call));
      const item =
        call > files
          ? { id: `msg_${call}`, type: "message", role: "assistant", status: "completed", content: [text] }
          : { id: `fc_${call}`, type: "function_call", call_id: `call_${call}`, name: "read_file", arguments: args };
      const details = { input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 } };
      const usage = { input_tokens: tokens, output_tokens: 40, total_tokens: tokens + 40, ...details };
      const fixed = { object: "response", created_at: 1, status: "completed", model: "m", error: null };
      return { id: `resp_${call}`, ...fixed, output: [{ status: "completed", ...item }], usage };
    },
  },
];

function refuseOpenAi(tokens) {
  const message = `${tokens} tokens exceed the context window of ${contextWindow}`;
  return { error: { message, type: "invalid_request_error", code: "context_length_exceeded" } };
}

function streamed(events) {
  const text = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
  return new Response(text, { headers: { "content-type": "text/event-stream" } });
}
