/** Takes in tool results before a model first sees them. A result that repeats what the context holds becomes a note or
 *  what is new; a very long one becomes a page. The store has the original before the shorter text is returned. Every
 *  failure returns the original. */
import { invalidArgument } from "../../core/errors.ts";
import { createMemoryStore, type Store } from "../../core/store/index.ts";
import {
  argumentChecks,
  createMark,
  createOriginalId,
  digestText,
  type KeyedHash,
  refuseUnknownOptions,
} from "../../core/text/index.ts";
import { type Counter, createCounter } from "../../core/tokens/index.ts";
import { createAdmittedTexts } from "./admitted-texts.ts";
import type { FieldKind } from "./changing-fields.ts";
import {
  type CountedResult,
  chooseEdit,
  type Edit,
  type EditOptions,
  quoteResult,
  type ResolvedOptions,
  readShare,
} from "./choose-edit.ts";
import {
  addSent,
  beforeTurn,
  collectRuns,
  collectWrittenRuns,
  dropLostNames,
  type HashedLine,
  type HeldText,
  hashLines,
  keepWindow,
} from "./held-texts.ts";
import { createContextReader, type IntakeContext, type OpenContext } from "./intake-context.ts";
import { contextCollection, contextKey, keepOriginal, readOriginal, type StoredOriginal } from "./originals.ts";
import { countLarge, largeText } from "./page.ts";
import {
  isOutput,
  isRecall,
  isRepeatedCall,
  nameResult,
  nameUnfinished,
  nextEdited,
  readFirstLine,
  readWrittenTexts,
} from "./read-call.ts";
import { readComparedLines, withoutColours } from "./result-lines.ts";
import { isSource } from "./source-page.ts";

/** What `createIntake` needs to know. */
export interface IntakeOptions {
  /** Counts tokens.
   *  @default the estimate for Claude models */
  readonly counter?: Counter | undefined;
  /** Keeps originals and what the context holds. By default they live as long as the intake. */
  readonly store?: Pick<Store, "get" | "put" | "update"> | undefined;
  /** Names the conversation. Intakes with the same name and store share what the context holds. */
  readonly sessionId: string;
  /** A sub-agent has a context of its own.
   *  @default "main" */
  readonly agentId?: string | undefined;
  /** Results above this many tokens become a page.
   *  @default 16000 */
  readonly maxResultTokens?: number | undefined;
  /** The tokens of such a page.
   *  @default 10000 */
  readonly pageTokens?: number | undefined;
  /** Whether repeated text is left out.
   *  @default true */
  readonly deltas?: boolean | undefined;
  /** How many of the newest tokens count as held by the context, for a client that removes older results itself and does
   *  not say so. By default all do, until `forget` is called. */
  readonly deltaWindow?: number | undefined;
  /** Returns which share of the client's own limit a text takes, if the client cuts results by characters, bytes or
   *  lines. Above 1 the result becomes a page that fits, or counts as not sent. By default there is no such limit. */
  readonly shareOfLimit?: ((text: string) => number) | undefined;
  /** Says how to get an original. It is part of the shortened text.
   *  @default (id) => `plimsoll recall ${id}` */
  readonly recallHint?: ((id: string) => string) | undefined;
  /** The text from which ids and the mark in notes are derived if calls have no ids. Keep it out of files that tools
   *  read, because a file that knows the mark can forge notes.
   *  @default the names of session and agent */
  readonly markSeed?: string | undefined;
  /** Resolves when a store is too slow; then the original is returned. By default `admit` waits for the store. */
  readonly patience?: (() => Promise<void>) | undefined;
}

