/**
 * One scripted conversation through a wrapped client of an SDK: `node sdk-conversation.mjs anthropic|openai|ai`.
 * It runs in a folder where this package and that SDK are installed. The model is a server on this machine that calls a tool until the
 * conversation is several times its window. Each request has to be valid and within the window; otherwise the process ends with 1.
 */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { countMessages, validateRequest } from "plimsoll/messages";
import { createCounter } from "plimsoll/tokens";

const contextWindow = 24_000;
const reserve = 4_000;
const steps = 60;
const question = "Where is the bug?";
const answer = "It is in the last file.";
const conversations = { anthropic: talkAnthropic, openai: talkOpenAi, ai: talkAiSdk };

const [sdk] = process.argv.slice(2);
for (const [way, requests, trims] of await conversations[sdk]())
  console.log(`  ${way}: ${requests} requests, trimmed ${trims} times`);

/** A conversation that `ask` leads to its end, and what arrived on the way. */
async function converse(way, { format, model, reply, ask }) {
  const counter = await createCounter("auto", { model });
  const sizeOf = (body) => countMessages(messagesOf(body), counter, { format, model });
  const bodies = [];
  const server = await startServer((body) => {
    bodies.push(body);
    return reply(body, { call: bodies.length, isLast: bodies.length === steps, tokens: sizeOf(body) });
  });
  let trims = 0;
  try {
    const options = { contextWindow, reserve, onTrim: () => trims++ };
    assert.equal(await ask({ url: server.url, options }), answer, way);
  } finally {
    await server.close();
  }
  assert.equal(bodies.length, steps, way);
  for (const body of bodies) {
    assert.ok(sizeOf(body) <= contextWindow - reserve, `${way}: ${sizeOf(body)} tokens are too many`);
    assert.deepEqual(validateRequest(body, { format }), [], way);
    assert.ok(JSON.stringify(messagesOf(body)[0]).includes(question), way);
  }
  assert.ok(trims > 1 && trims < steps / 4, `${way}: trimmed ${trims} times`);
  return [way, bodies.length, trims];
}

function messagesOf({ messages, input }) {
  return messages ?? input;
}

/** What the tool gives: about 800 tokens. */
function fileText(path) {
  return `export const path = ${JSON.stringify(path)};\nlet count = 1;\n`.repeat(40);
}

async function talkAnthropic() {
  const { default: Anthropic } = await import("@anthropic-ai/sdk");
  const { withContextBudget } = await import("plimsoll/anthropic");
  const tools = [{ name: "read", description: "Reads a file.", input_schema: { type: "object" } }];
  const params = { model: "claude-sonnet-5", max_tokens: 1_000, tools };
  const open = ({ url, options }) =>
    withContextBudget(new Anthropic({ apiKey: "none", baseURL: url, maxRetries: 0 }), options);
  const loop = (send) => async (place) => {
    const client = open(place);
    const messages = [{ role: "user", content: question }];
    for (;;) {
      const { content, stop_reason } = await send(client, { ...params, messages: [...messages] });
      if (stop_reason !== "tool_use") return content[0].text;
      const [{ id, input }] = content;
      const results = [{ type: "tool_result", tool_use_id: id, content: fileText(input.path) }];
      messages.push({ role: "assistant", content }, { role: "user", content: results });
    }
  };
  const ways = {
    "messages.create": loop((client, body) => client.messages.create(body)),
    "messages.stream": loop((client, body) => client.messages.stream(body).finalMessage()),
    "beta.messages.create": loop((client, body) => client.beta.messages.create(body)),
  };
  if (typeof Anthropic.Beta.Messages.prototype.toolRunner === "function")
    ways["beta.messages.toolRunner"] = async (place) => {
      const run = ({ path }) => fileText(path);
      const runnable = { ...tools[0], type: "custom", parse: (input) => input, run };
      const messages = [{ role: "user", content: question }];
      const runner = open(place).beta.messages.toolRunner({ ...params, messages, tools: [runnable] });
      return (await runner.runUntilDone()).content[0].text;
    };
  return runAll(ways, { format: "anthropic", model: params.model, reply: replyAnthropic });
}

async function talkOpenAi() {
  const { default: OpenAI } = await import("openai");
  const { withContextBudget } = await import("plimsoll/openai");
  const model = "gpt-5";
  const open = ({ url, options }) =>
    withContextBudget(new OpenAI({ apiKey: "none", baseURL: url, maxRetries: 0 }), options);
  const read = { name: "read", description: "Reads a file.", parameters: { type: "object" } };
  const chat = (send) => async (place) => {
    const client = open(place);
    const messages = [{ role: "user", content: question }];
    for (;;) {
      const tools = [{ type: "function", function: read }];
      const message = await send(client, { model, tools, messages: [...messages] });
      if (!message.tool_calls?.length) return message.content;
      const [call] = message.tool_calls;
      const { path } = JSON.parse(call.function.arguments);
      messages.push(message, { role: "tool", tool_call_id: call.id, content: fileText(path) });
    }
  };
  const respond = (send) => async (place) => {
    const client = open(place);
    const input = [{ role: "user", content: question }];
    for (;;) {
      const tools = [{ type: "function", ...read }];
      const [item] = await send(client, { model, tools, store: false, input: [...input] });
      if (item.type === "message") return item.content[0].text;
      const { path } = JSON.parse(item.arguments);
      input.push(item, { type: "function_call_output", call_id: item.call_id, output: fileText(path) });
    }
  };
  const chatWays = {
    "chat.completions.create": chat(async (client, body) => {
      return (await client.chat.completions.create(body)).choices[0].message;
    }),
    "chat.completions.stream": chat((client, body) => client.chat.completions.stream(body).finalMessage()),
  };
  const responseWays = {
    "responses.create": respond(async (client, body) => (await client.responses.create(body)).output),
    "responses.create, streamed": respond(async (client, body) => {
      let output;
      for await (const event of await client.responses.create({ ...body, stream: true }))
        if (event.type === "response.completed") output = event.response.output;
      return output;
    }),
  };
  return [
    ...(await runAll(chatWays, { format: "openai", model, reply: replyChat })),
    ...(await runAll(responseWays, { format: "responses", model, reply: replyResponses })),
  ];
}

