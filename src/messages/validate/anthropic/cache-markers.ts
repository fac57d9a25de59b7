/** Cache markers: where `cache_control` may stand, how many, in which order of lifetimes. */
import type { Fields } from "../../fields.ts";
import { blocksOf, type CheckedRequest, hasText, type Problem, problem } from "../rule-set.ts";

const mostMarkers = 4;

interface Marked {
  readonly block: Fields;
  readonly path: string;
  readonly lifetime: "5m" | "1h";
  /** A block inside a tool result, or a citation. */
  readonly isNested: boolean;
}

/** Rules `cache-marker-place`, `cache-marker-count`, `cache-marker-order` and `cache-marker-conflict`. */
export function* checkMarkers(request: CheckedRequest): Generator<Problem> {
  const marked = markedBlocks(request);
  yield* checkPlaces(marked);
  yield* checkLimits(marked);
  yield* checkAutomaticMarker(request, marked);
}

/** The documents forbid markers on parts of a block; in tool results the SDK's types allow them. */
export function* checkNestedMarkers(request: CheckedRequest): Generator<Problem> {
  for (const { path, isNested } of markedBlocks(request)) {
    if (isNested)
      yield problem("cache-marker-place", `${path}.cache_control`, "stands inside of another block");
  }
}

function* checkPlaces(marked: readonly Marked[]): Generator<Problem> {
  for (const { block, path } of marked) {
    const where = `${path}.cache_control`;
    if (block.type === "thinking" || block.type === "redacted_thinking") {
      yield problem("cache-marker-place", where, "stands on thinking, which cannot be marked");
    } else if (block.type === "text" && !hasText(block.text)) {
      yield problem("cache-marker-place", where, "stands on an empty text, which cannot be marked");
    }
  }
}

function* checkLimits(marked: readonly Marked[]): Generator<Problem> {
  const beyond = marked[mostMarkers];
  if (beyond !== undefined) {
    const message = `is marker ${mostMarkers + 1} of ${marked.length}; a request has at most ${mostMarkers}`;
    yield problem("cache-marker-count", `${beyond.path}.cache_control`, message);
  }
  const short = marked.findIndex(({ lifetime }) => lifetime === "5m");
  const long = short < 0 ? undefined : marked.slice(short).find(({ lifetime }) => lifetime === "1h");
  if (long !== undefined) {
    const message = `lives for an hour behind one of 5 minutes (${marked[short]?.path}); longer ones come first`;
    yield problem("cache-marker-order", `${long.path}.cache_control.ttl`, message);
  }
}

/** The marker of the request itself takes a slot at the last block. */
function* checkAutomaticMarker(
  { fields, turns }: CheckedRequest,
  marked: readonly Marked[],
): Generator<Problem> {
  if (!isMarker(fields?.cache_control)) return;
  const lastBlock = turns.flatMap((turn) => blocksOf(turn).slice(-1)).at(-1);
  const own = marked.find(({ block }) => block === lastBlock);
  if (own !== undefined && own.lifetime !== lifetimeOf(fields.cache_control)) {
    const message = `has another lifetime than the marker of ${own.path}, where it would stand`;
    yield problem("cache-marker-conflict", "cache_control", message);
  } else if (own === undefined && marked.length === mostMarkers) {
    const message = `needs a slot of its own, and ${mostMarkers} markers are there already`;
    yield problem("cache-marker-count", "cache_control", message);
  }
}

/** In the order of the prompt: tools, system, messages. */
function markedBlocks({ fields, turns }: CheckedRequest): Marked[] {
  const marked: Marked[] = [];
  if (Array.isArray(fields?.tools)) addMarked(fields.tools, { path: "tools", marked, isNested: false });
  if (Array.isArray(fields?.system)) addMarked(fields.system, { path: "system", marked, isNested: false });
  for (const turn of turns) {
    const blocks = blocksOf(turn);
    if (blocks.some(mayBeMarked))
      addMarked(blocks, { path: `${turn.path}.content`, marked, isNested: false });
  }
  return marked;
}

/** Most messages have none: no path is made for them. */
function mayBeMarked({ cache_control, content, citations }: Fields): boolean {
  return isMarker(cache_control) || Array.isArray(content) || Array.isArray(citations);
}

interface MarkedWalk {
  readonly path: string;
  readonly marked: Marked[];
  readonly isNested: boolean;
}

function addMarked(blocks: readonly unknown[], { path, marked, isNested }: MarkedWalk): void {
  for (const [index, each] of blocks.entries()) {
    const block = Object(each) as Fields;
    for (const key of isNested ? [] : innerKeys) {
      const inner = block[key];
      if (!Array.isArray(inner)) continue;
      addMarked(inner, { path: `${path}[${index}].${key}`, marked, isNested: true });
    }
    if (!isMarker(block.cache_control)) continue;
    marked.push({ block, path: `${path}[${index}]`, lifetime: lifetimeOf(block.cache_control), isNested });
  }
}

const innerKeys = ["content", "citations"];

function isMarker(value: unknown): value is Fields {
  return typeof value === "object" && value !== null;
}

function lifetimeOf({ ttl }: Fields): "5m" | "1h" {
  return ttl === "1h" ? "1h" : "5m";
}