/** A result as the tool returned it. */
export interface IncomingResult {
  readonly tool: string;
  /** The input of the call. What it writes into files counts as held by the context. */
  readonly input?: unknown;
  readonly text: string;
  /** The id of the call. Later results that refer to this one name it in `bases`. */
  readonly callId?: string | undefined;
  /** The file in which the client has saved the whole result, because it shows only a part. A page names it. */
  readonly savedAs?: string | undefined;
  /** Whether the client can show only lines that follow each other, because it numbers them itself. */
  readonly isOnePiece?: boolean | undefined;
  /** Whether the model made this call together with the one before. The client may then send the results in another order,
   *  so this one does not refer to the others. */
  readonly isParallel?: boolean | undefined;
  /** The calls that the model made together with this one and that have no result yet. Their results may be sent before
   *  this one. */
  readonly unfinished?: readonly Pick<IncomingResult, "tool" | "input">[] | undefined;
  /** Whether the client may send results of calls that have not begun before this one, if the model made them together.
   *  The note then says that it means what was shown before these calls. */
  readonly isUnordered?: boolean | undefined;
  /** Whether the model has this result already, as it is. Then it is only recorded. */
  readonly isSent?: boolean | undefined;
  /** Returns which share of the client's limit for this tool a text takes, as the option of `createIntake` does. */
  readonly shareOfLimit?: ((text: string) => number) | undefined;
}

/** A result as the model should see it. */
export interface AdmittedResult {
  readonly text: string;
  readonly tokens: number;
  /** What was done: `duplicate` and `delta` leave out what the context holds, `page` leaves out a part. `quote` leaves
   *  nothing out: lines that look like our notes have words before them that say what they are. */
  readonly edit: "none" | "duplicate" | "delta" | "page" | "quote";
  /** The id of the original, if something was left out. */
  readonly id?: string | undefined;
  /** Of a duplicate: which admitted result has the same text, counted from 1. */
  readonly same?: number | undefined;
  /** Of a delta: the lines that are not sent again. */
  readonly held?: readonly HeldLines[] | undefined;
  /** The ids of the calls that have what is not sent again. */
  readonly bases?: readonly string[] | undefined;
  /** With `isOnePiece`: the lines to show. */
  readonly piece?:
    | {
        /** The index of the first line. */
        readonly start: number;
        /** The index after the last line. */
        readonly end: number;
        /** The lines, without the numbers that the tool wrote. */
        readonly text: string;
        /** Says what is not shown and how to get it; empty if all lines are shown. Send it together with the lines. */
        readonly note: string;
      }
    | undefined;
}

/** Lines of a result that the context already has. */
export interface HeldLines {
  /** The index of the first line in the result. */
  readonly start: number;
  /** The index after the last line. */
  readonly end: number;
  /** Which admitted result has them, counted from 1. */
  readonly sequence: number;
  /** Whether the input of its call has them, not the result itself. */
  readonly isWritten: boolean;
  /** The number of the first line there. */
  readonly from: number;
  /** If the note names the lines by their place in a later result: the number of that result. */
  readonly by?: number | undefined;
  /** The kinds of fields in which these lines may differ from those. Without it they are the same. */
  readonly differing?: readonly FieldKind[] | undefined;
}

/** Takes in the tool results of one conversation. */
export interface Intake {
  /** Returns what to send instead of the result, and records it as held. Never rejects. */
  admit(result: IncomingResult): Promise<AdmittedResult>;
  /** Forgets what the context holds, because the client has compacted or forked the conversation. After a trim, pass
   *  `isKept`: it says which texts are still there. */
  forget(
    isKept?: (text: Pick<HeldLines, "sequence" | "isWritten"> & { readonly callId?: string | undefined }) => boolean,
  ): Promise<void>;
  /** Returns an original of this session by its id. */
  recall(id: string): Promise<string | undefined>;
}

/**
 * Creates an intake for one conversation. It takes tool results before they are first sent, so it never breaks a prompt
 * cache.
 *
 * @example
 * ```ts
 * import { createIntake } from "plimsoll/intake";
 *
 * const intake = await createIntake({ sessionId: "chat-1" });
 * const { text, edit } = await intake.admit({ tool: "read_file", input: { path: "a.ts" }, text: "…" });
 * console.log(edit, text);
 * ```
 */
