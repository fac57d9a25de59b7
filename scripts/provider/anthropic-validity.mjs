/** Why Anthropic's API would refuse a request: the rules and the wording of its 400s. Independent of the validator in
 *  `src/messages`, which it judges. */
import { bindingBeta } from "./bound-thinking.mjs";
import { blocksOf } from "./canonical.mjs";
import { readClaudeModel, thinksAlways } from "./claude-models.mjs";
import { compactionBeta } from "./compaction.mjs";

/** Returns the text of a 400, or undefined for a valid request.
 *  @param {object} body @param {string[]} betas @param {{ strictOpenTurn?: boolean, isCount?: boolean }} options
 *  @returns {string | undefined} */
export function findProblem(body, betas, options) {
  const model = readClaudeModel(String(body.model));
  for (const rule of rules) {
    const problem = rule(body, { model, betas, ...options });
    if (problem !== undefined) return problem;
  }
  return undefined;
}

const rules = [checkFields, checkThinkingField, checkRoles, checkBlocks, checkPairs, checkMarkers, checkOpenTurn];

function checkFields(body, { model, isCount }) {
  const { messages, max_tokens: most, tool_choice } = body;
  if (typeof body.model !== "string") return "model: Field required";
  if (!isCount && !Number.isInteger(most)) return "max_tokens: Field required";
  if (!isCount && most < 0) return "max_tokens: Input should be greater than or equal to 0";
  if (!Array.isArray(messages)) return "messages: Field required";
  if (messages.length === 0) return "messages: at least one message is required";
  if (messages.length > 100_000) return "messages: at most 100000 messages are allowed";
  if (model.binding === "never") return undefined;
  const sampling = ["temperature", "top_p", "top_k"].find((field) => body[field] !== undefined);
  if (sampling !== undefined) return `\`${sampling}\` is not supported on this model`;
  const isForced = tool_choice?.type === "any" || tool_choice?.type === "tool";
  if (isForced && (thinksAlways(model) || model.family === "sonnet"))
    return "tool_choice: forced tool use is not supported on this model";
  return undefined;
}

function checkThinkingField({ thinking }, { model, betas }) {
  if (thinking === undefined) return undefined;
  const { type, block_binding: binding } = thinking;
  if (type === "disabled" && thinksAlways(model)) return "thinking: thinking cannot be disabled on this model";
  if (type === "enabled" && model.binding !== "never") return "thinking.budget_tokens: Extra inputs are not permitted";
  if (binding === undefined) return undefined;
  if (!betas.includes(bindingBeta)) return "block_binding: Extra inputs are not permitted";
  const needsAdaptive = model.version === 5.5 && model.family !== "opus";
  if (needsAdaptive && type !== "adaptive") return `block_binding: not supported with thinking type \`${type}\``;
  const behaviour = binding.prefix_mismatch_behavior ?? "error";
  if (behaviour === "error" || behaviour === "drop_block") return undefined;
  return "block_binding.prefix_mismatch_behavior: Input should be 'error' or 'drop_block'";
}

function checkRoles({ messages }, { model }) {
  for (const [index, message] of messages.entries()) {
    const isLast = index === messages.length - 1;
    const problem = checkMessage(message, `messages.${index}`, isLast);
    if (problem !== undefined) return problem;
    const misplaced = message.role === "system" ? checkSystemMessage(messages, index, model) : undefined;
    if (misplaced !== undefined) return misplaced;
  }
  const [first] = messages;
  const isCompacted = blocksOf(first.content)[0]?.type === "compaction";
  if (first.role !== "user" && !isCompacted) return 'messages: the first message must use the "user" role';
  return checkPrefill(messages.at(-1), model);
}

function checkMessage(message, path, isLast) {
  const { role, content } = message ?? {};
  if (!["user", "assistant", "system"].includes(role)) return `${path}.role: Input should be 'user' or 'assistant'`;
  if (typeof content !== "string" && !Array.isArray(content)) return `${path}.content: Field required`;
  const extra = Object.keys(message).find((key) => !["role", "content", "clear_at"].includes(key));
  if (extra !== undefined) return `${path}.${extra}: Extra inputs are not permitted`;
  if (content.length > 0 || (isLast && role === "assistant")) return undefined;
  return `${path}: all messages must have non-empty content except for the optional final assistant message`;
}

function checkSystemMessage(messages, index, { family, version, isNewer }) {
  const isSupported = isNewer || (family === "opus" ? version >= 4.8 : version >= (family === "sonnet" ? 5.5 : 5));
  if (!isSupported) return "role 'system' is not supported on this model";
  const isAfterUser = messages[index - 1]?.role === "user";
  const next = messages[index + 1]?.role;
  if (isAfterUser && (next === undefined || next === "assistant")) return undefined;
  return `messages.${index}: a system message must follow a user message and precede an assistant message`;
}

function checkPrefill({ role, content }, { binding, version }) {
  if (role !== "assistant") return undefined;
  if (binding !== "never" || version >= 4.6)
    return "This model does not support assistant message prefill. The conversation must end with a user message.";
  const last = blocksOf(content).at(-1);
  return last?.type === "text" && last.text !== last.text.trimEnd()
    ? "messages: final assistant content cannot end with trailing whitespace"
    : undefined;
}

const roleOfBlock = {
  tool_use: "assistant",
  thinking: "assistant",
  redacted_thinking: "assistant",
  tool_result: "user",
};

