/** Looks at each request of a replay: what an epoch removed, what the turns refer to, and whether the provider would
 *  refuse it. */
import {
  type CountedPart,
  type FormatName,
  filesOf,
  inputOf,
  type Role,
  validateRequest,
} from "../../core/messages/index.ts";
import type { MessageBlocks, PreparedSession } from "./prepare-session.ts";
import {
  type CallReferences,
  type Reference,
  type ReferenceKind,
  type ReferenceTally,
  type ReferenceTotals,
  referenceKinds,
  type SessionReferences,
  type Tally,
} from "./references.ts";

/** Observes the requests of one session under one policy. */
export interface RequestObserver {
  /** Takes the next request. Returns what an epoch removed, for the first epochs. */
  add(request: ObservedRequest): Removal | undefined;
  finish(): {
    readonly references: ReferenceTotals;
    /** For each call the first rule that its request breaks. Undefined if it is valid. */
    readonly brokenRules: readonly (string | undefined)[];
  };
}

interface ObservedRequest {
  /** The history that the request was made from. */
  readonly given: readonly object[];
  readonly sent: readonly object[];
  /** How many messages at the start are the same objects as in the previous request. */
  readonly unchanged: number;
  readonly isEpoch: boolean;
}

export interface ObserverOptions {
  /** Whether to find the requests that a provider would refuse.
   * @default true */
  readonly findsInvalid?: boolean | undefined;
  /** Whether to find what each epoch removed. */
  readonly findsRemovals?: boolean | undefined;
}

/** A policy that has not changed anything yet sends what the client sent. What this shows is the same for all runs of
 *  a session, so it is found once, and a run looks at its own requests only if it changes some. */
export function createRequestObserver(session: PreparedSession, options: ObserverOptions): RequestObserver {
  const removals = options.findsRemovals === true ? createRemovalFinder(session.blocksOf) : undefined;
  let own: RequestFinder | undefined;
  let wholeCalls = 0;
  return {
    add(request) {
      if (own === undefined && isWhole(request)) wholeCalls++;
      else {
        own ??= createRequestFinder(session, { ...options, wholeCalls });
        own.add(request.sent, request.unchanged);
      }
      return removals?.add(request);
    },
    finish: () => own?.finish() ?? findInWhole(session, options),
  };
}

/** Whether a request has all messages of its history. The previous one had. */
function isWhole({ given, sent, unchanged }: ObservedRequest): boolean {
  if (given.length !== sent.length) return false;
  for (let index = unchanged; index < sent.length; index++) if (sent[index] !== given[index]) return false;
  return true;
}

type RequestFinder = Pick<RequestObserver, "finish"> & Pick<InvalidFinder, "add">;

/** Creates a finder that has seen the first `wholeCalls` requests as the client sent them. */
function createRequestFinder(
  session: PreparedSession,
  { findsInvalid = true, wholeCalls }: ObserverOptions & { readonly wholeCalls: number },
): RequestFinder {
  const invalid = findsInvalid ? createInvalidFinder(session.format) : undefined;
  const references = createReferenceMeter(session.references());
  const add: RequestFinder["add"] = (messages, unchanged) => {
    invalid?.add(messages, unchanged);
    references.add(messages, unchanged);
  };
  const sent: object[] = [];
  for (const length of session.calls.slice(0, wholeCalls)) {
    const unchanged = sent.length;
    while (sent.length < length) sent.push(session.messages[sent.length] as object);
    add(sent, unchanged);
  }
  return {
    add,
    finish: () => ({ references: references.totals, brokenRules: invalid?.finish() ?? [] }),
  };
}

type RequestFindings = ReturnType<RequestObserver["finish"]>;

/** What the requests of a session show as its client sent them. */
const foundInWhole = new WeakMap<PreparedSession, RequestFindings>();

function findInWhole(session: PreparedSession, { findsInvalid = true }: ObserverOptions): RequestFindings {
  const known = foundInWhole.get(session);
  if (known !== undefined && (!findsInvalid || known.brokenRules.length > 0)) return known;
  const found = createRequestFinder(session, { findsInvalid, wholeCalls: session.calls.length }).finish();
  foundInWhole.set(session, found);
  return found;
}

/** What one epoch removed. */
export interface Removal {
  readonly tokens: number;
  /** By tool, or by what else it was, largest first. */
  readonly kinds: readonly { readonly name: string; readonly count: number; readonly tokens: number }[];
  /** The largest parts, with what their call was about. */
  readonly largest: readonly { readonly name: string; readonly tokens: number }[];
}

