/** Trims the history of one session of a client. A client's messages are shown to the trimmer as Anthropic's, and what
 *  it decides is applied to the client's own messages. */
import { createTrimmer, type Trimmer } from "../../conversation/history/index.ts";
import { type AdmittedResult, type Intake, readOriginal } from "../../conversation/intake/index.ts";
import { isSameJson } from "../../core/messages/index.ts";
import type { Store } from "../../core/store/index.ts";
import { type Fields, isText, listOf, mapOf, objectOf, readJson } from "../../core/text/index.ts";
import type { ClientCall } from "./in-client.ts";
import { historyName, pluginResults } from "./plugin-sessions.ts";

/** Shows a client's messages as Anthropic's. */
export interface MessageView<Message extends object> {
  /** Returns Anthropic messages whose blocks were made with `blockOf`. `findText` returns the text of a result. */
  show(messages: readonly Message[], findText: (callId: string, text: string) => string): readonly object[];
  /** Returns the client's messages with what is left of each block. `reduced` is what the trimmer would send. */
  apply(messages: readonly Message[], sent: SentBlocks, reduced: readonly object[]): readonly Message[];
}

/** Returns a block as it is sent, by its place; undefined if it was removed. */
export type SentBlocks = (place: string) => Fields | undefined;

export interface HistoryRequest<Message extends object> {
  readonly sessionId: string;
  readonly messages: readonly Message[];
  readonly view: MessageView<Message>;
  readonly model?: string | undefined;
  /** What the model accepts, if the client knows it. */
  readonly window?: number | undefined;
  /** The longest answer that the client asks for. */
  readonly longestAnswer?: number | undefined;
  /** System text and tools, if the client shows them. */
  readonly frame?: { readonly system?: unknown; readonly tools?: readonly object[] | undefined } | undefined;
  /** Called when a trim was decided. */
  readonly onTrim?: ((sizes: TrimSizes) => void) | undefined;
  /** The usage of the last answer, with an id that tells answers apart. */
  readonly usage?: { readonly id: string; readonly tokens: unknown } | undefined;
}

/** The tokens of the request. */
export interface TrimSizes {
  readonly before: number;
  readonly after: number;
}

export interface ClientHistory {
  /** Returns the messages to send; undefined if nothing is trimmed. */
  reduce<Message extends object>(request: HistoryRequest<Message>): Promise<readonly Message[] | undefined>;
  /** Remembers which call an admitted result belongs to, and which results it refers to. */
  noteResult(call: ClientCall, admitted: AdmittedResult): Promise<void>;
}

export interface HistoryOptions {
  readonly store: Store;
  readonly sessionId: string;
  /** The sub-agent whose history it is. */
  readonly agentId?: string | undefined;
  readonly intake: Pick<Intake, "forget">;
  readonly trim: number | "window";
}

const place: unique symbol = Symbol("plimsoll: the place of a block");

/** Makes a block that can be found again after it was edited. An edit copies the symbol with the other fields. */
export function blockOf(name: string, fields: Fields): object {
  return { ...fields, [place]: name };
}

export async function createClientHistory(options: HistoryOptions): Promise<ClientHistory> {
  const { store, trim } = options;
  const sessionId = historyName(options);
  const results = await openResults(store, options);
  let trimmer: { readonly key: string; readonly trimmer: Trimmer } | undefined;
  let observed = "";
  const openTrimmer = async (request: HistoryRequest<object>): Promise<Trimmer | undefined> => {
    const { model, window, longestAnswer = 0 } = request;
    if (trim === "window" && window === undefined) return undefined;
    const maxTokens = Math.min(trim === "window" ? Number.POSITIVE_INFINITY : trim, measureRoom(window, longestAnswer));
    const key = JSON.stringify([maxTokens, model]);
    const reserve = 16_000;
    if (trimmer?.key !== key) {
      await trimmer?.trimmer.checkpoint();
      const created = await createTrimmer({
        contextWindow: maxTokens + reserve,
        reserve,
        // If the client does not show us system text and tools, this is an estimate of their size until the first
        // answer reports it.
        prefixTokens: request.frame === undefined ? Math.min(12_000, Math.floor(maxTokens / 4)) : 0,
        model,
        keepInputs: ["Write", "Edit", "MultiEdit", "NotebookEdit", "write", "edit"],
        format: "anthropic",
        store,
        sessionId,
      });
      trimmer = { key, trimmer: created };
      observed = request.usage?.id ?? "";
    }
    return trimmer.trimmer;
  };
  const reduceOnce = (current: Trimmer, { messages, view, frame }: HistoryRequest<object>) => {
    results.follow(() => listCalls(view.show(messages, (_callId, text) => text)));
    const shown = view.show(messages, results.findText);
    // The model has the command `plimsoll recall` or our MCP server, whatever tools the client shows us.
    const reduction = current.reduce({ ...frame, messages: shown }, { hasRecall: true });
    return { reduction, sent: indexBlocks(reduction.messages), shown: indexBlocks(shown) };
  };
  /** A restored text makes the history larger, so the policy decides again. */
  const settle = async (current: Trimmer, request: HistoryRequest<object>) => {
    let outcome = reduceOnce(current, request);
    if (!outcome.reduction.isEpoch) return outcome;
    for (let attempt = 0; attempt < 3 && (await results.restore(findWholeCalls(outcome))); attempt++) {
      outcome = reduceOnce(current, request);
    }
    const whole = findWholeCalls(outcome);
    await options.intake.forget(({ callId = "" }) => whole.has(callId));
    return outcome;
  };
  return {
    async reduce<Message extends object>(request: HistoryRequest<Message>) {
      const general = request as unknown as HistoryRequest<object>;
      const current = await openTrimmer(general);
      if (current === undefined) return undefined;
      const isNews = request.usage !== undefined && request.usage.id !== observed;
      if (isNews) current.observe(request.usage?.tokens);
      observed = request.usage?.id ?? observed;
      const { reduction, sent } = await settle(current, general);
      if (reduction.isEpoch) request.onTrim?.({ before: reduction.stats.before, after: reduction.stats.after });
      // The request need not wait: without a checkpoint, the next process would only decide again.
      if (isNews || reduction.isEpoch) void current.checkpoint().catch(() => undefined);
      if (reduction.stats.trimmed.length === 0 && !results.hasRestored()) return undefined;
      return request.view.apply(request.messages, (name) => sent.get(name), reduction.messages);
    },
    noteResult: (call, admitted) => results.note(call, admitted),
  };
}

