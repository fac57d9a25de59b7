/** A model server on loopback that follows the task's own words, for runs of real agents without a network. It speaks
 *  Anthropic Messages, OpenAI Chat Completions and Responses, and Gemini's generateContent, streamed or not. */
import { once } from "node:events";
import { createServer } from "node:http";
import zlib from "node:zlib";

/**
 * Starts the server. `decide` gets `{ text, tools, step, results, body }`: all text of the request, the names of the
 * offered tools, how many calls the model has made so far, the texts of their results, and the request itself. It
 * returns `{ text?, calls? }`; a call has `name` and `input`, `custom` if its input is plain text, and `namespace` if the
 * tool is in one. `bill` gets the request and returns its input tokens: `{ uncached, write5m, write1h, read }`. Without
 * it, nothing is cached.
 */
export async function startScriptedModel(decide, bill = (body) => ({ ...noTokens, uncached: tokensOf(body) })) {
  const requests = [];
  // A client that continues a conversation with another server must not see an id twice.
  const run = Date.now().toString(36);
  const server = createServer(async (request, response) => {
    const received = performance.now();
    const body = await readBody(request);
    const path = request.url.split("?")[0];
    if (request.method !== "POST") return sendJson(response, { object: "list", data: [] });
    const protocol = protocols.find(({ matches }) => matches.test(path));
    if (protocol === undefined || body === undefined) return sendJson(response, { error: { message: path } }, 404);
    if (protocol.count !== undefined) return sendJson(response, protocol.count(tokensOf(body)));
    const tools = protocol.tools(body);
    const seen = { step: protocol.steps(body), results: protocol.results(body) };
    const asked = { text: JSON.stringify(body), tools, ...seen, body };
    const tokens = bill(body);
    const entry = { path, body, tokens, at: received, answered: 0 };
    requests.push(entry);
    // Clients ask for titles and the like without tools.
    const turn = tools.length === 0 ? { text: "A task" } : decide(asked);
    const id = `scripted_${run}_${requests.length}`;
    const facts = { id, body, turn, calls: turn.calls ?? [], tokens };
    entry.answered = performance.now();
    const isStream = body.stream === true || path.includes(":stream");
    // Claude Code records the id of a request.
    response.setHeader("request-id", `req_${id}`);
    if (!isStream) return sendJson(response, protocol.whole(facts));
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const event of protocol.stream(facts)) response.write(event);
    response.end();
  });
  // Codex tries a web socket first and goes on over HTTP.
  server.on("upgrade", (_, socket) => socket.end("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    /** The requests so far, with the times of arrival and answer; the caller may empty the list. */
    requests,
    close: () => server.close(),
  };
}

async function readBody(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  const unpack = { gzip: zlib.gunzipSync, zstd: zlib.zstdDecompressSync }[request.headers["content-encoding"]];
  try {
    return JSON.parse((unpack?.(bytes) ?? bytes).toString("utf8"));
  } catch {
    return undefined;
  }
}

function sendJson(response, value, status = 200) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(value));
}

/** Each answer is billed as this many tokens. */
export const outputTokens = 50;
const noTokens = { uncached: 0, write5m: 0, write1h: 0, read: 0 };
const totalOf = ({ uncached, write5m, write1h, read }) => uncached + write5m + write1h + read;
const tokensOf = (body) => Math.ceil(JSON.stringify(body).length / 4);
const eventLine = (value, name) => `${name === undefined ? "" : `event: ${name}\n`}data: ${JSON.stringify(value)}\n\n`;
const named = (value) => eventLine(value, value.type);

// Anthropic Messages

function messageOf({ id, body, turn, calls, tokens }) {
  return {
    id,
    type: "message",
    role: "assistant",
    model: body.model,
    content: [
      ...(turn.text ? [{ type: "text", text: turn.text }] : []),
      ...calls.map(({ name, input }, index) => ({ type: "tool_use", id: `toolu_${id}_${index}`, name, input })),
    ],
    stop_reason: calls.length > 0 ? "tool_use" : "end_turn",
    stop_sequence: null,
    usage: {
      input_tokens: tokens.uncached,
      cache_creation_input_tokens: tokens.write5m + tokens.write1h,
      cache_read_input_tokens: tokens.read,
      cache_creation: {
        ephemeral_5m_input_tokens: tokens.write5m,
        ephemeral_1h_input_tokens: tokens.write1h,
      },
      output_tokens: outputTokens,
    },
  };
}

function messageEvents(facts) {
  const message = messageOf(facts);
  const { content, stop_reason, usage } = message;
  const blocks = content.flatMap((block, index) => {
    const isText = block.type === "text";
    const empty = isText ? { type: "text", text: "" } : { ...block, input: {} };
    const delta = isText
      ? { type: "text_delta", text: block.text }
      : { type: "input_json_delta", partial_json: JSON.stringify(block.input) };
    return [
      { type: "content_block_start", index, content_block: empty },
      { type: "content_block_delta", index, delta },
      { type: "content_block_stop", index },
    ];
  });
  return [
    { type: "message_start", message: { ...message, content: [], stop_reason: null } },
    ...blocks,
    {
      type: "message_delta",
      delta: { stop_reason, stop_sequence: null },
      usage: { output_tokens: usage.output_tokens },
    },
    { type: "message_stop" },
  ].map(named);
}

// OpenAI Chat Completions

