/** How a result continues on the next page: the tokens, the calls that used them, and the versions of results. */
import { createHash } from "../../core/crypto.ts";
import type { Store } from "../../core/store/index.ts";
import { isFields, isPlainObject, isText, objectOf, originalIdPattern, readJson } from "../../core/text/index.ts";
import type { ToolArguments, ToolFailure } from "./budgeted-tool.ts";
import type { SessionRecord } from "./session-record.ts";

/** The place where a continuation token continues. `offset:100` is an offset for the tool itself. A token that starts
 *  with an id is for a stored result:
 *
 *  k3vbq5zoha:offset:100       its items from the 100th on
 *  k3vbq5zoha:offset:100+2048  the longest string of item 100, from character 2048 on
 *  k3vbq5zoha:json:100+2048    the JSON of item 100, from character 2048 on
 *  k3vbq5zoha:fields+0         the JSON of its fields */
export type Position =
  | { readonly at: "items"; readonly offset: number }
  | TextPosition
  | { readonly at: "fields"; readonly from: number };

/** A place inside one item. */
export interface TextPosition {
  readonly at: "text" | "json";
  readonly offset: number;
  readonly from: number;
}

interface Continuation {
  /** The stored result. Absent if the tool itself has to be called. */
  readonly id?: string;
  readonly position: Position;
}

/** Returns the token of a continuation. */
export function renderToken({ id, position }: Continuation): string {
  const prefix = id === undefined ? "" : `${id}:`;
  switch (position.at) {
    case "items":
      return `${prefix}offset:${position.offset}`;
    case "text":
      return `${prefix}offset:${position.offset}+${position.from}`;
    case "json":
      return `${prefix}json:${position.offset}+${position.from}`;
    case "fields":
      return `${prefix}fields+${position.from}`;
  }
}

/** Returns undefined if the token is not one of ours. */
export function parseToken(token: string): Continuation | undefined {
  const direct = /^offset:(\d{1,15})$/.exec(token);
  if (direct !== null) return { position: { at: "items", offset: Number(direct[1]) } };

  const stored = storedToken.exec(token);
  if (stored === null) return undefined;
  const [, id = "", kind, offset, start] = stored;
  const [place, from] = [Number(offset), Number(start ?? 0)];
  if (kind === undefined) return { id, position: { at: "fields", from } };
  if (kind === "json") return { id, position: { at: "json", offset: place, from } };
  return { id, position: start === undefined ? { at: "items", offset: place } : { at: "text", offset: place, from } };
}

const storedToken = new RegExp(`^(${originalIdPattern}):(?:(offset|json):(\\d{1,15})|fields)(?:\\+(\\d{1,15}))?$`);

/** Remembers from which version of a result its pages came. A continuation by offset runs the tool again, and the files
 *  may have changed in the meantime. */
export interface SeenVersions {
  /** Whether the previous page came from another version. */
  isChanged(call: SeenCall): boolean;
  /** Needed only for results with a next page. */
  remember(call: SeenCall): void;
  list(): SessionRecord["versions"];
  /** Continues with another list. */
  restore(versions: SessionRecord["versions"]): void;
}

interface SeenCall extends ContinuedCall {
  readonly offset: number;
  readonly version: string | undefined;
}

/** How many results can be paged at the same time. For older ones, changes are not noticed. */
const maxVersions = 50;

/** `initial` is what `list` returned before. */
export function createSeenVersions(initial: SessionRecord["versions"]): SeenVersions {
  let versions = new Map(initial);
  return {
    isChanged(call) {
      const { offset, version } = call;
      if (version === undefined || offset === 0) return false;
      const before = versions.get(hashCall(call));
      return before !== undefined && before !== version;
    },
    remember(call) {
      if (call.version === undefined) return;
      const key = hashCall(call);
      versions.delete(key);
      versions.set(key, call.version);
      if (versions.size > maxVersions) versions.delete(versions.keys().next().value!);
    },
    list: () => [...versions],
    restore(other) {
      versions = new Map(other.slice(-maxVersions));
    },
  };
}

/** The same for all pages of one result. */
function hashCall({ tool, args }: ContinuedCall): string {
  // The pages of one result differ in these parameters.
  const own = Object.entries(args).filter(([name]) => !["offset", "budget"].includes(name));
  const sorted = own.sort(([left], [right]) => (left < right ? -1 : 1));
  return createHash("sha256")
    .update(JSON.stringify([tool, sorted]))
    .digest("base64url")
    .slice(0, 16);
}

