/** Plays a recorded conversation against a provider through a client, turn by turn. */
import { blocksOf } from "./canonical.mjs";

/** Reads a transcript of one message a line into a request that the API accepts: system text, tools, and messages with
 *  unique ids and answered calls. @param {string | readonly object[]} transcript */
export function readTranscript(transcript) {
  const lines = typeof transcript === "string" ? transcript.split("\n").filter(Boolean).map(JSON.parse) : transcript;
  const recorded = lines.filter(({ role }) => role !== undefined);
  const start = recorded.findIndex(({ role }) => role !== "system");
  const system = recorded.slice(0, start).flatMap(({ content }) => blocksOf(content));
  const messages = repairMessages(recorded.slice(start));
  const names = new Set(messages.flatMap(({ content }) => content.flatMap(({ name }) => name ?? [])));
  const tools = [...names].map((name) => ({ name, description: `Runs ${name}.`, input_schema: { type: "object" } }));
  return { ...(system.length > 0 && { system }), tools, messages };
}

/**
 * Sends the history of each turn with `send`, and continues with the recorded answer. The thinking in it is what this
 * provider signed for the turn, as a client would keep it. Returns how many calls were made.
 * @param {ReturnType<typeof readTranscript>} transcript
 * @param {(request: object) => Promise<{ content: object[] }>} send
 */
export async function playTranscript({ messages: recorded, ...fixed }, send) {
  const messages = [];
  let calls = 0;
  for (const { role, content } of recorded) {
    if (role === "user") {
      messages.push({ role, content });
      continue;
    }
    const answer = await send({ ...fixed, messages: [...messages] });
    const thinking = answer.content.filter(isThinking);
    messages.push({ role, content: [...thinking, ...content] });
    calls++;
  }
  return { calls, messages };
}

/** Leaves only what a client would send: no recorded thinking, no results without a call, every call answered. */
function repairMessages(recorded) {
  const messages = [];
  const ids = createIds();
  let open = [];
  for (const { role, content } of recorded) {
    const blocks = blocksOf(content).filter((block) => !isThinking(block) && /\S/.test(block.text ?? "text"));
    if (role === "assistant") {
      if (blocks.length === 0) continue;
      if (open.length > 0) messages.push({ role: "user", content: open.map(interrupted) });
      const renamed = blocks.map((block) => (block.type === "tool_use" ? { ...block, id: ids.open(block.id) } : block));
      open = renamed.flatMap(({ type, id }) => (type === "tool_use" ? [id] : []));
      addMessage(messages, "assistant", renamed);
      continue;
    }
    const { results, rest } = splitResults(blocks, ids, open);
    const answered = results.map(({ tool_use_id: id }) => id);
    const missing = open.filter((id) => !answered.includes(id)).map(interrupted);
    addMessage(messages, "user", [...results, ...missing, ...rest]);
    open = [];
  }
  return messages;
}

/** Recordings use some ids twice. */
function createIds() {
  const current = new Map();
  const used = new Set();
  return {
    open(id) {
      let fresh = id;
      for (let copy = 2; used.has(fresh); copy++) fresh = `${id}_${copy}`;
      used.add(fresh);
      current.set(id, fresh);
      return fresh;
    },
    of: (id) => current.get(id) ?? id,
  };
}

function splitResults(blocks, ids, open) {
  const isResult = ({ type }) => type === "tool_result";
  const named = blocks.filter(isResult).map((block) => ({ ...block, tool_use_id: ids.of(block.tool_use_id) }));
  const results = open.flatMap((id) => named.find(({ tool_use_id }) => tool_use_id === id) ?? []);
  return { results, rest: blocks.filter((block) => !isResult(block)) };
}

function addMessage(messages, role, content) {
  if (content.length === 0) return;
  const last = messages.at(-1);
  if (last?.role === role) last.content = [...last.content, ...content];
  else messages.push({ role, content });
}

function interrupted(id) {
  return { type: "tool_result", tool_use_id: id, content: "interrupted", is_error: true };
}

function isThinking({ type }) {
  return type === "thinking" || type === "redacted_thinking";
}