export async function createIntake(options: IntakeOptions): Promise<Intake> {
  const settings = await readOptions(options);
  const { store, sessionId, agentId, patience, seen } = settings;
  const key = contextKey(settings);
  const read = createContextReader({ isShared: options.store !== undefined });
  return {
    async admit(result) {
      const tokens = countLarge(result.text, settings.counter);
      const original: AdmittedResult = { text: result.text, tokens, edit: "none" };
      const isCut = readShare(result.text, result, settings) > 1;
      const isProgram = isOutput(result) && !isSource(result);
      let next: ReturnType<typeof admitInto> | undefined;
      let answer: AdmittedResult | undefined;
      const edited = async (): Promise<AdmittedResult> => {
        await store.update(contextCollection, key, (value) => {
          next = admitInto(read.parse(value), { ...result, tokens, isCut, isOutput: isProgram }, settings);
          if (isCut && answer !== undefined) read.noteUnsent(next.context.sequence);
          return read.write(next.context);
        });
        const { admitted, context } = next as ReturnType<typeof admitInto>;
        seen.add(result, context);
        const stored: StoredOriginal = {
          sessionId,
          agentId,
          call: nameResult(result, []),
          text: result.text,
          first: readFirstLine(result),
        };
        if (admitted.id !== undefined) await keepOriginal(store, admitted.id, JSON.stringify(stored));
        return admitted;
      };
      // If the client cuts the original, the model has not seen what is recorded.
      const giveUp = (): AdmittedResult => {
        if (answer !== undefined) return answer;
        answer = original;
        if (isCut && next !== undefined) {
          read.noteUnsent(next.context.sequence);
          store.update(contextCollection, key, (value) => read.write(read.parse(value).context)).catch(() => {});
        }
        return answer;
      };
      const decided = edited().then((admitted) => (answer ??= admitted), giveUp);
      return Promise.race([decided, ...(patience === undefined ? [] : [patience().then(giveUp, giveUp)])]);
    },
    async forget(isKept = () => false) {
      await store.update(contextCollection, key, (value) => {
        const { context } = read.parse(value);
        const held = context.held.filter(({ sequence, isWritten = false, callId }) =>
          isKept({ sequence, isWritten, callId }),
        );
        return read.write({ ...context, held: dropLostNames(held), edited: [] });
      });
    },
    async recall(id) {
      const original = await readOriginal(store, id);
      return original?.sessionId === sessionId ? original.text : undefined;
    },
  };
}

async function readOptions(options: IntakeOptions): Promise<ResolvedOptions> {
  refuseUnknownOptions(options, optionNames);
  const {
    maxResultTokens = 16_000,
    pageTokens = Math.min(10_000, maxResultTokens),
    deltaWindow = Number.MAX_SAFE_INTEGER,
  } = options;
  const numbers = { maxResultTokens, pageTokens, deltaWindow };
  for (const [name, value] of Object.entries(numbers)) argumentChecks.positive(name, value);
  if (options.counter !== undefined) argumentChecks.counter("counter", options.counter);
  if (typeof options.sessionId !== "string" || options.sessionId === "") {
    throw invalidArgument("sessionId is empty", "Pass a name of the session.");
  }
  const { sessionId, agentId = "main" } = options;
  return {
    counter: options.counter ?? (await createCounter("auto")),
    store: options.store ?? createMemoryStore(),
    sessionId,
    agentId,
    markSeed: options.markSeed ?? contextKey({ sessionId, agentId }),
    maxResultTokens,
    pageTokens: Math.min(pageTokens, maxResultTokens),
    deltas: options.deltas ?? true,
    deltaWindow,
    shareOfLimit: options.shareOfLimit ?? (() => 0),
    recallHint: options.recallHint ?? ((id) => `plimsoll recall ${id}`),
    rangeHint: options.recallHint === undefined ? " --lines A-B or --grep WORD" : "",
    patience: options.patience,
    seen: createAdmittedTexts(),
  };
}

const optionNames: readonly (keyof IntakeOptions)[] = [
  "counter",
  "store",
  "sessionId",
  "agentId",
  "maxResultTokens",
  "pageTokens",
  "deltas",
  "deltaWindow",
  "shareOfLimit",
  "recallHint",
  "markSeed",
  "patience",
];

