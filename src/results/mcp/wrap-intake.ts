/** The intake of `mcp wrap`: a result that repeats what the client already has becomes what is new in it. Long results
 *  are left to the pages. */
import { randomUUID } from "node:crypto";
import {
  createIntake,
  createParallelCalls,
  type Intake,
  quoteNotes,
  separateContexts,
} from "../../conversation/intake/index.ts";
import { createMemoryStore, type Store } from "../../core/store/index.ts";
import { applyEdits, elementsOf, isPlainObject, memberOf } from "../../core/text/index.ts";
import type { Counter } from "../../core/tokens/index.ts";
import type { ResultCall } from "./itemize-result.ts";
import type { RpcObject } from "./rpc-message.ts";

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
  ): Promise<{ readonly message: string; readonly result: RpcObject; sent(message: string): Promise<void> }>;
}

export async function createWrapIntake(options: {
  readonly sessionId: string;
  readonly counter: Counter;
  readonly store: Store;
}): Promise<WrapIntake> {
  const { sessionId, counter, store } = options;
  const intake: Intake = await createIntake({
    sessionId,
    counter,
    maxResultTokens: Number.MAX_SAFE_INTEGER,
    // The client does not tell us when it removes old results.
    deltaWindow: 40_000,
    recallHint: (id) => `recall with id ${id}`,
    // The ids of calls count from 1. Another process serves another conversation.
    markSeed: randomUUID(),
    store: separateContexts(createMemoryStore(), store),
  });
  const calls = createParallelCalls();
  let admits = 0;
  return {
    begin: (call) => calls.begin(call, { tool: call.tool, input: call.args }),
    drop: calls.drop,
    async admit(message, result, call) {
      const { content, structuredContent, isError } = result;
      // Failures, media, several blocks and structured content are not shortened.
      const isPlain = structuredContent === undefined && isError !== true;
      const text = isPlain && Array.isArray(content) && content.length === 1 ? readBlockText(content[0]) : undefined;
      if (text === undefined) {
        calls.drop(call);
        return { ...editTexts(message, result, (each) => quoteNotes(each, undefined)), sent: async () => {} };
      }
      const number = ++admits;
      const admitted = await intake.admit({ tool: call.tool, input: call.args, text, ...calls.end(call) });
      const edited = editTexts(message, result, () => admitted.text);
      return {
        ...edited,
        // A page shows only a part, so later results must not refer to it.
        sent: async (final) =>
          final === edited.message ? undefined : intake.forget(({ sequence }) => sequence !== number),
      };
    },
  };
}

function readBlockText(block: unknown): string | undefined {
  return isPlainObject(block) && block.type === "text" && typeof block.text === "string" ? block.text : undefined;
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
