/** The intake of `mcp wrap`: a result that repeats what the client already has becomes what is new in it. Long results
 *  are left to the pages. */
import { randomUUID } from "node:crypto";
import {
  type AdmittedResult,
  createIntake,
  createParallelCalls,
  type Intake,
  quoteNotes,
  separateContexts,
} from "../../conversation/intake/index.ts";
import { createMemoryStore, type Store } from "../../core/store/index.ts";
import { applyEdits, elementsOf, isPlainObject, memberOf, membersOf } from "../../core/text/index.ts";
import type { Counter } from "../../core/tokens/index.ts";
import type { ResultCall } from "./itemize-result.ts";
import { type RpcObject, withoutMember } from "./rpc-message.ts";

export interface WrapIntake {
  /** The client has made a call. */
  begin(call: ResultCall): void;
  /** The call has no result. */
  drop(call: ResultCall): void;
  /** Returns the message of a result with what is new. Call `sent` with what was sent in the end. */
  admit(
    message: string,
    result: RpcObject,
    call: ResultCall,
  ): Promise<{
    readonly message: string;
    readonly result: RpcObject;
    /** The tokens that the client already has. */
    readonly leftOut: number;
    sent(message: string): Promise<void>;
  }>;
}

export async function createWrapIntake(options: {
  readonly sessionId: string;
  readonly counter: Counter;
  readonly store: Store;
  /** Returns the name of the tool as the model sees it. */
  recallName(): string;
  /** Returns a number that changes when the client has compacted the conversation. */
  conversation(): Promise<number>;
}): Promise<WrapIntake> {
  const { sessionId, counter, store, recallName, conversation } = options;
  const intake: Intake = await createIntake({
    sessionId,
    counter,
    maxResultTokens: Number.MAX_SAFE_INTEGER,
    // The client does not tell us when it removes old results.
    deltaWindow: 40_000,
    recallHint: (id) => `${recallName()} with id ${id}`,
    // The ids of calls count from 1. Another process serves another conversation.
    markSeed: randomUUID(),
    store: separateContexts(createMemoryStore(), store),
  });
  const calls = createParallelCalls();
  let admits = 0;
  let current = await conversation();
  return {
    begin: (call) => calls.begin(call, { tool: call.tool, input: call.args }),
    drop: calls.drop,
    async admit(message, result, call) {
      const { content, structuredContent, isError } = result;
      const only = Array.isArray(content) && content.length === 1 ? readBlockText(content[0]) : undefined;
      // Failures, media, several blocks and structured content of its own are not shortened.
      const isSame = only !== undefined && (structuredContent === undefined || isSameText(only, structuredContent));
      const text = isSame && isError !== true ? only : undefined;
      if (text === undefined) {
        calls.drop(call);
        return {
          ...editTexts(message, result, (each) => quoteNotes(each, undefined)),
          leftOut: 0,
          sent: async () => {},
        };
      }
      const number = ++admits;
      const before = current;
      current = await conversation();
      if (current !== before) await intake.forget();
      const admitted = await intake.admit({ tool: call.tool, input: call.args, text, ...calls.end(call) });
      // Clients show the model the text or the structured content. The shorter text has both.
      const isShorter = admitted.text !== text && structuredContent !== undefined;
      const plain = isShorter ? leaveOutStructured(message, result) : { message, result };
      const edited = editTexts(plain.message, plain.result, () => admitted.text);
      return {
        ...edited,
        leftOut: countLeftOut(text, admitted, counter),
        // A page shows only a part, so later results must not refer to it.
        sent: async (final) =>
          final === edited.message ? undefined : intake.forget(({ sequence }) => sequence !== number),
      };
    },
  };
}

function countLeftOut(text: string, { edit, tokens }: AdmittedResult, counter: Counter): number {
  const isShorter = edit === "duplicate" || edit === "delta";
  return isShorter ? Math.max(0, counter.count(text) - tokens) : 0;
}

function readBlockText(block: unknown): string | undefined {
  return isPlainObject(block) && block.type === "text" && typeof block.text === "string" ? block.text : undefined;
}

/** Whether the structured content is the text alone, as the reference server for files sends it, or the same JSON. */
function isSameText(text: string, structured: unknown): boolean {
  if (!isPlainObject(structured)) return false;
  const [value, ...others] = Object.values(structured);
  if (value === text && others.length === 0) return true;
  try {
    return JSON.stringify(JSON.parse(text)) === JSON.stringify(structured);
  } catch {
    return false;
  }
}

function leaveOutStructured(message: string, { structuredContent: _, ...result }: RpcObject) {
  const members = membersOf(message, memberOf(message, 0, "result")!.value.start);
  return { message: applyEdits(message, withoutMember(members, "structuredContent")), result };
}

/** Changes the texts in the message as it was written. A text beside structured content may have to say the same. */
function editTexts(message: string, result: RpcObject, change: (text: string) => string) {
  const { content, structuredContent } = result;
  if (!Array.isArray(content) || structuredContent !== undefined) return { message, result };
  const place = memberOf(message, 0, "result");
  const list = place && memberOf(message, place.value.start, "content");
  const elements = list === undefined ? [] : elementsOf(message, list.value.start);
  const changes = content.flatMap((block: unknown, index) => {
    const [text, element] = [readBlockText(block), elements[index]];
    const member = element && memberOf(message, element.start, "text");
    if (text === undefined || member === undefined || change(text) === text) return [];
    return [
      {
        index,
        edit: { ...member.value, text: JSON.stringify(change(text)) },
        block: { ...(block as object), text: change(text) },
      },
    ];
  });
  if (changes.length === 0) return { message, result };
  const changed = new Map(changes.map(({ index, block }) => [index, block]));
  return {
    message: applyEdits(
      message,
      changes.map(({ edit }) => edit),
    ),
    result: { ...result, content: content.map((block: unknown, index) => changed.get(index) ?? block) },
  };
}
