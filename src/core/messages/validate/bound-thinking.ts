/** Rule `thinking-bound`: thinking that comes back after something before it has changed. Only the requests of a
 *  conversation together show it: a block is bound to the request that it answered. */
import { createHashKey, createKeyedHash, type Fields, type KeyedHash } from "../../text/index.ts";
import { bindsThinking, blockForm, blocksIn, contentForm, findBindingChange } from "../bound-prefix.ts";
import { type Problem, problem } from "./rule-set.ts";

/** Returns a check that knows the requests before: call it for each, in the order in which they were sent. It names the
 *  first block of a request that the provider would refuse, and each block once. */
export function createBindingCheck(): (request: Fields) => Problem | undefined {
  const hash = createKeyedHash(createHashKey());
  const conversations = new Map<string, Conversation>();
  return (request) => {
    const { messages, model } = request;
    if (!Array.isArray(messages)) return undefined;
    const name = hash.text(contentForm(Object(messages[0]).content).join());
    const known = conversations.get(name) ?? { origins: new Map(), reported: new Set(), ends: [] };
    conversations.set(name, known);
    const found = walkRequest(request, known, hash);
    const isBound = typeof model === "string" && bindsThinking(model);
    if (!isBound || found === undefined || known.reported.has(found.id)) return undefined;
    known.reported.add(found.id);
    const { block_binding: binding } = Object(request.thinking) as Fields;
    const isDropped = (Object(binding) as Fields).prefix_mismatch_behavior === "drop_block";
    const text = `is bound to other text: ${found.reason}`;
    const refusal = problem(
      "thinking-bound",
      found.path,
      isDropped ? `${text}; the API drops it` : `${text}; remove it and all later thinking`,
    );
    return isDropped ? { ...refusal, severity: "warning" } : refusal;
  };
}

interface Conversation {
  /** What each block of thinking is bound to, by its signature. */
  readonly origins: Map<string, Origin>;
  readonly reported: Set<string>;
  /** The ends of the requests so far. */
  readonly ends: Origin[];
}

interface Origin {
  readonly request: Fields;
  /** The hash of system text and tools. */
  readonly fixed: string;
  /** The hash of everything that counts up to the end of each message, and of the last message alone. */
  readonly chains: readonly string[];
  readonly last: string;
  /** The hash of everything up to the block. */
  readonly chain: string;
  /** The last thinking before it, or "". */
  readonly thinking: string;
}

interface RefusedBlock {
  readonly id: string;
  readonly path: string;
  /** Why it would be refused. */
  readonly reason: string;
}

/** Returns the first block that would be refused, and remembers what each block is bound to. */
function walkRequest(request: Fields, known: Conversation, hash: KeyedHash): RefusedBlock | undefined {
  const messages = (request.messages as readonly unknown[]).map((message) => Object(message) as Fields);
  const answer = messages.findLastIndex(({ role }) => role === "assistant");
  const { system, tools } = getFixedParts(request);
  const fixed = hash.text(JSON.stringify([contentForm(system), tools.map((tool) => blockForm(tool) ?? "").sort()]));
  const hashContent = (message: Fields | undefined): string => hash.text(contentForm(message?.content).join());
  const chains: string[] = [];
  const start: Origin = { request, fixed, chains, last: hashContent(messages.at(-1)), chain: "", thinking: "" };
  const walk: Walk = { known, hash, here: start, origin: undefined, refused: undefined };
  for (const [index, message] of messages.entries()) {
    // The newest answer is bound to the request before it. Other thinking that is new is taken as it is.
    walk.origin = index === answer ? findAsked(known, fixed, hashContent(messages[index - 1])) : undefined;
    walkMessage(walk, message, `messages[${index}]`);
    chains.push(walk.here.chain);
  }
  known.ends.push(walk.here);
  return walk.refused;
}

interface Walk {
  readonly known: Conversation;
  readonly hash: KeyedHash;
  /** What comes before the place that the walk has reached, in this request. */
  here: Origin;
  /** The same as it was for the model that wrote the message. Absent if it is not known. */
  origin: Origin | undefined;
  refused: RefusedBlock | undefined;
}