function chatOf({ id, body, turn, calls, tokens }) {
  const tool_calls = calls.map(({ name, input }, index) => ({
    index,
    id: `call_${id}_${index}`,
    type: "function",
    function: { name, arguments: JSON.stringify(input) },
  }));
  const message = {
    role: "assistant",
    content: turn.text ?? null,
    ...(tool_calls.length > 0 && { tool_calls }),
  };
  const finish_reason = tool_calls.length > 0 ? "tool_calls" : "stop";
  const total = totalOf(tokens);
  const usage = {
    prompt_tokens: total,
    prompt_tokens_details: { cached_tokens: tokens.read },
    completion_tokens: outputTokens,
    total_tokens: total + outputTokens,
  };
  return {
    id,
    created: 0,
    model: body.model,
    object: "chat.completion",
    choices: [{ index: 0, message, finish_reason }],
    usage,
  };
}

function chatEvents(facts) {
  const { choices, usage, ...head } = chatOf(facts);
  const [{ message, finish_reason }] = choices;
  const chunk = (delta, reason = null) => ({
    ...head,
    object: "chat.completion.chunk",
    choices: [{ index: 0, delta, finish_reason: reason }],
  });
  const last = { ...head, object: "chat.completion.chunk", choices: [], usage };
  return [...[chunk(message), chunk({}, finish_reason), last].map((value) => eventLine(value)), "data: [DONE]\n\n"];
}

// OpenAI Responses

function responseOf({ id, body, turn, calls, tokens }) {
  const text = { type: "output_text", text: turn.text, annotations: [] };
  const output = [
    ...(turn.text
      ? [{ type: "message", id: `msg_${id}`, role: "assistant", status: "completed", content: [text] }]
      : []),
    ...calls.map(({ name, input, custom, namespace }, index) => ({
      ...(custom ? { type: "custom_tool_call", input } : { type: "function_call", arguments: JSON.stringify(input) }),
      ...(namespace !== undefined && { namespace }),
      // Codex sends ids back, and OpenAI refuses others.
      id: `${custom ? "ctc" : "fc"}_${id}_${index}`,
      call_id: `call_${id}_${index}`,
      name,
      status: "completed",
    })),
  ];
  const usage = {
    input_tokens: totalOf(tokens),
    input_tokens_details: { cached_tokens: tokens.read },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: totalOf(tokens) + outputTokens,
  };
  return { id, object: "response", created_at: 0, status: "completed", model: body.model, output, usage, error: null };
}

function responseEvents(facts) {
  const response = responseOf(facts);
  const items = response.output.flatMap((item, output_index) => [
    { type: "response.output_item.added", output_index, item },
    { type: "response.output_item.done", output_index, item },
  ]);
  const created = {
    type: "response.created",
    response: { ...response, status: "in_progress", output: [], usage: null },
  };
  return [created, ...items, { type: "response.completed", response }].map(named);
}

// Gemini

function contentOf({ turn, calls, tokens }) {
  const parts = [
    ...(turn.text ? [{ text: turn.text }] : []),
    ...calls.map(({ name, input }) => ({ functionCall: { name, args: input } })),
  ];
  return {
    candidates: [{ index: 0, content: { role: "model", parts }, finishReason: "STOP" }],
    usageMetadata: {
      promptTokenCount: totalOf(tokens),
      cachedContentTokenCount: tokens.read,
      candidatesTokenCount: outputTokens,
      totalTokenCount: totalOf(tokens) + outputTokens,
    },
  };
}

const partsOf = (messages, field) => (messages ?? []).flatMap((message) => [message[field] ?? []].flat());
const textOf = (value) =>
  typeof value === "string"
    ? value
    : partsOf([{ value }], "value")
        .map(({ text }) => text ?? "")
        .join("\n");
const isCall = ({ type = "" }) => /^(function|custom_tool|local_shell)_call$/.test(type);

const protocols = [
  { matches: /\/count_tokens$/, count: (tokens) => ({ input_tokens: tokens }) },
  { matches: /:countTokens$/, count: (tokens) => ({ totalTokens: tokens }) },
  {
    matches: /\/messages$/,
    tools: ({ tools = [] }) => tools.map(({ name }) => name),
    steps: ({ messages }) => partsOf(messages, "content").filter(({ type }) => type === "tool_use").length,
    results: ({ messages }) =>
      partsOf(messages, "content")
        .filter(({ type }) => type === "tool_result")
        .map(({ content }) => textOf(content)),
    whole: messageOf,
    stream: messageEvents,
  },
  {
    matches: /\/chat\/completions$/,
    tools: ({ tools = [] }) => tools.map((tool) => tool.function?.name),
    steps: ({ messages }) => partsOf(messages, "tool_calls").length,
    results: ({ messages }) => messages.filter(({ role }) => role === "tool").map(({ content }) => textOf(content)),
    whole: chatOf,
    stream: chatEvents,
  },
  {
    matches: /\/responses$/,
    tools: ({ tools = [] }) => tools.map(({ name, type }) => name ?? type),
    steps: ({ input }) => [input].flat().filter(isCall).length,
    results: ({ input }) =>
      [input]
        .flat()
        .filter(({ type }) => /_output$/.test(type))
        .map(({ output }) => textOf(output)),
    whole: responseOf,
    stream: responseEvents,
  },
  {
    matches: /:(?:stream)?generateContent$/i,
    tools: ({ tools = [] }) =>
      tools.flatMap(({ functionDeclarations = [] }) => functionDeclarations.map(({ name }) => name)),
    steps: ({ contents }) => partsOf(contents, "parts").filter(({ functionCall }) => functionCall !== undefined).length,
    results: ({ contents }) =>
      partsOf(contents, "parts")
        .filter(({ functionResponse }) => functionResponse !== undefined)
        .map(({ functionResponse }) => functionResponse.response.output ?? JSON.stringify(functionResponse.response)),
    whole: contentOf,
    stream: (facts) => [eventLine(contentOf(facts))],
  },
];
