/** OpenAI's Chat Completions and Responses: refuses what the real ones refuse, bills with a cache, and answers whole or
 *  streamed. */
import { createPrefixCache } from "./prefix-cache.mjs";
import { eventLine, joinTexts, totalOf } from "./wire.mjs";

/** @returns {import("./wire.mjs").Api} */
export function createOpenAiApi({ settings, countBlock }) {
  const bill = createBill({ cache: createPrefixCache(settings), countBlock });
  const receive = (readPrompt, findProblem, describeOverflow) => (body) => {
    const prompt = readPrompt(body);
    const problem = settings.checks ? findProblem(body, settings) : undefined;
    if (problem !== undefined) return refuse(problem);
    const { tokens, commit } = bill(body, prompt);
    return tokens > settings.contextWindow
      ? refuse(describeOverflow(tokens, settings), "context_length_exceeded")
      : { tokens: commit() };
  };
  return [
    {
      matches: /\/chat\/completions$/,
      tools: ({ tools = [] }) => tools.map((tool) => tool.function?.name),
      steps: ({ messages }) => messages.flatMap(({ tool_calls }) => tool_calls ?? []).length,
      results: ({ messages }) =>
        messages.filter(({ role }) => role === "tool").map(({ content }) => joinTexts(content)),
      fail,
      receive: receive(({ messages }) => messages, findChatProblem, describeChatOverflow),
      whole: chatFor,
      stream: chatEvents,
    },
    {
      matches: /\/responses$/,
      tools: ({ tools = [] }) => tools.map(({ name, type }) => name ?? type),
      steps: ({ input }) => itemsOf(input).filter(isCall).length,
      results: ({ input }) =>
        itemsOf(input)
          .filter(isOutput)
          .map(({ output }) => joinTexts(output)),
      fail,
      receive: receive(({ input }) => itemsOf(input), findResponsesProblem, describeResponsesOverflow),
      whole: responseFor,
      stream: responseEvents,
    },
    {
      matches: /\/responses\/compact$/,
      tools: ({ tools = [] }) => tools.map(({ name, type }) => name ?? type),
      steps: () => 0,
      results: () => [],
      fail,
      receive: receive(({ input }) => itemsOf(input), findResponsesProblem, describeResponsesOverflow),
      whole: compactionFor,
    },
  ];
}

function refuse(message, code = null) {
  const error = { message, type: "invalid_request_error", param: null, code };
  return { refusal: { status: 400, json: { error } }, message };
}

const failures = {
  429: ["rate_limit_exceeded", "Rate limit reached. Please try again later."],
  529: ["overloaded", "The engine is currently overloaded, please try again later."],
};

function fail(status) {
  const [code, message] = failures[status] ?? [
    "server_error",
    "The server had an error while processing your request.",
  ];
  return { error: { message, type: code, param: null, code } };
}

/** Measures a prompt; `commit` reads and writes the cache. */
function createBill({ cache, countBlock }) {
  return ({ model, tools = [], instructions, prompt_cache_key: key, prompt_cache_options: options }, prompt) => {
    const parts = [...tools, ...(instructions ? [{ role: "developer", content: instructions }] : []), ...prompt];
    const blocks = parts.map((part) => {
      const text = JSON.stringify(part);
      return { text, tokens: countBlock(part), isMarked: text.includes('"prompt_cache_breakpoint"') };
    });
    const scope = `${model} ${key ?? ""}`;
    const commit = () =>
      hasBreakpoints(model)
        ? cache.billBreakpoints(scope, blocks, { minimum: 1_024, options })
        : cache.billSteps(scope, blocks, { minimum: 1_024, lifetimeMs: 10 * 60_000 });
    return { tokens: blocks.reduce((sum, { tokens }) => sum + tokens, 0), commit };
  };
}

/** Models from GPT-5.6 on write at breakpoints and bill it. */
function hasBreakpoints(model) {
  const [, major = "0", minor = "0"] = /gpt-(\d+)(?:\.(\d+))?/.exec(model) ?? [];
  return Number(major) > 5 || (major === "5" && Number(minor) >= 6);
}

