/** Rules of Anthropic's API for a request's settings, its system and last messages, and its cache markers. */
import type { Fields } from "../../text/index.ts";
import {
  type Check,
  type CheckedMessage,
  type CheckedRequest,
  getBlocks,
  hasText,
  type Problem,
  problem,
} from "./rule-set.ts";

/** The rules of this file. `first` and `last` run before and after the rules for messages and their content. */
export const anthropicRequestRules: {
  readonly first: readonly Check[];
  readonly last: readonly Check[];
  readonly strict: readonly Check[];
} = {
  first: [checkSystemMessages],
  last: [checkMarkers, checkCompaction, checkModelLimits],
  strict: [checkLastMessage, checkTrailingWhiteSpace, checkNestedMarkers, checkToolsGiven],
};

/** Rules `prefill`, `sampling-parameter`, `thinking-setting` and `forced-tool`. */
function* checkModelLimits({ turns, fields, model }: CheckedRequest): Generator<Problem> {
  if (fields === undefined || model === undefined) return;
  const last = turns.at(-1);
  if (last?.role === "assistant" && !isPaused(last) && rejects(model, "prefill")) {
    yield problem("prefill", `${last.path}.role`, `is "assistant"; ${model} does not continue an assistant message`);
  }
  // The API accepts its default value for them.
  const samplingParameters: readonly (readonly [string, number | undefined])[] = [
    ["temperature", 1],
    ["top_p", 1],
    ["top_k", undefined],
  ];
  if (rejects(model, "sampling")) {
    for (const [key, standard] of samplingParameters) {
      const value = fields[key];
      if (value === undefined || value === null || value === standard) continue;
      yield problem("sampling-parameter", key, `is set, but ${model} does not accept sampling parameters`);
    }
  }
  yield* checkThinkingSetting(Object(fields.thinking) as Fields, model);
  const choice = (Object(fields.tool_choice) as Fields).type;
  if ((choice === "any" || choice === "tool") && rejects(model, "forced-tool")) {
    yield problem("forced-tool", "tool_choice.type", `is "${choice}"; ${model} cannot be forced to use a tool`);
  }
}

function* checkThinkingSetting({ type, budget_tokens }: Fields, model: string): Generator<Problem> {
  if (budget_tokens !== undefined && rejects(model, "budget")) {
    const message = `is set, but ${model} does not accept a thinking budget`;
    yield problem("thinking-setting", "thinking.budget_tokens", message);
  } else if (type === "disabled" && rejects(model, "disabled")) {
    yield problem("thinking-setting", "thinking.type", `is "disabled"; ${model} always thinks`);
  }
}

/** Rules `compaction-edit` and `compaction-mid-turn`. */
function* checkCompaction({ turns, fields }: CheckedRequest): Generator<Problem> {
  if (typeof fields?.compaction !== "object" || fields.compaction === null) return;
  const { edits } = Object(fields.context_management) as Fields;
  const types: readonly unknown[] = Array.isArray(edits) ? edits.map((edit) => Object(edit).type) : [];
  if (types.some((type) => typeof type === "string" && type.startsWith("compact_"))) {
    yield problem("compaction-edit", "compaction", "cannot be combined with a compact_ edit");
  }
  const last = turns.at(-1);
  if (last !== undefined && getBlocks(last).some(({ type }) => type === "tool_result" || type === "tool_use")) {
    yield problem("compaction-mid-turn", "compaction", `cannot begin in the middle of a turn (${last.path})`);
  }
}

/** Rule `tools-missing`. No API error is known, but a model that sees calls of tools that it lacks may misbehave. */
function* checkToolsGiven({ turns, fields }: CheckedRequest): Generator<Problem> {
  const tools = fields?.tools;
  if (fields === undefined || (Array.isArray(tools) && tools.length > 0)) return;
  const hasCalls = turns.some((turn) => getBlocks(turn).some(({ type }) => type === "tool_use"));
  if (!hasCalls) return;
  const message = "is missing, although the messages have tool calls";
  yield { ...problem("tools-missing", "tools", message), severity: "warning" };
}

/** What an Anthropic model refuses although the API defines it. Nothing is assumed about an unknown model. */
export type ModelLimit = "system-role" | "prefill" | "sampling" | "budget" | "disabled" | "forced-tool";

export function rejects(model: string | undefined, limit: ModelLimit): boolean {
  const known = model === undefined ? undefined : parseVersion(model);
  if (known === undefined) return false;
  const { from, upTo } = limits[limit];
  const [first, last] = [from?.[known.line], upTo?.[known.line]];
  return (first !== undefined && known.version >= first) || (last !== undefined && known.version <= last);
}

