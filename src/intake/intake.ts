/** Takes in tool results before a model first sees them. A result that repeats what the context holds becomes a note or
 *  what is new; a very long one becomes a page. The store has the original before the shorter text is returned. Every
 *  failure returns the original. */
import { createHash } from "node:crypto";
import { invalidArgument } from "../errors.ts";
import { createMemoryStore, type Store } from "../store/index.ts";
import {
  countNoun,
  createOriginalIds,
  isText,
  type OriginalIds,
  objectOf,
  readJson,
  refuseUnknownOptions,
} from "../text/index.ts";
import { type Counter, createCounter } from "../tokens/index.ts";
import { findDelta } from "./delta.ts";
import {
  beforeTurn,
  type HeldRange,
  type HeldRun,
  type HeldText,
  holdSent,
  runsSent,
  runsWritten,
  type SentTurn,
  withinWindow,
  withoutLostNames,
} from "./held-texts.ts";
import { countLarge, largeText, pageOf, sizeOf } from "./page.ts";
import { type EditedCall, isOutput, isRecall, isRepeated, labelOf, nextEdited, writtenTexts } from "./read-call.ts";
import { type ResultLine, readResultLines, weighLines } from "./result-lines.ts";

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
  /** How many of the newest tokens count as held by the context. Clients remove older results themselves.
   *  @default 40000 */
  readonly deltaWindow?: number | undefined;
  /** Returns which share of the client's own limit a text takes, if the client cuts results by characters, bytes or
   *  lines. Above 1 the result becomes a page that fits, or counts as not sent. By default there is no such limit. */
  readonly shareOfLimit?: ((text: string) => number) | undefined;
  /** Says how to get an original. It is part of the shortened text.
   *  @default (id) => `plimsoll recall ${id}` */
  readonly recallHint?: ((id: string) => string) | undefined;
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
  /** Whether the client can show only lines that follow each other, because it numbers them itself. */
  readonly isOnePiece?: boolean | undefined;
  /** Whether the model made this call together with the one before. The client may then send the results in another order,
   *  so this one does not refer to the others. */
  readonly isParallel?: boolean | undefined;
  /** The calls that the model made together with this one and that have no result yet. Their results may be sent before
   *  this one. */
  readonly unfinished?: readonly Pick<IncomingResult, "tool" | "input">[] | undefined;
  /** Returns which share of the client's limit for this tool a text takes, as the option of `createIntake` does. */
  readonly shareOfLimit?: ((text: string) => number) | undefined;
}