function admitInto(
  { context, hash }: OpenContext,
  result: CountedResult,
  settings: ResolvedOptions,
): { readonly context: IntakeContext; readonly admitted: AdmittedResult } {
  const { unfinished = [] } = result;
  // One digest is used both to compare the text and to name it, because each pass over several MB takes milliseconds.
  const digest = digestText(result.text);
  const whole = hash.text(digest);
  const sequence = context.sequence + 1;
  const seed = context.seed ?? (result.callId || settings.markSeed);
  const mark = createMark(seed);
  // Every process derives the same id from the same conversation.
  const id = () => createOriginalId(["intake", settings.sessionId, settings.agentId, seed, sequence, digest]);
  const held = keepWindow(context.held, settings.deltaWindow);
  const call = { call: hash.text(JSON.stringify([result.tool, result.input ?? null])), text: whole, sequence };
  // An agent that repeats a shortened call gets the whole text, unless the client would cut it and show even less.
  const insisted = result.isCut ? undefined : context.edited.find((each) => isRepeatedCall(each, call));
  // Only the mark distinguishes our notes, so a text that contains the mark gets no notes. A page leaves out colour
  // codes, so the mark is searched in the text without them.
  const isMarked = withoutColours(result.text).includes(`[${mark}`);
  const isWhole = insisted !== undefined || result.isSent === true || isRecall(result) || isMarked;
  const turn = result.isParallel === true ? context.lastTurn : { first: sequence, labels: [], unclear: [] };
  const earlier = beforeTurn(held, turn, unfinished.flatMap(nameUnfinished));
  const lines = result.text.length > largeText ? undefined : readLines(result, hash);
  const label = nameResult(result, lines ?? []);
  const options = { held: earlier, label, whole, hash, lines, mark, id, settings };
  const edit = isWhole ? undefined : chooseEdit(result, options);
  const unquoted = edit?.admitted ?? { text: result.text, tokens: result.tokens, edit: "none" };
  const admitted = quoteResult(unquoted, { mark: isMarked ? undefined : mark, settings, lines, result });
  // If the client cuts what is sent, nobody knows which lines the context has.
  const isLost = readShare(admitted.text, result, settings) > 1;
  const text = describeSent(result, { sequence, label, whole, lines, edit, isLost });
  const written = collectWrittenRuns(readWrittenTexts(result).map((each) => hashLines(each, hash)));
  const ranges = isLost ? [] : (edit?.ranges ?? []);
  const next = addSent(held, { text, lines: isLost ? undefined : lines, hash: whole, written, ranges, turn });
  return {
    admitted,
    context: {
      key: context.key,
      seed,
      sequence,
      lastTurn: next.turn,
      held: keepWindow(next.held, settings.deltaWindow),
      // An agent that has recalled a text need not insist.
      edited: isRecall(result) ? [] : nextEdited(context.edited, { insisted, isEdited: edit !== undefined, call }),
    },
  };
}

function readLines(result: CountedResult, hash: KeyedHash): readonly HashedLine[] {
  return hashLines(readComparedLines(result.text, readFirstLine(result)), hash, result.isOutput);
}

/** Returns what the context holds of this result. Its tokens count towards `deltaWindow`, so after a large result,
 *  older ones no longer count as held. */
function describeSent(
  result: CountedResult,
  sent: Pick<EditOptions, "label" | "whole" | "lines"> & {
    readonly sequence: number;
    readonly edit: Edit | undefined;
    readonly isLost: boolean;
  },
): HeldText {
  const { sequence, label, whole, lines, edit, isLost } = sent;
  const isPartial = isLost || (edit === undefined ? lines === undefined : edit.ranges === undefined);
  // All have the same fields: every result looks at all that is held, and that takes longer with objects of many forms.
  return {
    sequence,
    label,
    callId: result.callId,
    whole: (edit === undefined || edit.admitted.edit === "page") && !isLost ? whole : undefined,
    isPage: edit?.admitted.edit === "page" ? true : undefined,
    isPartial: isPartial ? true : undefined,
    tokens: edit?.admitted.tokens ?? result.tokens,
    runs: isLost ? [] : (edit?.runs ?? collectRuns(lines ?? [])),
  };
}