// Chat Completions

function findChatProblem({ messages, stream, stream_options: streamOptions }, { refusesStreamOptions }) {
  if (refusesStreamOptions && streamOptions !== undefined)
    return "Unrecognized request argument supplied: stream_options";
  if (streamOptions !== undefined && stream !== true)
    return "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
  if (!Array.isArray(messages) || messages.length === 0)
    return "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.";
  const wrong = messages.find(({ role }) => !chatRoles.includes(role));
  if (wrong !== undefined) return `Invalid value: '${wrong.role}'. Supported values are: ${chatRoles.join(", ")}.`;
  return findUnpaired(messages);
}

const chatRoles = ["system", "developer", "user", "assistant", "tool"];

function findUnpaired(messages) {
  let open = [];
  for (const [index, { role, tool_calls: calls = [], tool_call_id: id }] of messages.entries()) {
    if (role !== "tool") {
      if (open.length > 0) return unansweredCalls(open);
      open = calls.map((call) => call.id);
      continue;
    }
    if (!open.includes(id))
      return `Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'. (messages.[${index}].role)`;
    open = open.filter((each) => each !== id);
  }
  return open.length > 0 ? unansweredCalls(open) : undefined;
}

function unansweredCalls(ids) {
  return `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${ids.join(", ")}`;
}

function describeChatOverflow(tokens, { contextWindow, overflowNumbers }) {
  if (!overflowNumbers)
    return "Your input exceeds the context window of this model. Please adjust your input and try again.";
  return `This model's maximum context length is ${contextWindow} tokens. However, your messages resulted in ${tokens} tokens. Please reduce the length of the messages.`;
}

function chatFor({ id, body, turn, received }) {
  const tool_calls = (turn.calls ?? []).map((call, index) => ({
    index,
    id: call.id ?? `call_${id}_${index}`,
    type: "function",
    function: { name: call.name, arguments: JSON.stringify(call.input) },
  }));
  const message = {
    role: "assistant",
    content: turn.text ?? null,
    refusal: null,
    ...(tool_calls.length > 0 && { tool_calls }),
  };
  const total = totalOf(received.tokens);
  const usage = {
    prompt_tokens: total,
    prompt_tokens_details: cacheDetails(body.model, received.tokens),
    completion_tokens: turn.outputTokens,
    total_tokens: total + turn.outputTokens,
  };
  return {
    id: turn.id ?? `chatcmpl-${id}`,
    object: "chat.completion",
    created: 1,
    model: body.model,
    choices: [{ index: 0, message, finish_reason: tool_calls.length > 0 ? "tool_calls" : "stop" }],
    usage: turn.usage ?? usage,
  };
}

function cacheDetails(model, { read, write5m, write1h }) {
  if (!hasBreakpoints(model)) return { cached_tokens: read };
  const details = { ttl_30m_tokens: write5m, ttl_12h_tokens: write1h };
  return { cached_tokens: read, cache_write_tokens: write5m + write1h, cache_write_tokens_details: details };
}

/** The usage comes only if the request asks for it; then every chunk has the field. */
function chatEvents(facts) {
  const { choices, usage, ...head } = chatFor(facts);
  const [{ message, finish_reason }] = choices;
  const hasUsage = facts.body.stream_options?.include_usage === true;
  const chunkWith = (fields) => ({ ...head, object: "chat.completion.chunk", ...fields });
  const chunk = (delta, reason = null) =>
    chunkWith({ choices: [{ index: 0, delta, finish_reason: reason }], ...(hasUsage && { usage: null }) });
  const { content, ...rest } = message;
  const middle = Math.floor((content ?? "").length / 2);
  const first = content === null ? message : { ...rest, content: content.slice(0, middle) };
  const chunks = [
    chunk(first),
    ...(content === null ? [] : [chunk({ content: content.slice(middle) })]),
    chunk({}, finish_reason),
    ...(hasUsage ? [chunkWith({ choices: [], usage })] : []),
  ];
  return [...chunks.map((value) => eventLine(value)), "data: [DONE]\n\n"];
}