type ModelLine = "opus" | "sonnet" | "haiku" | "fable" | "mythos";
type ByLine = Partial<Readonly<Record<ModelLine, number>>>;

// Versions are major × 100 + minor. From the platform's migration guides, "What's new" pages and "Mid-conversation
// system messages", 2026-11-15.
const limits: Readonly<Record<ModelLimit, { from?: ByLine; upTo?: ByLine }>> = {
  "system-role": { upTo: { opus: 407, sonnet: 500, haiku: 405 } },
  prefill: { from: { opus: 406, sonnet: 406, haiku: 505, fable: 500, mythos: 500 } },
  sampling: { from: { opus: 407, sonnet: 500, haiku: 505, fable: 500, mythos: 500 } },
  budget: { from: { opus: 407, sonnet: 500, haiku: 505, fable: 500, mythos: 500 } },
  disabled: { from: { opus: 505, sonnet: 505, fable: 500, mythos: 500 } },
  "forced-tool": { from: { opus: 505, sonnet: 505, fable: 501, mythos: 501 } },
};

/** Reads `claude-opus-4-8`, `claude-3-5-sonnet-20241022`, `anthropic.claude-sonnet-5`. A date is not a minor
 *  version. */
function parseVersion(model: string): { line: ModelLine; version: number } | undefined {
  const id = model.toLowerCase();
  const line = /opus|sonnet|haiku|fable|mythos/.exec(id)?.[0] as ModelLine | undefined;
  const version = /claude-(?:[a-z]+-)*(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)/.exec(id);
  if (line === undefined || version === null) return undefined;
  return { line, version: Number(version[1]) * 100 + Number(version[2] ?? 0) };
}

/** Rules `system-role` and `system-position`. A bare list may start with the system prompt, because a request has a
 *  field for it. */
function* checkSystemMessages({ turns, fields, model }: CheckedRequest): Generator<Problem> {
  const isUnsupported = rejects(model, "system-role");
  const start = fields === undefined ? turns.findIndex(({ role }) => role !== "system") : 0;
  for (const [index, turn] of turns.entries()) {
    if (turn.role !== "system" || index < start || start < 0) continue;
    if (isUnsupported)
      yield problem("system-role", `${turn.path}.role`, `is "system", but ${model} does not accept system messages`);
    else yield* checkSystemMessage(turn, { before: turns[index - 1], after: turns[index + 1] });
  }
}

function* checkSystemMessage(
  turn: CheckedMessage,
  { before, after }: { before: CheckedMessage | undefined; after: CheckedMessage | undefined },
): Generator<Problem> {
  const path = `${turn.path}.role`;
  if (before === undefined) {
    yield problem("system-position", path, 'is "system" in the first message; use the field system');
  } else if (!before.isMalformed && !mayPrecedeSystem(before)) {
    yield problem("system-position", path, 'is "system"; a system message must follow a user message');
  } else if (after !== undefined && !after.isMalformed && after.role !== "assistant") {
    yield problem("system-position", path, 'is "system"; an assistant message must follow a system message');
  }
  for (const [index, { type }] of getBlocks(turn).entries()) {
    if (systemTypes.has(type)) continue;
    yield problem("block-role", `${turn.path}.content[${index}].type`, `${type} is not allowed in a system message`);
  }
}

const systemTypes: ReadonlySet<unknown> = new Set(["text", "tool_addition", "tool_removal"]);

function mayPrecedeSystem(turn: CheckedMessage): boolean {
  if (turn.role !== "assistant") return turn.role === "user";
  const last = getBlocks(turn).at(-1)?.type;
  if (typeof last !== "string") return false;
  return last === "server_tool_use" || (last.endsWith("_tool_result") && last !== "mcp_tool_result");
}

function* checkLastMessage({ turns, fields }: CheckedRequest): Generator<Problem> {
  const last = turns.at(-1);
  if (fields === undefined || last?.role !== "assistant" || isPaused(last)) return;
  yield problem("last-message", `${last.path}.role`, 'is "assistant"; a request must end with a user message');
}

function* checkTrailingWhiteSpace({ turns }: CheckedRequest): Generator<Problem> {
  const last = turns.at(-1);
  if (last?.role !== "assistant") return;
  const blocks = getBlocks(last);
  const text = typeof last.message.content === "string" ? last.message.content : blocks.at(-1)?.text;
  if (typeof text !== "string" || !/\s$/.test(text)) return;
  const path = blocks.length === 0 ? `${last.path}.content` : `${last.path}.content[${blocks.length - 1}].text`;
  yield problem("trailing-white-space", path, "ends with white space; the last assistant message must not");
}

