/** Anthropic's Messages API: refuses what the real one refuses, bills with a cache, and answers whole or streamed. */
import { createAnthropicCache } from "./anthropic-cache.mjs";
import { findProblem } from "./anthropic-validity.mjs";
import { bindingBeta, createThinkingBinder } from "./bound-thinking.mjs";
import { blocksOf, hashOf } from "./canonical.mjs";
import { readClaudeModel, thinksAlways } from "./claude-models.mjs";
import { compactionMessage, findCompactionProblem } from "./compaction.mjs";
import { eventLine, joinTexts } from "./wire.mjs";

/** @returns {import("./wire.mjs").Api} */
export function createAnthropicApi({ settings, countBlock }) {
  const cache = createAnthropicCache({ countBlock, now: settings.now });
  const binder = createThinkingBinder(settings);
  const check = (body, betas, isCount) =>
    settings.checks
      ? (findProblem(body, betas, { ...settings, isCount }) ?? findCompactionProblem(body, betas, binder.unseal))
      : undefined;
  const judge = (body, betas) => {
    const judged = binder.judge(body, betas);
    const headers = judged.header && { "anthropic-thinking-prefix-mismatch": judged.header };
    const refusal = settings.checks ? judged.refusal : undefined;
    return { judged, headers, betas, dropped: judged.dropped, ...(refusal && { refusal }) };
  };
  const receive = (isCount) => (body, headers) => {
    const betas = betasOf(body, headers);
    const problem = check(body, betas, isCount);
    if (problem !== undefined) return refuse(problem);
    const judgement = judge(body, betas);
    if (judgement.refusal !== undefined) return refuse(judgement.refusal, judgement.headers);
    const measured = cache.measure(body, judgement.judged.unread);
    if (isCount) return { count: { input_tokens: measured.tokens } };
    const overflow = tooLong(measured.tokens, settings);
    return overflow === undefined ? { ...judgement, tokens: cache.bill(body, measured) } : refuse(overflow);
  };
  const whole = (facts) => {
    const message = messageFor(facts, binder);
    const { body, turn, received } = facts;
    if (body.compaction === undefined) return message;
    const { messages } = received.judged.end;
    const sign = (summary) => binder.sealState({ messages, summary: hashOf(summary) });
    return compactionMessage(message, turn.text ?? `Summary of ${body.messages.length} messages.`, sign);
  };
  const read = {
    tools: ({ tools = [] }) => tools.map(({ name }) => name),
    steps: ({ messages }) => blocksIn(messages, "tool_use").length,
    results: ({ messages }) => blocksIn(messages, "tool_result").map(({ content }) => joinTexts(content)),
  };
  return [
    { matches: /\/messages\/count_tokens$/, ...read, fail, receive: receive(true) },
    {
      matches: /\/messages$/,
      ...read,
      fail,
      receive: receive(false),
      whole,
      stream: (facts) => messageEvents(whole(facts)),
    },
  ];
}

function blocksIn(messages, type) {
  return messages.flatMap(({ content }) => blocksOf(content)).filter((block) => block.type === type);
}

function tooLong(tokens, { contextWindow, overflowNumbers }) {
  if (tokens <= contextWindow) return undefined;
  return `prompt is too long${overflowNumbers ? `: ${tokens} tokens > ${contextWindow} maximum` : ""}`;
}

/** Bedrock has no headers and takes the names in the body. */
function betasOf({ anthropic_beta: inBody = [] }, headers) {
  return [...String(headers["anthropic-beta"] ?? "").split(","), ...inBody].map((name) => name.trim());
}

function refuse(message, headers = undefined) {
  return { refusal: { status: 400, headers, json: errorBody("invalid_request_error", message) }, message };
}

function errorBody(type, message) {
  return { type: "error", error: { type, message } };
}

const failures = {
  429: ["rate_limit_error", "This request would exceed your account's rate limit. Please try again later."],
  529: ["overloaded_error", "Overloaded"],
};