// Responses

function itemsOf(input) {
  return typeof input === "string" ? [{ role: "user", content: input }] : (input ?? []);
}

function isCall({ type = "" }) {
  return /^(?:function|custom_tool|local_shell)_call$/.test(type);
}

function isOutput({ type = "" }) {
  return /_call_output$/.test(type);
}

function findResponsesProblem({ input, previous_response_id: previous }) {
  const items = itemsOf(input);
  if (items.length === 0 && previous === undefined) return "Missing required parameter: 'input'.";
  // The API has the calls of the earlier response.
  const isWhole = (previous ?? null) === null;
  const calls = items.filter(isCall).map(({ call_id }) => call_id);
  const outputs = items.filter(isOutput).map(({ call_id }) => call_id);
  const stray = isWhole ? outputs.find((id) => !calls.includes(id)) : undefined;
  if (stray !== undefined) return `No tool call found for function call output with call_id ${stray}.`;
  const open = calls.find((id) => !outputs.includes(id));
  if (open !== undefined) return `No tool output found for function call ${open}.`;
  const isForeign = ({ type, encrypted_content: text }) => type === "compaction" && !text?.startsWith(sealedStart);
  if (items.some(isForeign)) return "invalid_encrypted_content: The encrypted content could not be verified.";
  const lonely = items.find(({ type }, index) => type === "reasoning" && !isAnswer(items[index + 1]));
  if (lonely === undefined) return undefined;
  return `Item '${lonely.id}' of type 'reasoning' was provided without its required following item.`;
}

function isAnswer(item) {
  return item !== undefined && (isCall(item) || item.role === "assistant" || item.type === "reasoning");
}

function describeResponsesOverflow() {
  return "Your input exceeds the context window of this model. Please adjust your input and try again.";
}

function responseFor({ id, body, turn, received }) {
  const text = { type: "output_text", text: turn.text, annotations: [] };
  const output = [
    ...(turn.text
      ? [{ type: "message", id: `msg_${id}`, role: "assistant", status: "completed", content: [text] }]
      : []),
    ...(turn.calls ?? []).map(({ name, input, custom, namespace, id: callId }, index) => ({
      ...(custom ? { type: "custom_tool_call", input } : { type: "function_call", arguments: JSON.stringify(input) }),
      ...(namespace !== undefined && { namespace }),
      // Codex sends ids back, and OpenAI refuses others.
      id: `${custom ? "ctc" : "fc"}_${id}_${index}`,
      call_id: callId ?? `call_${id}_${index}`,
      name,
      status: "completed",
    })),
  ];
  const total = totalOf(received.tokens);
  const usage = {
    input_tokens: total,
    input_tokens_details: cacheDetails(body.model, received.tokens),
    output_tokens: turn.outputTokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: total + turn.outputTokens,
  };
  return {
    id: turn.id ?? `resp_${id}`,
    object: "response",
    created_at: 1,
    status: "completed",
    model: body.model,
    output,
    usage: turn.usage ?? usage,
    error: null,
  };
}

/** All messages of the user, and one item that only the API can read. */
function compactionFor(facts) {
  const { id, body } = facts;
  const { usage } = responseFor(facts);
  const users = itemsOf(body.input).filter(({ role }) => role === "user");
  const item = { type: "compaction", id: `cmp_${id}`, encrypted_content: `${sealedStart}${id}` };
  return { id: `resp_${id}`, object: "response.compaction", created_at: 1, output: [...users, item], usage };
}

const sealedStart = "gAAAA_scripted_";

function responseEvents(facts) {
  const response = responseFor(facts);
  const items = response.output.flatMap((item, output_index) => [
    { type: "response.output_item.added", output_index, item },
    { type: "response.output_item.done", output_index, item },
  ]);
  const created = {
    type: "response.created",
    response: { ...response, status: "in_progress", output: [], usage: null },
  };
  const events = [created, ...items, { type: "response.completed", response }];
  return events.map((event, sequence_number) => eventLine({ ...event, sequence_number }, event.type));
}
