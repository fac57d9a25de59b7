/** What a conversation learned from refusals: limits that no table knows, thinking that no longer fits, and hosts that
 *  report no usage in streams. With a store it survives a restart. */

import { nameMessage } from "../../core/messages/index.ts";
import type { Store } from "../../core/store/index.ts";
import { type Fields, isNumber, isText, listOf, mapOf, objectOf, readJson } from "../../core/text/index.ts";
import type { Reduction } from "../history/index.ts";

export interface Learned {
  /** Returns the limits of a model that refusals showed. */
  readLimits(model: string): LearnedLimits;
  addLimits(model: string, limits: LearnedLimits): Promise<void>;
  /** Removes the thinking in the messages from an index on, now and in every later request. Returns false if there is
   *  none. */
  dropThinking(messages: readonly object[], from: number): Promise<boolean>;
  /** Whether a refusal showed that thinking is bound to what comes before it. */
  readonly hasBoundThinking: boolean;
  /** Returns the reduction without the thinking that was dropped. */
  withoutThinking(reduction: Reduction): Reduction;
  readonly hosts: RefusingHosts;
}

export interface LearnedLimits {
  /** The most tokens that a request and its answer may have. */
  readonly contextWindow?: number | undefined;
  /** The tokens that the model keeps free for an answer. */
  readonly reserve?: number | undefined;
}

/** Hosts that refuse `stream_options`. */
export interface RefusingHosts {
  has(host: string): boolean;
  add(host: string): Promise<void>;
}

/** `forgetHistory` deletes from this collection. */
const collection = "history/learned";

/** `hosts` is what other conversations of the client know. */
export async function openLearned(store: Store | undefined, sessionId: string, hosts: Set<string>): Promise<Learned> {
  const stored = readJson((await store?.get(collection, sessionId))?.value, isRecord);
  const limits = new Map(Object.entries(stored?.limits ?? {}));
  const dropped = new Set(stored?.thinking);
  for (const host of stored?.hosts ?? []) hosts.add(host);
  const save = async (): Promise<void> => {
    const record = { limits: Object.fromEntries(limits), thinking: [...dropped], hosts: [...hosts] };
    // A store that fails must not stop the second try.
    await store?.put(collection, sessionId, JSON.stringify(record)).catch(() => undefined);
  };
  // The same message must stay the same object from call to call.
  const stripped = new WeakMap<object, { readonly size: number; readonly message: object }>();
  const strip = (message: object): object => {
    const known = stripped.get(message);
    if (known?.size === dropped.size) return known.message;
    const next = dropBlocks(message, dropped);
    stripped.set(message, { size: dropped.size, message: next });
    return next;
  };
  return {
    readLimits: (model) => limits.get(model) ?? {},
    async addLimits(model, { contextWindow, reserve }) {
      const known = limits.get(model) ?? {};
      const windows = [known.contextWindow, contextWindow].filter((each) => each !== undefined);
      limits.set(model, {
        contextWindow: windows.length === 0 ? undefined : Math.min(...windows),
        reserve: reserve ?? known.reserve,
      });
      await save();
    },
    async dropThinking(messages, from) {
      const before = dropped.size;
      for (const message of messages.slice(from))
        for (const block of findThinking(message)) dropped.add(nameMessage(block));
      if (dropped.size > before) await save();
      return dropped.size > before;
    },
    get hasBoundThinking() {
      return dropped.size > 0;
    },
    withoutThinking(reduction) {
      if (dropped.size === 0) return reduction;
      return { ...reduction, messages: reduction.messages.map(strip) };
    },
    hosts: {
      has: (host) => hosts.has(host),
      async add(host) {
        hosts.add(host);
        await save();
      },
    },
  };
}

const isRecord = objectOf({
  limits: mapOf(objectOf({}, { contextWindow: isNumber, reserve: isNumber })),
  thinking: listOf(isText),
  hosts: listOf(isText),
});

// Blocks of Anthropic, and parts of the AI SDK.
const thinkingTypes: readonly unknown[] = ["thinking", "redacted_thinking", "reasoning"];
/** Where chat messages of LiteLLM and OpenRouter have such blocks. */
const thinkingLists = ["thinking_blocks", "reasoning_details"];

function findThinking(message: object): readonly object[] {
  const { content, ...fields } = message as Fields;
  const blocks = Array.isArray(content) ? content.filter((block) => thinkingTypes.includes(Object(block).type)) : [];
  return [...blocks, ...thinkingLists.flatMap((name) => (Array.isArray(fields[name]) ? fields[name] : []))];
}

function dropBlocks(message: object, dropped: ReadonlySet<string>): object {
  const gone = new Set(findThinking(message).filter((block) => dropped.has(nameMessage(block))));
  if (gone.size === 0) return message;
  const left: Record<string, unknown> = { ...message };
  for (const name of ["content", ...thinkingLists]) {
    const blocks = left[name];
    if (Array.isArray(blocks)) left[name] = blocks.filter((block) => !gone.has(block));
  }
  for (const name of thinkingLists) if (Array.isArray(left[name]) && left[name].length === 0) delete left[name];
  // A message must not be empty, and places in the list must not move.
  const isEmpty = Array.isArray(left.content) && left.content.length === 0;
  return isEmpty ? { ...left, content: [{ type: "text", text: "(thinking removed)" }] } : left;
}
