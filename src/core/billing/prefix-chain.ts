import { ContextError } from "../errors.ts";

/** The prefixes of requests, by which a simulated cache finds what it knows. */

/** One piece of a request. Blocks with equal keys have equal content. A block must not be changed once it was
 *  billed. */
export interface BillableBlock {
  readonly key: string | number;
  readonly tokens: number;
  readonly kind: BlockKind;
}

export type BlockKind = "prefix" | "text" | "thinking" | "tool_call" | "tool_result" | "media" | "other";

export type LookbackMode = "positions" | "blocks";

/** The prefixes of a request, one after each block: hash, tokens and position. A history usually comes back with a
 *  little appended, so only what follows the longest common prefix with the previous request is computed again. */
export interface PrefixChain {
  /** Takes the blocks of the next request. Recognises blocks at the same place by identity or by key; the first
   *  `sameBlocks` are those of the previous request and need not be compared. */
  update(blocks: readonly BillableBlock[], sameBlocks?: number): void;
  readonly length: number;
  /** Equal for equal prefixes. It has 53 bits: two of a million prefixes collide once in 20,000 runs. */
  hash(index: number): number;
  tokens(index: number): number;
  /** Returns the hashes of all prefixes, to compare with those of a later request. */
  snapshot(): Int32Array;
  /** Returns how many blocks this request and an earlier one have in common at the start. */
  commonBlocks(snapshot: Int32Array): number;
  /** Returns the position of a block for lookback. A run of tool calls, or of tool results, is one position. */
  position(index: number): number;
}

export function createPrefixChain(mode: LookbackMode): PrefixChain {
  const known: BillableBlock[] = [];
  const keyLanes = new Int32Array(2);
  let lanes = new Int32Array(2 * initialBlocks);
  let tokens = new Float64Array(initialBlocks);
  let positions = new Int32Array(initialBlocks);
  /** How many blocks snapshots have. They share the memory of `lanes`: while requests only grow, nothing is copied. */
  let shared = 0;
  const seed1 = 0x2545f491;
  const seed2 = 0x6c8e9cf5;
  const append = (block: BillableBlock): void => {
    const index = known.length;
    if (index === tokens.length) [lanes, tokens, positions] = [doubled(lanes), doubled(tokens), doubled(positions)];
    tokens[index] = (index === 0 ? 0 : tokens[index - 1]!) + checkTokens(block, index);
    const inRun =
      index > 0 &&
      mode === "positions" &&
      known[index - 1]!.kind === block.kind &&
      (block.kind === "tool_call" || block.kind === "tool_result");
    positions[index] = index === 0 ? 0 : positions[index - 1]! + (inRun ? 0 : 1);
    hashKey(block.key, keyLanes);
    lanes[2 * index] = mix(index === 0 ? seed1 : lanes[2 * index - 2]!, keyLanes[0]!);
    lanes[2 * index + 1] = mix(index === 0 ? seed2 : lanes[2 * index - 1]!, keyLanes[1]!);
    known.push(block);
  };
  return {
    update(blocks, sameBlocks = 0) {
      const most = Math.min(known.length, blocks.length);
      let same = Math.min(sameBlocks, most);
      while (same < most && isSameBlock(known[same]!, blocks[same]!)) same++;
      known.length = same;
      if (same < shared && same < blocks.length) [lanes, shared] = [lanes.slice(), 0];
      for (let index = same; index < blocks.length; index++) append(blocks[index]!);
    },
    get length() {
      return known.length;
    },
    hash: (index) => (lanes[2 * index]! >>> 0) * 2 ** 21 + (lanes[2 * index + 1]! >>> 11),
    snapshot() {
      shared = Math.max(shared, known.length);
      return lanes.subarray(0, 2 * known.length);
    },
    commonBlocks: (snapshot) => commonBlocks(lanes.subarray(0, 2 * known.length), snapshot),
    tokens: (index) => tokens[index]!,
    position: (index) => positions[index]!,
  };
}

const initialBlocks = 256;

function doubled<Numbers extends Int32Array<ArrayBuffer> | Float64Array<ArrayBuffer>>(numbers: Numbers): Numbers {
  const larger =
    numbers instanceof Int32Array ? new Int32Array(2 * numbers.length) : new Float64Array(2 * numbers.length);
  larger.set(numbers);
  return larger as Numbers;
}

function checkTokens(block: BillableBlock, index: number): number {
  if (Number.isFinite(block.tokens) && block.tokens >= 0) return block.tokens;
  throw new ContextError("invalid_argument", `blocks[${index}].tokens is ${block.tokens}, which is not a token count`);
}

function isSameBlock(known: BillableBlock, block: BillableBlock): boolean {
  if (known === block) return true;
  return known.key === block.key && known.tokens === block.tokens && known.kind === block.kind;
}

/** Computes two independent 32-bit hashes of a key. A number and its text are different keys. */
function hashKey(key: string | number, lanes: Int32Array): void {
  if (typeof key === "number" && Number.isSafeInteger(key)) {
    lanes[0] = mix(mix(1, key | 0), Math.floor(key / 2 ** 32));
    lanes[1] = mix(mix(2, key | 0), Math.floor(key / 2 ** 32));
    return;
  }
  const text = String(key);
  let [first, second] = typeof key === "number" ? [3, 4] : [5, 6];
  for (let index = 0; index < text.length; index++) {
    first = Math.imul(first ^ text.charCodeAt(index), 0x01000193);
    second = Math.imul(second + text.charCodeAt(index), 0x5bd1e995) ^ (second >>> 15);
  }
  lanes[0] = mix(first, text.length);
  lanes[1] = mix(second, text.length);
}

/** One round of MurmurHash3's mixing and its final steps: every bit of the value affects every bit of the hash. */
function mix(hash: number, value: number): number {
  let mixed = Math.imul(value, 0xcc9e2d51);
  mixed = hash ^ Math.imul((mixed << 15) | (mixed >>> 17), 0x1b873593);
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b) + 0x38495ab5;
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}

/** Equal prefixes have equal hashes, so a binary search finds the first difference. */
function commonBlocks(first: Int32Array, second: Int32Array): number {
  let same = 0;
  let differs = Math.min(first.length, second.length) / 2 + 1;
  while (differs - same > 1) {
    const middle = (same + differs) >> 1;
    const at = 2 * middle - 2;
    if (first[at] === second[at] && first[at + 1] === second[at + 1]) same = middle;
    else differs = middle;
  }
  return same;
}
