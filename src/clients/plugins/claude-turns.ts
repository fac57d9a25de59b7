/** Finds out which calls the model made together, and which results it got otherwise than our hooks know. Claude Code may
 *  give up a hook, and it takes up the results of one answer in passes: while it works on one result, later calls begin
 *  and end, and their results come before those of earlier calls (2.1.327). When all calls of an answer have ended, the
 *  client names them with their results, before it asks the model again. */
import { type Fields, isFields, listOf, readJson } from "../../core/text/index.ts";
import type { PluginAdmission, PluginContext } from "./admit-results.ts";
import { createTranscript } from "./claude-transcript.ts";

/** When a result came. */
export interface Arrival {
  /** In milliseconds. */
  readonly time: number;
  /** The number of its turn. Undefined if the client does not say when a turn ends, because an earlier version of plimsoll
   *  wrote the hooks. */
  readonly turn: number | undefined;
}

export interface ClaudeTurns {
  /** Call this as soon as a result comes. */
  arrive(context: PluginContext, hasBatches: boolean): Arrival;
  /** Waits until the results of earlier turns are known. Takes the file of the client's transcript. */
  whenKnown(context: PluginContext, transcript: string): Promise<void>;
  /** Returns whether the model made this call together with the one before. */
  isParallel(context: PluginContext, arrival: Arrival, milliseconds: number): boolean;
  /** The intake knows a result. A shortened one has the id of its original, if the note stands in it. */
  note(callId: string, id?: string): void;
  /** A result has its answer. */
  answered(context: PluginContext): void;
  /** All calls of a turn have ended. `answers` are those that our hooks still work on. */
  end(context: PluginContext, calls: unknown, answers: readonly Promise<unknown>[]): void;
}

interface ContextTurns {
  turn: number;
  /** The turn of the newest result that was admitted. */
  admitted: number;
  /** When the last result was answered, or came if it has no answer yet. */
  lastResult: number;
  known: Promise<void>;
  isOpened: boolean;
}

export function createClaudeTurns(admission: PluginAdmission, now: () => number): ClaudeTurns {
  const contexts = new Map<string, ContextTurns>();
  const noted = new Map<string, string | undefined>();
  const find = ({ sessionId, agentId = "" }: PluginContext): ContextTurns => {
    const key = `${sessionId} ${agentId}`;
    // The first result may belong to a turn that an earlier process has seen.
    const none = {
      turn: 0,
      admitted: 0,
      lastResult: Number.NEGATIVE_INFINITY,
      known: Promise.resolve(),
      isOpened: false,
    };
    const found = contexts.get(key) ?? none;
    contexts.set(key, found);
    return found;
  };
  const isOfLastTurn = (of: ContextTurns, turn: number): boolean => {
    const isOfLast = turn <= of.admitted;
    of.admitted = Math.max(of.admitted, turn);
    return isOfLast;
  };
  /** The intake learns what the model saw of a call that it does not know, or that it knows otherwise. */
  const record = async (context: PluginContext, call: Fields, turn: number): Promise<void> => {
    const callId = String(call.tool_use_id);
    const { tool_response: shown } = call;
    const blocks = Array.isArray(shown) ? (shown as unknown[]) : [];
    const text = typeof shown === "string" ? shown : blocks.map((block) => String(Object(block).text ?? "")).join("\n");
    const id = noted.get(callId);
    const isKnown = noted.delete(callId);
    if (isKnown && (id === undefined || text.includes(id))) return;
    if (isKnown) await admission.forget(context, (held) => held.callId !== callId);
    const { tool_name: tool, tool_input: input } = call;
    const isParallel = isOfLastTurn(find(context), turn);
    await admission.admit(context, { tool: String(tool), input, callId, text, isParallel, isSent: true });
  };
  return {
    arrive: (context, hasBatches) => ({ time: now(), turn: hasBatches ? find(context).turn : undefined }),
    whenKnown(context, transcript) {
      const found = find(context);
      if (!found.isOpened)
        found.known = found.known.then(() => forgetUnknown(context, transcript, admission)).catch(() => {});
      found.isOpened = true;
      return found.known;
    },
    isParallel(context, { time, turn }, milliseconds) {
      const found = find(context);
      const before = found.lastResult;
      found.lastResult = time;
      if (turn !== undefined) return isOfLastTurn(found, turn);
      // No model answers within 20 ms after a result.
      return time - milliseconds - before < 20;
    },
    note: (callId, id) => void noted.set(callId, id),
    answered(context) {
      find(context).lastResult = now();
    },
    end(context, calls, answers) {
      const found = find(context);
      const { turn, known } = found;
      found.turn++;
      found.known = (async () => {
        await known;
        await Promise.allSettled(answers);
        const ended = typeof calls === "string" ? readJson(calls, listOf(isFields)) : undefined;
        if (ended === undefined) return admission.forget(context);
        for (const call of ended) await record(context, call, turn);
      })().catch(() => {});
    },
  };
}

/** An earlier process may have ended before it wrote its last results, or the client went on without one. Then nobody
 *  knows what the newest results of a call have shown. */
async function forgetUnknown(context: PluginContext, path: string, { forget }: PluginAdmission): Promise<void> {
  if (path === "" || context.agentId !== undefined) return;
  const transcript = createTranscript(path);
  await transcript.read();
  const newest = transcript.blocks().findLast(({ type }) => type === "tool_result");
  const held = new Set<unknown>();
  await forget(context, ({ callId }) => Boolean(held.add(callId)));
  if (newest !== undefined && held.size > 0 && !held.has(newest.tool_use_id)) await forget(context);
}
