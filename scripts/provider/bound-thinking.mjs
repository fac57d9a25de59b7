/** Signs thinking over everything that comes before it, and judges the thinking that a request sends back. */
import { createHmac } from "node:crypto";
import { blocksOf, canonicalBlock, canonicalContent, canonicalTools, hashOf } from "./canonical.mjs";
import { bindingSince, canReadThinking, isTiedToAccount, readClaudeModel } from "./claude-models.mjs";

export const bindingBeta = "thinking-binding-controls-2026-08-01";

/**
 * @typedef {object} Prefix what comes before a place in a request
 * @property {string} system
 * @property {string} tools
 * @property {string} messages
 * @property {number} count how many messages it has
 * @property {string} previous the last thinking block before the place that the model reads; "" if there is none
 *
 * @typedef {object} Judgement
 * @property {Prefix} end what the answer's thinking is bound to
 * @property {{ path: string, reason: string }[]} dropped
 * @property {{ path: string, reason: string }[]} allowed mismatches that an older account may send
 * @property {string | undefined} refusal the text of a 400
 * @property {string | undefined} header the value of `anthropic-thinking-prefix-mismatch`
 * @property {Set<object>} unread the blocks that are dropped
 */

/** @param {{ secret: string, organization: string, accountCreated: number, foreignThinking: "refuse" | "accept" }} account */
export function createThinkingBinder(account) {
  const seal = (text) => createHmac("sha256", account.secret).update(text).digest("base64url").slice(0, 22);

  /** Returns a text that only this provider can write. @param {object} state */
  function sealState(state) {
    const payload = Buffer.from(JSON.stringify(state)).toString("base64url");
    return `${payload}.${seal(payload)}`;
  }

  /** Signs the thinking of an answer. Each block is bound to the prefix and to the answer's blocks before it.
   *  @param {object[]} content @param {Prefix} prefix @param {string} model */
  function sign(content, prefix, model) {
    let { messages, previous } = prefix;
    let start = "assistant";
    return content.map((block) => {
      if (block.type !== "thinking" && block.type !== "redacted_thinking") {
        messages = extendHash(messages, start, block) ?? messages;
        start = "";
        return block;
      }
      const bound = { ...prefix, messages, previous, model, owner: hashOf(account.organization) };
      const signature = sealState({ ...bound, text: hashOf(block.thinking) });
      previous = unseal(signature).id;
      return block.type === "thinking" ? { ...block, signature } : { type: "redacted_thinking", data: signature };
    });
  }

  function unseal(signature) {
    const [payload = "", tag] = String(signature ?? "").split(".");
    if (tag !== seal(payload)) return undefined;
    return { ...JSON.parse(Buffer.from(payload, "base64url").toString()), id: tag };
  }

  /** Judges all thinking of a request. @param {object} body @param {string[]} betas @returns {Judgement} */
  function judge(body, betas) {
    const reader = readClaudeModel(body.model);
    const outcome = outcomeFor(reader, body.thinking?.block_binding, account.accountCreated);
    const judgement = { dropped: [], allowed: [], refusal: undefined, header: undefined, unread: new Set(), end: {} };
    const run = { previous: "", seen: new Set(), isReordered: false };
    judgement.end = walkPrefix(body, { unseal, run }, (block, prefix, path) => {
      const signed = readThinking(block, unseal);
      if (signed === undefined) {
        if (account.foreignThinking === "refuse") judgement.refusal ??= modifiedText(body, path);
        return;
      }
      const isKept = judgeBlock({ signed, prefix, path, run }, { reader, outcome, account, judgement, betas });
      if (!isKept) judgement.unread.add(block);
    });
    return judgement;
  }

  return { sign, judge, sealState, unseal };
}

/** @returns {"error" | "drop_block" | "record" | "ignore"} */
function outcomeFor({ binding }, field, accountCreated) {
  if (binding === "never") return "ignore";
  if (field !== undefined) return field.prefix_mismatch_behavior ?? "error";
  return binding === "always" || accountCreated >= bindingSince ? "error" : "record";
}