function fail(status) {
  return errorBody(...(failures[status] ?? ["api_error", "Internal server error"]));
}

function messageFor({ id, body, turn, received }, binder) {
  const { judged, betas, tokens } = received;
  const content = body.max_tokens === 0 ? [] : binder.sign(contentFor(id, body, turn), judged.end, body.model);
  const changes = [
    ...judged.dropped.map((change) => ({ type: "thinking_dropped", ...change })),
    ...judged.allowed.map((change) => ({ type: "thinking_mismatch_allowed", ...change })),
  ];
  const calls = content.some(({ type }) => type === "tool_use");
  return {
    id: turn.id ?? `msg_${id}`,
    type: "message",
    role: "assistant",
    model: body.model,
    content,
    stop_reason: body.max_tokens === 0 ? "max_tokens" : calls ? "tool_use" : "end_turn",
    stop_sequence: null,
    usage: turn.usage ?? usageOf(tokens, turn),
    ...(betas.includes(bindingBeta) && changes.length > 0 && { input_transformations: changes }),
  };
}

function usageOf({ uncached, write5m, write1h, read }, { outputTokens }) {
  return {
    input_tokens: uncached,
    cache_creation_input_tokens: write5m + write1h,
    cache_read_input_tokens: read,
    cache_creation: { ephemeral_5m_input_tokens: write5m, ephemeral_1h_input_tokens: write1h },
    output_tokens: outputTokens,
  };
}

/** Thinking comes first. Models that bind it do not show its text unless they are asked to. */
function contentFor(id, { model: name, thinking }, turn) {
  const model = readClaudeModel(name);
  const isOn = thinking === undefined ? thinksAlways(model) : thinking.type !== "disabled";
  const isShown = (thinking?.display ?? (model.binding === "never" ? "summarized" : "omitted")) === "summarized";
  const show = (block) => (block.type === "thinking" && !isShown ? { ...block, thinking: "" } : block);
  if (turn.content !== undefined) return turn.content.map(show);
  const thoughts = isOn ? [turn.thinking ?? "I look at what comes next."].flat() : [];
  return [
    ...thoughts.map((text) => show({ type: "thinking", thinking: text })),
    ...(turn.text ? [{ type: "text", text: turn.text }] : []),
    ...(turn.calls ?? []).map((call, index) => {
      return { type: "tool_use", id: call.id ?? `toolu_${id}_${index}`, name: call.name, input: call.input };
    }),
  ];
}

function messageEvents(message) {
  const { content, stop_reason, usage } = message;
  return [
    { type: "message_start", message: { ...message, content: [], stop_reason: null } },
    ...content.flatMap(blockEvents),
    {
      type: "message_delta",
      delta: { stop_reason, stop_sequence: null },
      usage: { output_tokens: usage.output_tokens },
    },
    { type: "message_stop" },
  ].map((event) => eventLine(event, event.type));
}

function blockEvents(block, index) {
  const [empty, deltas] = piecesOf(block);
  return [
    { type: "content_block_start", index, content_block: empty },
    ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
    { type: "content_block_stop", index },
  ];
}

/** A text comes in two pieces, so that a reader has to join them. */
function piecesOf(block) {
  const { type, text, thinking, signature, input } = block;
  if (type === "text") {
    const middle = Math.floor(text.length / 2);
    const pieces = [text.slice(0, middle), text.slice(middle)].filter((piece) => piece !== "");
    return [{ type, text: "" }, pieces.map((piece) => ({ type: "text_delta", text: piece }))];
  }
  if (type === "thinking") {
    const shown = thinking === "" ? [] : [{ type: "thinking_delta", thinking }];
    return [{ type, thinking: "", signature: "" }, [...shown, { type: "signature_delta", signature }]];
  }
  if (type !== "tool_use") return [block, []];
  return [{ ...block, input: {} }, [{ type: "input_json_delta", partial_json: JSON.stringify(input) }]];
}