/** A result as the model should see it. */
export interface AdmittedResult {
  readonly text: string;
  readonly tokens: number;
  /** What was done: `duplicate` and `delta` leave out what the context holds, `page` leaves out a part. */
  readonly edit: "none" | "duplicate" | "delta" | "page";
  /** The id of the original, if the text was edited. */
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
        /** Says what is not shown and how to get it. Send it together with the lines. */
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
  /** A later result that left them out too, if the note names them as that one did. */
  readonly by?: number | undefined;
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

/** The collections of the store. */
export const originalsCollection = "intake-originals";
export const heldCollection = "intake-context";

/** The text of a result that was edited, as the tool returned it. */
interface StoredOriginal {
  readonly sessionId: string;
  readonly agentId: string;
  /** The call: the tool and what it was about. */
  readonly call: string;
  readonly text: string;
}

/** Returns the original with this id, of any session. */
export async function readOriginal(store: Pick<Store, "get">, id: string): Promise<StoredOriginal | undefined> {
  const record = await store.get(originalsCollection, id);
  return readJson(record?.value, objectOf({ sessionId: isText, agentId: isText, call: isText, text: isText }));
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
  const { store, sessionId, agentId, patience } = settings;
  const key = JSON.stringify([sessionId, agentId]);
  const read = createContextReader();
  return {
    async admit(result) {
      const tokens = countLarge(result.text, settings.counter);
      const original: AdmittedResult = { text: result.text, tokens, edit: "none" };
      const edited = async (): Promise<AdmittedResult> => {
        let admitted = original;
        await store.update(heldCollection, key, (value) => {
          const next = admitInto(
            read.parse(value),
            { ...result, tokens, isCut: shareOf(result.text, result, settings) > 1 },
            settings,
          );
          admitted = next.admitted;
          return read.written(next.context);
        });
        if (admitted.id === undefined) return admitted;
        const stored: StoredOriginal = { sessionId, agentId, call: labelOf(result), text: result.text };
        await store.put(originalsCollection, admitted.id, JSON.stringify(stored));
        return admitted;
      };
      const late = patience?.().then(
        () => original,
        () => original,
      );
      return Promise.race([edited().catch(() => original), ...(late === undefined ? [] : [late])]);
    },
    async forget(isKept = () => false) {
      await store.update(heldCollection, key, (value) => {
        const context = read.parse(value);
        const held = context.held.filter(({ sequence, isWritten = false, callId }) =>
          isKept({ sequence, isWritten, callId }),
        );
        return read.written({ ...context, held: withoutLostNames(held), edited: [] });
      });
    },
    async recall(id) {
      const original = await readOriginal(store, id);
      return original?.sessionId === sessionId ? original.text : undefined;
    },
  };
}

/** `rangeHint` says how to ask for a part of an original. */
type Settings = Required<Omit<IntakeOptions, "patience">> &
  Pick<IntakeOptions, "patience"> & { readonly rangeHint: string; readonly ids: OriginalIds };

async function readOptions(options: IntakeOptions): Promise<Settings> {
  refuseUnknownOptions(options, optionNames);
  const { maxResultTokens = 16_000, pageTokens = Math.min(10_000, maxResultTokens), deltaWindow = 40_000 } = options;
  for (const [name, value] of Object.entries({ maxResultTokens, pageTokens, deltaWindow })) {
    if (!Number.isSafeInteger(value) || value < 1)
      throw invalidArgument(`${name} is ${value}`, "Use a whole number from 1.");
  }
  if (options.counter !== undefined && typeof options.counter.count !== "function") {
    throw invalidArgument("counter is not a counter", "Pass one of createCounter.");
  }
  if (typeof options.sessionId !== "string" || options.sessionId === "") {
    throw invalidArgument("sessionId is empty", "Pass a name of the session.");
  }
  const { sessionId, agentId = "main" } = options;
  return {
    counter: options.counter ?? (await createCounter("auto")),
    store: options.store ?? createMemoryStore(),
    ...{ sessionId, agentId, ids: createOriginalIds({ maker: "intake", sessionId, agentId }) },
    maxResultTokens,
    pageTokens: Math.min(pageTokens, maxResultTokens),
    deltas: options.deltas ?? true,
    deltaWindow,
    shareOfLimit: options.shareOfLimit ?? (() => 0),
    recallHint: options.recallHint ?? ((id) => `plimsoll recall ${id}`),
    rangeHint: options.recallHint === undefined ? " --lines A-B or --grep WORD" : "",
    patience: options.patience,
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
  "patience",
];

/** What the context holds, oldest first. */
interface HeldContext {
  /** The number of results so far. */
  readonly sequence: number;
  readonly held: readonly HeldText[];
  /** The newest calls whose results were edited. */
  readonly edited: readonly EditedCall[];
  readonly lastTurn: SentTurn;
}

/** Parses a context only if it is not the one that this process wrote last. */
function createContextReader(): {
  parse(value: string | undefined): HeldContext;
  /** Returns the context as text. */
  written(context: HeldContext): string;
} {
  let known: { readonly value: string; readonly context: HeldContext } | undefined;
  return {
    parse(value) {
      if (value === undefined) return nothing;
      if (known?.value !== value) known = { value, context: { ...nothing, ...JSON.parse(value) } };
      return known.context;
    },
    written(context) {
      known = { value: JSON.stringify(context), context };
      return known.value;
    },
  };
}

const nothing: HeldContext = { sequence: 0, held: [], edited: [], lastTurn: { first: 0, labels: [], unclear: [] } };

/** `isCut`: the client would cut the result. */
type Counted = IncomingResult & { readonly tokens: number; readonly isCut: boolean };

interface Admission {
  readonly context: HeldContext;
  readonly admitted: AdmittedResult;
}

function admitInto(context: HeldContext, result: Counted, settings: Settings): Admission {
  const hash = hashOf(result.text);
  const sequence = context.sequence + 1;
  const id = (): string => settings.ids.idOf(sequence, hash);
  const held = withinWindow(context.held, settings.deltaWindow);
  const call = { call: hashOf(JSON.stringify([result.tool, result.input ?? null])), text: hash, sequence };
  // Of an original that the client cuts, an agent that insists would get even less.
  const insisted = result.isCut ? undefined : context.edited.find((each) => isRepeated(each, call));
  const isWhole = insisted !== undefined || isRecall(result);
  const turn = result.isParallel === true ? context.lastTurn : { first: sequence, labels: [], unclear: [] };
  const earlier = beforeTurn(held, turn, result.unfinished?.map(labelOf) ?? []);
  const edit = isWhole ? undefined : editOf(result, { held: earlier, hash, id, settings });
  const { lines, ...text } = sentText(result, { sequence, hash, edit });
  const written = runsWritten(writtenTexts(result));
  const next = holdSent(held, { text, lines, hash, written, ranges: edit?.ranges ?? [], turn });
  return {
    admitted: edit?.admitted ?? { text: result.text, tokens: result.tokens, edit: "none" },
    context: {
      ...{ sequence, lastTurn: next.turn },
      held: withinWindow(next.held, settings.deltaWindow),
      // An agent that has recalled a text need not insist.
      edited: isRecall(result) ? [] : nextEdited(context.edited, { insisted, isEdited: edit !== undefined, call }),
    },
  };
}

/** Which share of the client's limits a text takes. Above 1 the client cuts it. */
function shareOf(text: string, { shareOfLimit: own }: IncomingResult, { shareOfLimit }: Settings): number {
  return Math.max(shareOfLimit(text), own?.(text) ?? 0);
}

interface SentOptions {
  readonly sequence: number;
  readonly hash: string;
  readonly edit: Edit | undefined;
}

type SentText = HeldText & { readonly lines: ResultLine[] | undefined };

/** Returns what the context holds of this result, and all its lines, if they are known. A large result fills the window
 *  of what counts as held. */
function sentText(result: Counted, { sequence, hash, edit }: SentOptions): SentText {
  const isLost = edit === undefined && result.isCut;
  const lines = isLost || result.text.length > largeText ? undefined : readResultLines(result.text);
  return {
    ...{ sequence, label: labelOf(result), lines },
    tokens: edit?.admitted.tokens ?? result.tokens,
    runs: edit?.runs ?? runsSent(lines ?? [], []),
    ...(result.callId !== undefined && { callId: result.callId }),
    ...(edit === undefined && !isLost && { whole: hash }),
    ...((edit === undefined ? lines === undefined : edit.ranges === undefined) && { isPartial: true }),
  };
}

interface Edit {
  readonly admitted: AdmittedResult;
  readonly runs: readonly HeldRun[];
  /** The lines that are not sent again. */
  readonly ranges?: readonly HeldRange[] | undefined;
}

interface EditOptions {
  readonly held: readonly HeldText[];
  /** The hash of the whole text. */
  readonly hash: string;
  /** Returns the id of the original. */
  readonly id: () => string;
  readonly settings: Settings;
}

function editOf(result: Counted, options: EditOptions): Edit | undefined {
  if (result.tokens < leastTokens) return undefined;
  const { deltas, maxResultTokens } = options.settings;
  const edits = deltas ? [duplicateOf(result, options) ?? deltaOf(result, options)] : [];
  // What is new can still be too long for one result.
  const [shorter] = edits.filter((edit) => edit !== undefined && isWorthwhile(result, edit));
  const { tokens, text } = shorter?.admitted ?? result;
  if (tokens <= maxResultTokens && shareOf(text, result, options.settings) <= 1) return shorter;
  const page = pagedResult(result, options);
  return page !== undefined && (isWorthwhile(result, page) || result.isCut) ? page : shorter;
}

const leastTokens = 200;
/** An edit that saves less is not worth a reader's attention. */
const leastSaved = 100;
const leastSavedShare = 0.2;

function isWorthwhile({ text, tokens }: Counted, { admitted }: Edit): boolean {
  const saved = tokens - admitted.tokens;
  return admitted.text.length < text.length && saved >= leastSaved && saved >= tokens * leastSavedShare;
}

function duplicateOf(result: Counted, { held, hash, settings, ...options }: EditOptions): Edit | undefined {
  const { text, tokens } = result;
  const same = held.findLast(({ whole }) => whole === hash);
  if (same === undefined) return undefined;
  // What still fails is shown again.
  if (isOutput(result) && text.length <= largeText && weighLines(readResultLines(text)).includes(3)) return undefined;
  const id = options.id();
  const size = sizeOf(text, tokens);
  const note = `[Same text as the result of ${same.label} above (${size}). To print it again: ${settings.recallHint(id)}]`;
  return {
    runs: [],
    admitted: {
      ...{ text: note, tokens: settings.counter.count(note), edit: "duplicate", id, same: same.sequence },
      bases: callsOf([same]),
    },
  };
}

function deltaOf(result: Counted, { held, settings, ...options }: EditOptions): Edit | undefined {
  if (held.length === 0 || result.text.length > largeText) return undefined;
  const lines = readResultLines(result.text);
  const weights = isOutput(result) ? weighLines(lines) : [];
  const isOnePiece = result.isOnePiece === true;
  const recallHint = (): string => settings.recallHint(options.id());
  const isKept = (index: number): boolean => weights[index] === 3;
  const delta = findDelta(lines, { held, label: labelOf(result), isKept, isOnePiece, recallHint });
  if (delta === undefined) return undefined;
  const { text, ranges, piece } = delta;
  return {
    runs: runsSent(lines, ranges),
    ranges,
    admitted: {
      ...{ text, tokens: settings.counter.count(text), edit: "delta", id: options.id(), held: ranges.map(heldLines) },
      bases: callsOf(
        ranges.flatMap(({ base, name }) => [base, ...held.filter(({ sequence }) => sequence === name.by)]),
      ),
      ...(piece !== undefined && { piece }),
    },
  };
}

function callsOf(texts: readonly HeldText[]): string[] {
  return [...new Set(texts.flatMap(({ callId }) => callId ?? []))];
}

function heldLines({ start, end, base, baseFrom, name: { by } }: HeldRange): HeldLines {
  const place = { sequence: base.sequence, isWritten: base.isWritten === true, from: baseFrom };
  return { start, end, ...place, ...(by !== undefined && { by }) };
}

function pagedResult(result: Counted, { settings, ...options }: EditOptions): Edit | undefined {
  const id = options.id();
  const { counter, pageTokens, recallHint } = settings;
  const size = sizeOf(result.text, result.tokens);
  const about = `[The whole result has ${size}. To read the rest: ${recallHint(id)}${settings.rangeHint}]`;
  if (result.isOnePiece === true) return beginningOf(result, { about, id, settings });
  const fit = { counter, maxTokens: pageTokens, shareOfLimit: (text: string) => shareOf(text, result, settings) };
  const page = pageOf(result.text, { ...fit, about, isOutput: isOutput(result) });
  if (page === undefined) return undefined;
  const { text, tokens } = page;
  // Only parts of a large text were read, so its lines are not counted.
  const runs = result.text.length > largeText ? [] : page.runs;
  return { runs: runs.flatMap((run) => runsSent(run, [])), admitted: { text, tokens, edit: "page", id } };
}

/** A page that is one piece: the lines from the first one on. */
function beginningOf(
  { text }: Counted,
  { about, id, settings }: Pick<EditOptions, "settings"> & { readonly about: string; readonly id: string },
): Edit | undefined {
  const { counter, pageTokens } = settings;
  const lines = readResultLines(text);
  let left = pageTokens - counter.count(about) - leastEnd;
  const end = lines.findIndex((line) => {
    left -= counter.count(`${line.text}\n`);
    return left < 0;
  });
  if (end < 1) return undefined;
  const missing = `[… ${countNoun(lines.length - end, "line")} left out]`;
  const shown = [...lines.slice(0, end).map((line) => line.text), missing, about].join("\n");
  const piece = { start: 0, end, note: `${missing} ${about}` };
  return {
    runs: runsSent(lines.slice(0, end), []),
    admitted: { text: shown, tokens: counter.count(shown), edit: "page", id, piece },
  };
}

/** The tokens of the note about missing lines, and of what lines take together and not alone. */
const leastEnd = 40;

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("base64url").slice(0, 22);
}