interface SentPart {
  readonly key: unknown;
  readonly tokens: number;
  readonly name: string;
  readonly subject: string;
}

const maxLargest = 5;
/** A policy that trims on every call of a long session has too many epochs to show, and finding all takes long. */
const maxEpochs = 400;

/** Finds what epochs remove. */
export function createRemovalFinder(blocksOf: (message: object) => MessageBlocks): Pick<RequestObserver, "add"> {
  const callsById = new Map<string, CountedPart>();
  // Only what is still sent, so that an epoch of a long session does not look at all of it.
  let standing: SentPart[] = [];
  let read = 0;
  let epochs = 0;
  const readParts = ({ role, parts, blocks }: MessageBlocks): SentPart[] =>
    parts.map((part, index) => {
      if (part.kind === "tool_call" && part.callId !== undefined) callsById.set(part.callId, part);
      const call = part.kind === "tool_call" ? part : callsById.get(part.callId ?? "");
      const { key, tokens } = blocks[index] as MessageBlocks["blocks"][number];
      return { key, tokens, name: namePart(part, role, call), subject: describeSubject(call) };
    });
  return {
    add({ given, sent, isEpoch }) {
      if (isEpoch) epochs++;
      if (epochs > maxEpochs) return undefined;
      const isFirst = read === 0;
      for (; read < given.length; read++) standing.push(...readParts(blocksOf(given[read] as object)));
      if (!isEpoch && !isFirst) return undefined;
      const counts = new Map<unknown, number>();
      for (const { key } of sent.flatMap((message) => blocksOf(message).blocks))
        counts.set(key, (counts.get(key) ?? 0) + 1);
      const removed: SentPart[] = [];
      // The newest of equal parts stays.
      const kept = standing.toReversed().filter((part) => {
        const left = counts.get(part.key) ?? 0;
        counts.set(part.key, left - 1);
        if (left <= 0) removed.push(part);
        return left > 0;
      });
      standing = kept.reverse();
      return isEpoch ? describeRemoval(removed) : undefined;
    },
  };
}

function describeRemoval(removed: readonly SentPart[]): Removal {
  const kinds = new Map<string, { name: string; count: number; tokens: number }>();
  let total = 0;
  for (const { name, tokens } of removed) {
    const kind = kinds.get(name) ?? { name, count: 0, tokens: 0 };
    kinds.set(name, { name, count: kind.count + 1, tokens: kind.tokens + tokens });
    total += tokens;
  }
  const bySize = (left: { tokens: number }, right: { tokens: number }): number => right.tokens - left.tokens;
  const largest = removed.toSorted(bySize).slice(0, maxLargest);
  return {
    tokens: total,
    kinds: [...kinds.values()].sort(bySize),
    largest: largest.map(({ name, subject, tokens }) => ({ name: `${name} ${subject}`.trim(), tokens })),
  };
}

function namePart(part: CountedPart, role: Role, call: CountedPart | undefined): string {
  if (part.kind === "tool_result") return call?.toolName ?? part.toolName ?? "result";
  if (part.kind === "tool_call") return `${part.toolName ?? "call"} input`;
  return part.kind === "thinking" ? "thinking" : `${role} ${part.kind}`;
}

const maxSubjectCharacters = 80;

/** Returns the file that a call names, or the first text of its input. */
function describeSubject(call: CountedPart | undefined): string {
  if (call === undefined) return "";
  const texts = Object.values(Object(inputOf(call)) as object).filter((value) => typeof value === "string");
  const subject = filesOf(call).path ?? texts[0] ?? "";
  return [...subject.replace(/\s+/g, " ").slice(0, 2 * maxSubjectCharacters)].slice(0, maxSubjectCharacters).join("");
}

/** A result that was fetched again is there for this many calls. */
const fetchedCalls = 10;