/** A call of one of our own tools, without its page. */
export interface ContinuedCall {
  readonly tool: string;
  readonly args: ToolArguments;
}

/** Decides whether `offset:100` identifies a continuation. If another call could continue at the same offset, the token
 *  names its page too, as in `k3vbq5zoha:offset:100`. */
export interface OffsetTokens {
  /** Call it before a page is made: other processes may have used tokens in the meantime. */
  refresh(): Promise<void>;
  /** Returns the token of a place in the result of a call. `id` is the page of the result. */
  tokenAt(call: ContinuedCall & { readonly id: string }, position: Position): string;
  /** Records that a page of the call was sent with this token. */
  given(call: ContinuedCall, token: string | undefined): Promise<void>;
  /** Returns undefined if only the tool itself can use the token. */
  find(offset: number): Promise<ContinuedCall | ToolFailure | undefined>;
  /** Deletes the record of used tokens. */
  forget(): Promise<void>;
}

/** Creates continuation tokens. Several conversations that run at once may share the results of `group`. A used token
 *  is never forgotten, because another call could then get the same one. If the record of tokens is full, new tokens
 *  name their pages. With the form `offset`, a token that points between two items never names its page, because a
 *  program knows which tool it called. */
export function createOffsetTokens(store: Store, group: string, form: "offset" | "unique" = "offset"): OffsetTokens {
  let calls: GivenCalls | "damaged" = {};
  const refresh = async (): Promise<void> => {
    calls = readCalls((await store.get(offsetCollection, group))?.value);
  };
  const isClear = (call: ContinuedCall, offset: number): boolean => {
    if (form === "offset") return true;
    // With a damaged record, it is unknown whether another call has used the token.
    if (calls === "damaged") return false;
    const before = calls[offset];
    if (before !== undefined) return isSameCall(before, call);
    return Object.keys(calls).length < maxOffsets && JSON.stringify(call.args).length < 500;
  };
  return {
    refresh,
    tokenAt({ id, ...call }, position) {
      return renderToken(position.at === "items" && isClear(call, position.offset) ? { position } : { id, position });
    },
    async given(call, token) {
      const { id, position } = (token === undefined ? undefined : parseToken(token)) ?? {};
      if (id !== undefined || position?.at !== "items") return;
      const { offset } = position;
      const { value } = await store.update(offsetCollection, group, (text) => {
        const used = readCalls(text);
        if (used === "damaged") return text!;
        const before = used[offset];
        const isFull = before === undefined && Object.keys(used).length >= maxOffsets;
        if (isFull || (before !== undefined && isSameCall(before, call))) return JSON.stringify(used);
        return JSON.stringify({ ...used, [offset]: before === undefined ? call : null });
      });
      calls = readCalls(value);
    },
    async find(offset) {
      await refresh();
      const again = `call the tool itself again with offset=${offset}.`;
      if (calls === "damaged") {
        const hint = `Call the tool itself again with offset=${offset}.`;
        return { code: "store_corrupt", message: "the record of the session's tokens is damaged", hint };
      }
      const call = calls[offset];
      if (call === undefined) {
        const hint = `Pass a continuation_token unchanged, or ${again}`;
        return { code: "invalid_token", message: `no result continues at offset:${offset}`, hint };
      }
      const message = `several results continue at offset:${offset}`;
      return call ?? { code: "ambiguous_token", message, hint: `To choose one, ${again}` };
    },
    async forget() {
      await store.delete(offsetCollection, group);
    },
  };
}

const offsetCollection = "session-offsets";
const maxOffsets = 300;

/** By offset. Null if two calls used the same token at the same moment. */
type GivenCalls = Readonly<Record<number, ContinuedCall | null>>;

/** Nothing is known about a call that cannot be read. */
function readCalls(text: string | undefined): GivenCalls | "damaged" {
  if (text === undefined) return {};
  const calls = readJson(text, isPlainObject);
  if (calls === undefined) return "damaged";
  const isCall = objectOf({ tool: isText, args: isFields });
  const read = Object.entries(calls).map(([offset, call]) => [offset, isCall(call) ? call : null] as const);
  return Object.fromEntries(read);
}

function isSameCall(before: ContinuedCall | null, call: ContinuedCall): boolean {
  return before !== null && hashCall(before) === hashCall(call);
}