function walkMessage(walk: Walk, { role, content }: Fields, path: string): void {
  // Two messages are not the same as one with the blocks of both.
  let start = role;
  for (const [at, block] of blocksIn(content).entries()) {
    const id = readSeal(block);
    if (id !== undefined) {
      const bound = walk.known.origins.get(id) ?? walk.origin ?? walk.here;
      walk.known.origins.set(id, bound);
      const reason = findReason(bound, walk.here);
      if (reason !== undefined) walk.refused ??= { id, path: `${path}.content[${at}]`, reason };
    }
    const step = { block, id, form: blockForm(block), start };
    if (id === undefined && step.form !== undefined) start = "";
    walk.here = extend(walk.here, step, walk);
    walk.origin &&= extend(walk.origin, step, walk);
  }
}

/** Returns the request that was answered: the last one that ended with the message before the answer. */
function findAsked({ ends }: Conversation, fixed: string, last: string): Origin | undefined {
  const asked = ends.filter((end) => end.last === last);
  return asked.findLast((end) => end.fixed === fixed) ?? asked.at(-1) ?? ends.findLast((end) => end.fixed === fixed);
}

interface BlockStep {
  readonly block: Fields;
  /** Set for thinking. */
  readonly id: string | undefined;
  readonly form: string | undefined;
  /** At the start of a message its role, then "". */
  readonly start: unknown;
}

function extend(origin: Origin, { block, id, form, start }: BlockStep, { here, hash }: Walk): Origin {
  if (id !== undefined) return { ...origin, thinking: id };
  if (form === undefined) return origin;
  // A compaction stands for everything before it, and thinking after it is not bound to that any more.
  if (block.type === "compaction") return { ...origin, chain: hash.text(form) };
  return { ...origin, chain: hash.text([origin.chain, start, form, ...loadedTools(block, here.request)].join(" ")) };
}

function readSeal({ type, signature, data }: Fields): string | undefined {
  if (type !== "thinking" && type !== "redacted_thinking") return undefined;
  const seal = type === "thinking" ? signature : data;
  return typeof seal === "string" && seal !== "" ? seal : undefined;
}

/** A tool that is loaded on demand counts from the result on that names it. */
function loadedTools({ content }: Fields, { tools }: Fields): string[] {
  const names = blocksIn(content).flatMap(({ type, tool_name }) => (type === "tool_reference" ? [tool_name] : []));
  if (names.length === 0 || !Array.isArray(tools)) return [];
  return (tools as Fields[]).flatMap((tool) => (names.includes(tool.name) ? (blockForm(tool) ?? []) : []));
}

function findReason(origin: Origin, here: Origin): string | undefined {
  const isFixed = origin.fixed === here.fixed;
  const change = isFixed ? undefined : findBindingChange(getFixedParts(origin.request), getFixedParts(here.request));
  if (change !== undefined) {
    const { systemAt, addedTools, removedTools, changedTools } = change;
    const lists = { added: addedTools, removed: removedTools, changed: changedTools };
    const tools = Object.entries(lists).flatMap(([what, names]) =>
      names.length > 0 ? `${what} ${names.join(", ")}` : [],
    );
    const system = systemAt === undefined ? [] : [`the system text changed at character ${systemAt}`];
    return [...system, ...(tools.length > 0 ? [`the tools changed: ${tools.join("; ")}`] : [])].join(", and ");
  }
  if (origin.chain !== here.chain) {
    const first = origin.chains.findIndex((chain, index) => here.chains[index] !== chain);
    const where = first >= 0 && first < here.chains.length ? `messages[${first}]` : "a message before it";
    return `${where} is not what it was when the model wrote the block`;
  }
  const hasGap = here.thinking !== "" && here.thinking !== origin.thinking;
  return hasGap ? "thinking between it and an earlier block is missing" : undefined;
}

function getFixedParts({ system, tools }: Fields): { system: unknown; tools: readonly Fields[] } {
  return { system, tools: Array.isArray(tools) ? tools : [] };
}