/** The AI SDK with OpenAI's provider, so that requests can be seen on the wire. */
async function talkAiSdk() {
  const { generateText, streamText, wrapLanguageModel, tool, jsonSchema, ...ai } = await import("ai");
  const { createOpenAI } = await import("@ai-sdk/openai");
  const { contextBudgetMiddleware } = await import("plimsoll/ai-sdk");
  const model = "gpt-5";
  const read = tool({
    description: "Reads a file.",
    inputSchema: jsonSchema({ type: "object", properties: { path: { type: "string" } } }),
    execute: async ({ path }) => fileText(path),
  });
  const callOf = ({ url, options }) => ({
    model: wrapLanguageModel({
      model: createOpenAI({ apiKey: "none", baseURL: url }).chat(model),
      middleware: contextBudgetMiddleware(options),
    }),
    messages: [{ role: "user", content: question }],
    tools: { read },
    stopWhen: (ai.stepCountIs ?? ai.isStepCount)(steps + 1),
    maxRetries: 0,
  });
  const ways = {
    generateText: async (place) => (await generateText(callOf(place))).text,
    streamText: async (place) => {
      const result = streamText(callOf(place));
      await result.consumeStream();
      return result.text;
    },
  };
  return runAll(ways, { format: "openai", model, reply: replyChat });
}

async function runAll(ways, rest) {
  const results = [];
  for (const [way, ask] of Object.entries(ways)) results.push(await converse(way, { ...rest, ask }));
  return results;
}

function replyAnthropic({ stream }, { call, isLast, tokens }) {
  const path = `src/${call}.ts`;
  const block = isLast
    ? { type: "text", text: answer }
    : { type: "tool_use", id: `toolu_${call}`, name: "read", input: { path } };
  const stop_reason = isLast ? "end_turn" : "tool_use";
  const usage = { input_tokens: tokens, output_tokens: 5 };
  const message = { id: `msg_${call}`, type: "message", role: "assistant", model: "m", usage };
  if (stream !== true) return { ...message, content: [block], stop_reason };
  const delta = isLast
    ? { type: "text_delta", text: answer }
    : { type: "input_json_delta", partial_json: JSON.stringify({ path }) };
  return [
    { type: "message_start", message: { ...message, content: [], stop_reason: null } },
    {
      type: "content_block_start",
      index: 0,
      content_block: isLast ? { ...block, text: "" } : { ...block, input: {} },
    },
    { type: "content_block_delta", index: 0, delta },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason }, usage: { output_tokens: 5 } },
    { type: "message_stop" },
  ];
}

function replyChat({ stream }, { call, isLast, tokens }) {
  const toolCall = {
    index: 0,
    id: `call_${call}`,
    type: "function",
    function: { name: "read", arguments: JSON.stringify({ path: `src/${call}.ts` }) },
  };
  const said = isLast ? { content: answer } : { content: null, tool_calls: [toolCall] };
  const finish_reason = isLast ? "stop" : "tool_calls";
  const usage = { prompt_tokens: tokens, completion_tokens: 5, total_tokens: tokens + 5 };
  const head = { id: `chatcmpl-${call}`, created: 1, model: "m" };
  const message = { role: "assistant", refusal: null, ...said };
  if (stream !== true)
    return { ...head, object: "chat.completion", choices: [{ index: 0, message, finish_reason }], usage };
  const chunk = (rest) => ({ ...head, object: "chat.completion.chunk", choices: [], ...rest });
  return [
    chunk({ choices: [{ index: 0, delta: { role: "assistant", ...said }, finish_reason: null }] }),
    chunk({ choices: [{ index: 0, delta: {}, finish_reason }] }),
    chunk({ usage }),
  ];
}

function replyResponses({ stream }, { call, isLast, tokens }) {
  const content = [{ type: "output_text", text: answer, annotations: [] }];
  const item = isLast
    ? { type: "message", id: `msg_${call}`, role: "assistant", status: "completed", content }
    : {
        type: "function_call",
        id: `fc_${call}`,
        call_id: `call_${call}`,
        name: "read",
        arguments: JSON.stringify({ path: `src/${call}.ts` }),
        status: "completed",
      };
  const usage = { input_tokens: tokens, output_tokens: 5, total_tokens: tokens + 5 };
  const response = { id: `resp_${call}`, object: "response", status: "completed", output: [item], usage };
  return stream === true ? [{ type: "response.completed", response, sequence_number: 0 }] : response;
}

/** Lists go out as server-sent events, objects as JSON. */
async function startServer(reply) {
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const answered = reply(JSON.parse(Buffer.concat(chunks).toString("utf8")));
    if (!Array.isArray(answered)) {
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answered));
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const event of answered) {
      const name = event.type === undefined ? "" : `event: ${event.type}\n`;
      response.write(`${name}data: ${JSON.stringify(event)}\n\n`);
    }
    response.end("data: [DONE]\n\n");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}
