/** The intake of `mcp wrap`: a result that repeats what the client already has becomes what is new in it. Long results
 *  are left to the pages. */
import { randomUUID } from "node:crypto";
import { createIntake, createParallelCalls, type Intake, withHeldIn } from "../intake/index.ts";
import { createMemoryStore, type Store } from "../store/index.ts";
import { applyEdits, elementsOf, isPlainObject, memberOf } from "../text/index.ts";
import type { Counter } from "../tokens/index.ts";
import type { ResultCall } from "./itemize-result.ts";
import type { RpcObject } from "./rpc-message.ts";

export interface WrapIntake {
  /** The client has made a call. */
  begin(call: ResultCall): void;
  /** The call has no result. */
  drop(call: ResultCall): void;
  /** Returns the message of a result with what is new. Call `sent` with what was sent in the end. */
  admit(message: string, result: RpcObject, call: ResultCall): Promise<AdmittedMessage>;
}

interface AdmittedMessage {
  readonly message: string;
  readonly result: RpcObject;
  sent(message: string): Promise<void>;
}

export interface WrapIntakeOptions {
  readonly sessionId: string;
  readonly counter: Counter;
  readonly store: Store;
}

export async function createWrapIntake({ sessionId, counter, store }: WrapIntakeOptions): Promise<WrapIntake> {
  const intake: Intake = await createIntake({
    ...{ sessionId, counter, maxResultTokens: Number.MAX_SAFE_INTEGER, recallHint: (id) => `recall with id ${id}` },
    // The ids of calls count from 1. Another process serves another conversation.
    markSeed: randomUUID(),
    store: withHeldIn(createMemoryStore(), store),
  });
  const calls = createParallelCalls();
  let admits = 0;
  return {
    begin: (call) => calls.begin(call, { tool: call.tool, input: call.args }),
    drop: calls.drop,
    async admit(message, result, call) {
      const text = onlyText(result);
      if (text === undefined) {
        calls.drop(call);
        return { message, result, sent: async () => {} };
      }
      const number = ++admits;
      const admitted = await intake.admit({ tool: call.tool, input: call.args, text, ...calls.end(call) });
      const edited = admitted.edit === "none" ? message : withText(message, admitted.text);
      return {
        message: edited,
        result: admitted.edit === "none" ? result : { ...result, content: [{ type: "text", text: admitted.text }] },
        // A page shows only a part, so later results must not refer to it.
        sent: async (final) => (final === edited ? undefined : intake.forget(({ sequence }) => sequence !== number)),
      };
    },
  };
}

/** Failures, media, several blocks and structured content stay as they are. */
function onlyText({ content, structuredContent, isError }: RpcObject): string | undefined {
  if (!Array.isArray(content) || content.length !== 1 || structuredContent !== undefined || isError === true) {
    return undefined;
  }
  const [block] = content as unknown[];
  return isPlainObject(block) && block.type === "text" && typeof block.text === "string" ? block.text : undefined;
}

/** Replaces the text in the message as it was written. */
function withText(message: string, text: string): string {
  const result = memberOf(message, 0, "result");
  const content = result && memberOf(message, result.value.start, "content");
  const [block] = content === undefined ? [] : elementsOf(message, content.value.start);
  const member = block && memberOf(message, block.start, "text");
  return member === undefined ? message : applyEdits(message, [{ ...member.value, text: JSON.stringify(text) }]);
}