/** Counts what the turns of one session refer to under one policy. */
function createReferenceMeter({ calls, unitsIn }: SessionReferences) {
  const totals = noReferences();
  /** How many sent messages contain a unit. */
  const present = new Map<string, number>();
  const isThere = (unit: string): boolean => (present.get(unit) ?? 0) > 0;
  /** The files that were edited so far, and those of them that the request does not name. */
  const files = new Set<string>();
  const unnamed = new Set<string>();
  const fetchedAt = new Map<number, number>();
  // A list of its own, because the caller's list grows.
  const sent: object[] = [];
  let call = 0;
  const count = (message: object, by: 1 | -1): void => {
    for (const unit of unitsIn(message)) {
      present.set(unit, (present.get(unit) ?? 0) + by);
      if (files.has(unit)) noteFile(unit);
    }
  };
  const noteFile = (file: string): void => {
    files.add(file);
    if (isThere(file)) unnamed.delete(file);
    else unnamed.add(file);
  };
  const fetchMissing = (sources: readonly number[]): void => {
    if (sources.some((source) => call - (fetchedAt.get(source) ?? Number.NEGATIVE_INFINITY) < fetchedCalls)) return;
    fetchedAt.set(sources.at(-1) as number, call);
    totals.refetches++;
  };
  const look = (kind: ReferenceKind, { units, isFar, sources }: Reference): void => {
    const isFound = units.every(isThere);
    tick(totals[kind], isFound);
    if (isFar) tick(totals[kind].far, isFound);
    if (kind === "quotes" && !isFound) fetchMissing(sources);
  };
  return {
    totals,
    /** Takes the messages of the next call. The first `unchanged` are the same objects as in the previous call. */
    add(messages: readonly object[], unchanged: number): void {
      for (let index = unchanged; index < sent.length; index++) count(sent[index] as object, -1);
      sent.length = Math.min(sent.length, unchanged);
      for (let index = unchanged; index < messages.length; index++) {
        const message = messages[index] as object;
        sent.push(message);
        count(message, 1);
      }
      const references = calls[call] as CallReferences;
      for (const note of references.notes) tick(totals.notes, isThere(note));
      for (const kind of referenceKinds) for (const reference of references[kind]) look(kind, reference);
      for (const file of references.newFiles) noteFile(file);
      if (files.size > 0) tick(totals.filesNamed, unnamed.size === 0);
      call++;
    },
  };
}

function tick(tally: Tally, isFound: boolean): void {
  tally.total++;
  if (isFound) tally.found++;
}

export function noReferences(): ReferenceTotals & { refetches: number } {
  const none = (): Tally => ({ found: 0, total: 0 });
  const kind = (): ReferenceTally => ({ ...none(), far: none() });
  return { quotes: kind(), names: kind(), edits: kind(), refetches: 0, filesNamed: none(), notes: none() };
}

/** Finds the requests of a session that a provider would refuse. */
interface InvalidFinder {
  /** Takes the messages of the next call. The first `unchanged` are the same objects as in the previous call. */
  add(messages: readonly object[], unchanged: number): void;
  /** Returns for each call the first rule that its request breaks, or undefined if it is valid. */
  finish(): readonly (string | undefined)[];
}

/** While requests only grow, a problem that has appeared stays. So only the longest request is checked, and if it is
 *  invalid, a binary search finds the first invalid one. A valid session costs one check each time its history is
 *  rewritten. */
export function createInvalidFinder(format: FormatName): InvalidFinder {
  const found: (string | undefined)[] = [];
  // While requests only grow, the longest contains all others.
  const longest: object[] = [];
  let lengths: number[] = [];
  const close = (): void => {
    const { first, rule } = findFirstInvalid(longest, { lengths, format });
    for (const [index, length] of lengths.entries()) {
      // An empty request is invalid, but this problem goes away.
      if (length === 0) found.push("no-messages");
      else found.push(index >= first ? rule : undefined);
    }
    lengths = [];
  };
  return {
    add(messages, unchanged) {
      if (unchanged < longest.length) close();
      longest.length = Math.min(longest.length, unchanged);
      for (let index = longest.length; index < messages.length; index++) longest.push(messages[index] as object);
      lengths.push(messages.length);
    },
    finish() {
      close();
      return found;
    },
  };
}

/** Returns the index of the first invalid request and the rule that it breaks. The index is their number if all are
 *  valid. */
function findFirstInvalid(
  longest: readonly object[],
  { lengths, format }: { readonly lengths: readonly number[]; readonly format: FormatName },
): { first: number; rule?: string } {
  const brokenRule = (index: number): string | undefined => {
    const problems = validateRequest(longest.slice(0, lengths[index]), { format });
    return problems.find(({ severity }) => severity === "error")?.rule;
  };
  const last = lengths.length - 1;
  let rule = last < 0 ? undefined : brokenRule(last);
  if (rule === undefined) return { first: lengths.length };
  let valid = lengths.lastIndexOf(0);
  let invalid = last;
  while (invalid - valid > 1) {
    const middle = (valid + invalid) >> 1;
    const broken = brokenRule(middle);
    if (broken === undefined) valid = middle;
    else [invalid, rule] = [middle, broken];
  }
  return { first: invalid, rule };
}