/** Returns the most tokens of a request. The client compacts when only the answer has room left, so we have to trim
 *  earlier. */
function measureRoom(window: number | undefined, longestAnswer: number): number {
  if (window === undefined) return Number.POSITIVE_INFINITY;
  return Math.floor(window * 0.95 - Math.min(window / 2, Math.max(20_000, longestAnswer)));
}

function indexBlocks(messages: readonly object[]): Map<string, Fields> {
  const found = new Map<string, Fields>();
  for (const message of messages) {
    const { content } = message as Fields;
    for (const block of Array.isArray(content) ? (content as (Fields & { readonly [place]?: string })[]) : []) {
      const name = block[place];
      if (name !== undefined) found.set(name, block);
    }
  }
  return found;
}

/** The calls that have results, oldest first. */
function listCalls(messages: readonly object[]): string[] {
  return [...indexBlocks(messages).values()].flatMap(({ tool_use_id: callId }) =>
    callId === undefined ? [] : String(callId),
  );
}

/** The calls that are sent as they are, with their results. */
function findWholeCalls({ shown, sent }: Readonly<Record<"shown" | "sent", ReadonlyMap<string, Fields>>>): Set<string> {
  const changed = new Set<string>();
  const whole = new Set<string>();
  for (const [name, { id, tool_use_id: callId = id, input, content }] of shown) {
    const now = sent.get(name);
    const isSame = now !== undefined && isSameJson(now.input, input) && isSameJson(now.content, content);
    if (callId !== undefined) (isSame ? whole : changed).add(String(callId));
  }
  for (const callId of changed) whole.delete(callId);
  return whole;
}

// Shortened results refer to earlier ones. If a trim removes an earlier result, the newest result that refers to it gets
// its original text back.

/** A shortened result: the id of its call, the id of its original, and the calls that it refers to. `call` is the tool
 *  with its input: it shows which of several equal calls came last. */
const isEdited = objectOf({ callId: isText, id: isText, call: isText, bases: listOf(isText) });

const isStored = objectOf(
  {
    edited: listOf(isEdited),
    // Calls whose results have their originals again, with the ids of these.
    restored: mapOf(isText),
  },
  {
    // By restored call, the last call of each history in which it was restored. After a rewind to before the trim, the
    // model needs the shortened text again, because its thinking was made from that. Earlier versions did not store this:
    // then the original is used in every history.
    since: mapOf(listOf(isText)),
  },
);

async function openResults(store: Store, options: Pick<HistoryOptions, "sessionId" | "agentId">) {
  const key = historyName(options);
  const record = await store.get(pluginResults, key);
  let known = readJson(record?.value, isStored) ?? { edited: [], restored: {}, since: undefined };
  const originals = new Map<string, string>();
  let calls: readonly string[] = [];
  const isRestored = (callId: string): boolean =>
    originals.has(callId) && (known.since?.[callId]?.some((last) => calls.includes(last)) ?? true);
  const load = async (callId: string, id: string): Promise<void> => {
    const original = await readOriginal(store, id);
    if (original?.sessionId === options.sessionId) originals.set(callId, original.text);
  };
  for (const [callId, id] of Object.entries(known.restored)) await load(callId, id);
  const save = (next: typeof known) => {
    known = next;
    return store.put(pluginResults, key, JSON.stringify(next));
  };
  return {
    /** Takes the calls of the history that is sent next. */
    follow(read: () => readonly string[]): void {
      if (known.edited.length > 0) calls = read();
    },
    findText: (callId: string, text: string): string => (isRestored(callId) ? (originals.get(callId) ?? text) : text),
    hasRestored: () => [...originals.keys()].some(isRestored),
    async note({ callId, tool, input }: ClientCall, { id, edit, bases = [] }: AdmittedResult) {
      if (id === undefined || edit === "page") return;
      const result = { callId, id, call: JSON.stringify([tool, input]), bases };
      await save({ ...known, edited: [...known.edited, result] });
    },
    /** Gives results whose base is gone their originals back. Returns whether there were any. */
    async restore(whole: ReadonlySet<string>): Promise<boolean> {
      const newest = new Set<string>();
      const lost = known.edited.toReversed().filter(({ callId, call, bases }) => {
        const isNewest = whole.has(callId) && !newest.has(call);
        if (isNewest) newest.add(call);
        return isNewest && !isRestored(callId) && !bases.every((base) => whole.has(base));
      });
      for (const { callId, id } of lost) await load(callId, id);
      const found = lost.filter(({ callId }) => originals.has(callId));
      if (found.length === 0) return false;
      const ids = Object.fromEntries(found.map(({ callId, id }) => [callId, id]));
      const last = calls.at(-1) ?? "";
      const ends = found.map(({ callId }) => [callId, [...(known.since?.[callId] ?? []), last]]);
      const since = { ...known.since, ...Object.fromEntries(ends) };
      await save({ ...known, restored: { ...known.restored, ...ids }, since });
      return true;
    },
  };
}
