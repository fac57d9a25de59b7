import type { Store } from "../../store/index.ts";
import { isFields, isText, objectOf, readJson } from "../../text/index.ts";
import type { ToolArguments, ToolFailure } from "../tool/budgeted-tool.ts";
import { callKey } from "./seen-versions.ts";

/** A call of one of our own tools, whichever page of it. */
export interface ContinuedCall {
  readonly tool: string;
  readonly args: ToolArguments;
}

/** Whether `offset:100` says enough of where a call goes on. Where it could be another call's as well, a token names its page,
 *  `r12:offset:100`, which means one thing, whoever passes it, and when. */
export interface OffsetTokens {
  /** Before a page is made: others may have given tokens meanwhile. */
  refresh(): Promise<void>;
  isClear(call: ContinuedCall, offset: number): boolean;
  /** A page of the call goes out with that token. */
  given(call: ContinuedCall, offset: number): Promise<void>;
  /** Undefined where the token is for the tool alone. */
  find(offset: number): Promise<ContinuedCall | ToolFailure | undefined>;
}

/** For a program, which knows what it called. */
export const alwaysClear: OffsetTokens = {
  refresh: async () => {},
  isClear: () => true,
  given: async () => {},
  find: async () => undefined,
};

/** For conversations, also several at a time that have their results in common. What was given is never forgotten: a forgotten token
 *  could be taken for that of another call. Where there is no more room, tokens name their pages. */
export function createOffsetTokens(store: Store, id: string): OffsetTokens {
  let calls: GivenCalls | "damaged" = {};
  const refresh = async (): Promise<void> => {
    calls = readCalls((await store.get(collection, id))?.value);
  };
  return {
    refresh,
    isClear(call, offset) {
      // Whether another call has given the token is not known any more.
      if (calls === "damaged") return false;
      const before = calls[offset];
      if (before !== undefined) return isSame(before, call);
      return Object.keys(calls).length < mostOffsets && JSON.stringify(call.args).length < mostCharacters;
    },
    async given(call, offset) {
      const add = (text: string | undefined): string => {
        const before = readCalls(text);
        return before === "damaged" ? text! : JSON.stringify(withCall(before, call, offset));
      };
      calls = readCalls((await store.update(collection, id, add)).value);
    },
    async find(offset) {
      await refresh();
      if (calls === "damaged") return forgotten(offset);
      return calls[offset] ?? unclear(offset, calls[offset]);
    },
  };
}

const collection = "session-offsets";

/** Of the session that results are stored with. */
export async function forgetOffsetTokens(store: Store, id: string): Promise<void> {
  await store.delete(collection, id);
}

const mostOffsets = 300;
const mostCharacters = 500;

/** By offset. Null where two calls have given the same token at the same moment. */
type GivenCalls = Readonly<Record<number, ContinuedCall | null>>;

/** A call that cannot be read is one of which nothing is known. */
function readCalls(text: string | undefined): GivenCalls | "damaged" {
  if (text === undefined) return {};
  const calls = readJson(text, isGiven);
  if (calls === undefined) return "damaged";
  const read = Object.entries(calls).map(([offset, call]) => [offset, isCall(call) ? call : null] as const);
  return Object.fromEntries(read);
}

const isCall = objectOf({ tool: isText, args: isFields });
const isGiven = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function forgotten(offset: number): ToolFailure {
  return {
    code: "store_corrupt",
    message: "the record of the session's tokens is damaged",
    hint: `Call the tool itself again with offset=${offset}.`,
  };
}

function withCall(calls: GivenCalls, { tool, args }: ContinuedCall, offset: number): GivenCalls {
  const before = calls[offset];
  if (before === undefined) return { ...calls, [offset]: { tool, args } };
  return isSame(before, { tool, args }) ? calls : { ...calls, [offset]: null };
}

function isSame(before: ContinuedCall | null, call: ContinuedCall): boolean {
  return before !== null && callKey(before) === callKey(call);
}

function unclear(offset: number, call: null | undefined): ToolFailure {
  const again = `call the tool itself again with offset=${offset}.`;
  return call === null
    ? {
        code: "ambiguous_token",
        message: `several results go on with offset:${offset}`,
        hint: `To tell them apart ${again}`,
      }
    : {
        code: "invalid_token",
        message: `no result goes on with offset:${offset}`,
        hint: `Pass a continuation_token as it came, or ${again}`,
      };
}