function checkBlocks({ messages, system }, { betas }) {
  for (const [index, { role, content }] of messages.entries()) {
    for (const [place, block] of blocksOf(content).entries()) {
      const path = `messages.${index}.content.${place}`;
      const problem = checkBlock(block, role, path) ?? checkCompaction(block, path, betas);
      if (problem !== undefined) return problem;
    }
  }
  const isEmpty = blocksOf(system).some(({ text }) => text === "");
  return isEmpty ? "system: text content blocks must be non-empty" : undefined;
}

function checkBlock(block, role, path) {
  const { type, text } = block ?? {};
  if (typeof type !== "string") return `${path}.type: Field required`;
  if (type === "text" && !text) return "messages: text content blocks must be non-empty";
  if (type === "text" && !/\S/.test(text)) return "messages: text content blocks must contain non-whitespace text";
  const owner = roleOfBlock[type] ?? role;
  return owner === role ? undefined : `${path}: \`${type}\` blocks can only be in \`${owner}\` messages`;
}

function checkCompaction({ type }, path, betas) {
  if (type !== "compaction") return undefined;
  if (!betas.includes(compactionBeta)) return `${path}: Input tag 'compaction' is not permitted`;
  return path === "messages.0.content.0" ? undefined : "compaction_block_misplaced: the block must come first";
}

/** Every call is answered in the next message, and a result has its call in the previous one. Messages of one role in a
 *  row are one message. */
function checkPairs({ messages }) {
  const seen = new Set();
  let open = [];
  for (const { role, blocks, index } of mergedTurns(messages)) {
    const problem = checkResults(blocks, open, index);
    if (problem !== undefined) return problem;
    open = role === "assistant" ? blocks.flatMap(({ type, id }) => (type === "tool_use" ? [id] : [])) : [];
    const again = open.find((id, place) => seen.has(id) || open.indexOf(id) !== place);
    if (again !== undefined) return `messages.${index}: \`tool_use\` ids must be unique: ${again}`;
    for (const id of open) seen.add(id);
  }
  return open.length === 0 ? undefined : unanswered(messages.length - 1, open);
}

function checkResults(blocks, open, index) {
  const isResult = ({ type }) => type === "tool_result";
  const results = blocks.filter(isResult).map(({ tool_use_id: id }) => id);
  const stray = results.find((id, place) => !open.includes(id) || results.indexOf(id) !== place);
  if (stray !== undefined)
    return `messages.${index}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${stray}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`;
  const missing = open.filter((id) => !results.includes(id));
  if (missing.length > 0) return unanswered(index - 1, missing);
  const isFirst = blocks.slice(0, results.length).every(isResult);
  return isFirst ? undefined : `messages.${index}: \`tool_result\` blocks must come first in the content of a message`;
}

function unanswered(index, ids) {
  return `messages.${index}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${ids.join(", ")}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`;
}

/** A message's results are moved before its texts where the API joins several messages. */
function mergedTurns(messages) {
  const turns = [];
  for (const [index, { role, content }] of messages.entries()) {
    const blocks = blocksOf(content);
    const last = turns.at(-1);
    if (role === "system") continue;
    if (last?.role !== role) turns.push({ role, blocks: [...blocks], index });
    else {
      const isResult = ({ type }) => type === "tool_result";
      const joined = [...last.blocks, ...blocks];
      last.blocks = [...joined.filter(isResult), ...joined.filter((block) => !isResult(block))];
    }
  }
  return turns;
}

function checkMarkers({ tools = [], system, messages, cache_control: automatic }) {
  const blocks = [tools, blocksOf(system), ...messages.map(({ content }) => blocksOf(content))].flat();
  const marked = blocks.filter(({ cache_control }) => cache_control);
  const thinking = marked.find(({ type = "" }) => /thinking$/.test(type));
  if (thinking !== undefined) return `cache_control cannot be set for \`${thinking.type}\` blocks`;
  const ttls = marked.map(({ cache_control }) => cache_control.ttl ?? "5m");
  if (automatic) {
    const ttl = automatic.ttl ?? "5m";
    const isMarked = blocks.at(-1)?.cache_control;
    if (isMarked && ttls.at(-1) !== ttl) return "cache_control: the last block already has a marker with another `ttl`";
    if (!isMarked) ttls.push(ttl);
  }
  if (ttls.length > 4) return `A maximum of 4 blocks with cache_control may be provided. Found ${ttls.length}.`;
  if (ttls.some((ttl) => ttl !== "5m" && ttl !== "1h")) return "cache_control.ttl: Input should be '5m' or '1h'";
  const isLate = ttls.includes("5m") && ttls.lastIndexOf("1h") > ttls.indexOf("5m");
  return isLate
    ? "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`."
    : undefined;
}

/** The documentation only advises to keep the thinking of an open turn; older models insisted on it. */
function checkOpenTurn({ messages, thinking }, { strictOpenTurn, model }) {
  const isOn = thinking === undefined ? thinksAlways(model) : thinking.type !== "disabled";
  if (!strictOpenTurn || !isOn || messages.at(-1).role !== "user") return undefined;
  const index = messages.findLastIndex(({ role }) => role === "assistant");
  const blocks = blocksOf(messages[index]?.content);
  if (!blocks.some(({ type }) => type === "tool_use") || /thinking$/.test(blocks[0].type)) return undefined;
  return `messages.${index}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${blocks[0].type}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block.`;
}