/** A turn that the API paused is continued by sending it back unchanged. */
function isPaused(turn: CheckedMessage): boolean {
  return getBlocks(turn).some(({ type }) => type === "server_tool_use");
}

const maxMarkers = 4;

interface Marked {
  readonly block: Fields;
  readonly path: string;
  readonly lifetime: "5m" | "1h";
  /** Inside a tool result, or in a citation. */
  readonly isNested: boolean;
}

/** Rules `cache-marker-place`, `cache-marker-count`, `cache-marker-order` and `cache-marker-conflict`. */
function* checkMarkers(request: CheckedRequest): Generator<Problem> {
  const marked = findMarked(request);

  for (const { block, path } of marked) {
    const where = `${path}.cache_control`;
    if (block.type === "thinking" || block.type === "redacted_thinking") {
      yield problem("cache-marker-place", where, "is on a thinking block, which cannot carry a marker");
    } else if (block.type === "text" && !hasText(block.text)) {
      yield problem("cache-marker-place", where, "is on an empty text, which cannot carry a marker");
    }
  }

  const beyond = marked[maxMarkers];
  if (beyond !== undefined) {
    const message = `is marker ${maxMarkers + 1} of ${marked.length}; a request has at most ${maxMarkers}`;
    yield problem("cache-marker-count", `${beyond.path}.cache_control`, message);
  }
  const short = marked.findIndex(({ lifetime }) => lifetime === "5m");
  const long = short < 0 ? undefined : marked.slice(short).find(({ lifetime }) => lifetime === "1h");
  if (long !== undefined) {
    const message = `lasts an hour but follows one of 5 minutes (${marked[short]?.path}); longer ones must come first`;
    yield problem("cache-marker-order", `${long.path}.cache_control.ttl`, message);
  }
  // The request's own marker takes a slot, at the last block.
  const { fields, turns } = request;
  if (!isMarker(fields?.cache_control)) return;
  const lastBlock = turns.flatMap((turn) => getBlocks(turn).slice(-1)).at(-1);
  const own = marked.find(({ block }) => block === lastBlock);
  if (own !== undefined && own.lifetime !== readLifetime(fields.cache_control)) {
    const message = `has another lifetime than the marker on the same block, ${own.path}`;
    yield problem("cache-marker-conflict", "cache_control", message);
  } else if (own === undefined && marked.length === maxMarkers) {
    const message = `needs a slot, but the request already has ${maxMarkers} markers`;
    yield problem("cache-marker-count", "cache_control", message);
  }
}

/** The documentation forbids markers inside a block; the SDK's types allow them in tool results. */
function* checkNestedMarkers(request: CheckedRequest): Generator<Problem> {
  for (const { path, isNested } of findMarked(request)) {
    if (isNested) yield problem("cache-marker-place", `${path}.cache_control`, "is inside another block");
  }
}

/** Returns the marked blocks in the order of the prompt: tools, system, messages. */
function findMarked({ fields, turns }: CheckedRequest): Marked[] {
  const marked: Marked[] = [];
  if (Array.isArray(fields?.tools)) addMarked(fields.tools, { path: "tools", marked, isNested: false });
  if (Array.isArray(fields?.system)) addMarked(fields.system, { path: "system", marked, isNested: false });
  for (const turn of turns) {
    const blocks = getBlocks(turn);
    // Most messages have no marker. No path is built for them.
    if (
      blocks.some(
        ({ cache_control, content, citations }) =>
          isMarker(cache_control) || Array.isArray(content) || Array.isArray(citations),
      )
    )
      addMarked(blocks, { path: `${turn.path}.content`, marked, isNested: false });
  }
  return marked;
}

function addMarked(
  blocks: readonly unknown[],
  {
    path,
    marked,
    isNested,
  }: {
    readonly path: string;
    readonly marked: Marked[];
    readonly isNested: boolean;
  },
): void {
  for (const [index, each] of blocks.entries()) {
    const block = Object(each) as Fields;
    for (const key of isNested ? [] : ["content", "citations"]) {
      const inner = block[key];
      if (!Array.isArray(inner)) continue;
      addMarked(inner, { path: `${path}[${index}].${key}`, marked, isNested: true });
    }
    if (!isMarker(block.cache_control)) continue;
    marked.push({ block, path: `${path}[${index}]`, lifetime: readLifetime(block.cache_control), isNested });
  }
}

function isMarker(value: unknown): value is Fields {
  return typeof value === "object" && value !== null;
}

function readLifetime({ ttl }: Fields): "5m" | "1h" {
  return ttl === "1h" ? "1h" : "5m";
}