/** Calls `onThinking` for each thinking block with what comes before it, and returns what comes before the answer. */
function walkPrefix({ system, tools = [], messages }, { unseal, run }, onThinking) {
  const deferred = new Map(tools.filter((tool) => tool.defer_loading).map((tool) => [tool.name, canonicalBlock(tool)]));
  const fixed = {
    system: hashOf(...canonicalContent(system)),
    tools: hashOf(...canonicalTools(tools)),
  };
  let hash = "";
  const prefixAt = (count) => ({ ...fixed, messages: hash, count, previous: run.previous });
  for (const [index, { role, content }] of messages.entries()) {
    let start = role;
    for (const [place, block] of blocksOf(content).entries()) {
      if (block.type === "thinking" || block.type === "redacted_thinking") {
        onThinking(block, prefixAt(index), `messages.${index}.content.${place}`);
        continue;
      }
      // A compaction block stands for the messages that it summarises, so what follows still fits them.
      const replaced = block.type === "compaction" ? unseal(block.signature)?.messages : undefined;
      const next = replaced ?? extendHash(hash, start, block, deferred);
      if (next === undefined) continue;
      hash = next;
      start = "";
    }
  }
  return prefixAt(messages.length);
}

/** Returns undefined for a block that does not count. `start` is the role at the start of a message, else "". */
function extendHash(hash, start, block, deferred = new Map()) {
  const text = canonicalBlock(block);
  return text === undefined ? undefined : hashOf(hash, start, text, ...loadedTools(block, deferred));
}

/** A deferred tool counts from the place on where a result loads it. */
function loadedTools({ content }, deferred) {
  if (!Array.isArray(content)) return [];
  return content.flatMap(({ type, tool_name }) => (type === "tool_reference" ? (deferred.get(tool_name) ?? []) : []));
}

function readThinking({ type, thinking, signature, data }, unseal) {
  if (type === "redacted_thinking") return unseal(data);
  const signed = unseal(signature);
  return signed !== undefined && signed.text === hashOf(thinking) ? signed : undefined;
}

/** Returns whether the model reads the block. */
function judgeBlock({ signed, prefix, path, run }, { reader, outcome, account, judgement, betas }) {
  const author = readClaudeModel(signed.model);
  const foreign = isTiedToAccount(author) && signed.owner !== hashOf(account.organization);
  const reason = foreign ? "organization" : canReadThinking(reader, author) ? undefined : "model";
  if (reason !== undefined) {
    judgement.dropped.push({ path, reason: `${reason}_binding_mismatch` });
    return false;
  }
  const change = outcome === "ignore" ? undefined : findChange(signed, prefix, run);
  run.seen.add(signed.previous);
  if (change === undefined || outcome === "record") {
    if (change !== undefined) judgement.allowed.push({ path, reason: "prefix_binding_mismatch" });
    run.previous = signed.id;
    return true;
  }
  judgement.header ??= `block=${path};kind=${change.kind};pattern=${change.pattern}`;
  if (outcome === "error") judgement.refusal ??= mismatchText(path, change, betas);
  else judgement.dropped.push({ path, reason: "prefix_binding_mismatch" });
  return false;
}

/** The thinking that is kept must be one run of the original: blocks may be missing at its front and at its end. */
function findChange(signed, prefix, run) {
  for (const kind of ["system", "tools", "messages"]) {
    if (signed[kind] === prefix[kind]) continue;
    const grown = Math.sign(prefix.count - signed.count);
    return { kind, pattern: kind === "messages" ? ["removed", "edited", "added"][grown + 1] : "edited" };
  }
  if (run.seen.has(signed.id)) run.isReordered = true;
  if (run.isReordered) return { kind: "thinking", pattern: "reordered" };
  if (run.previous === "" || run.previous === signed.previous) return undefined;
  return { kind: "thinking", pattern: "removed" };
}

const changes = {
  system: "The system prompt changed.",
  tools: "The list of tools changed.",
  messages: "A message before the block changed.",
  thinking: "An earlier thinking block is missing or in another place.",
};

function mismatchText(path, { kind }, betas) {
  const field = "thinking.block_binding.prefix_mismatch_behavior";
  const beta = betas.includes(bindingBeta) ? "" : ` The field needs the header \`anthropic-beta: ${bindingBeta}\`.`;
  const bound = "The block is bound to a different conversation.";
  return `${path}: Invalid \`signature\` in \`thinking\` block. ${bound} Remove the block, or set \`${field}\` to "drop_block".${beta} ${changes[kind]}`;
}

function modifiedText({ messages }, path) {
  const latest = messages.findLastIndex(({ role }) => role === "assistant");
  if (!path.startsWith(`messages.${latest}.`)) return `${path}: Invalid \`signature\` in \`thinking\` block`;
  const kinds = "`thinking` or `redacted_thinking`";
  return `${path}: ${kinds} blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.`;
}
