/** Chooses what to send instead of a result: a note if the context holds the same text, what is new, or a page. */
import type { KeyedHash } from "../../core/text/index.ts";
import type { AdmittedTexts } from "./admitted-texts.ts";
import { findDelta } from "./delta.ts";
import { collectRuns, type HashedLine, type HeldRange, type HeldRun, type HeldText, hashLines } from "./held-texts.ts";
import type { AdmittedResult, IncomingResult, IntakeOptions } from "./intake.ts";
import { countLarge, cutBeginning, describeSize, largeText, makePage } from "./page.ts";
import { quoteNotes } from "./quote-notes.ts";
import { cleanWords } from "./read-call.ts";
import { weighLines } from "./result-lines.ts";
import { isSource, makeSourcePage } from "./source-page.ts";

/** `rangeHint` says how to ask for a part of an original. */
export type ResolvedOptions = Required<Omit<IntakeOptions, "patience">> &
  Pick<IntakeOptions, "patience"> & { readonly rangeHint: string; readonly seen: AdmittedTexts };

/** `isCut`: the client would cut the result. `isOutput`: a program printed it, and it is no source code. */
export type CountedResult = IncomingResult & {
  readonly tokens: number;
  readonly isCut: boolean;
  readonly isOutput: boolean;
};

export interface Edit {
  readonly admitted: AdmittedResult;
  readonly runs: readonly HeldRun[];
  /** The lines that are not sent again. */
  readonly ranges?: readonly HeldRange[] | undefined;
}

export interface EditOptions {
  /** The hash of the whole text. */
  readonly whole: string;
  readonly lines: readonly HashedLine[] | undefined;
  /** How notes name the call. */
  readonly label: string;
  readonly held: readonly HeldText[];
  readonly hash: KeyedHash;
  readonly mark: string;
  /** Returns the id of the original. */
  readonly id: () => string;
  readonly settings: ResolvedOptions;
}

export function chooseEdit(result: CountedResult, options: EditOptions): Edit | undefined {
  if (result.tokens < minTokens) return undefined;
  const { deltas, maxResultTokens } = options.settings;
  const edits = deltas ? [makeDuplicate(result, options) ?? makeDelta(result, options)] : [];
  // What is new can still be too long for one result.
  const [shorter] = edits.filter((edit) => edit !== undefined && isWorthwhile(result, edit));
  const { tokens, text } = shorter?.admitted ?? result;
  if (tokens <= maxResultTokens && readShare(text, result, options.settings) <= 1) return shorter;
  const page = makePagedResult(result, options);
  return page !== undefined && (isWorthwhile(result, page) || result.isCut) ? page : shorter;
}

const minTokens = 200;
/** An edit that saves less is not worth a reader's attention. */
const minSaved = 100;
const minSavedShare = 0.2;

function isWorthwhile({ text, tokens }: CountedResult, { admitted }: Edit): boolean {
  const saved = tokens - admitted.tokens;
  return admitted.text.length < text.length && saved >= minSaved && saved >= tokens * minSavedShare;
}

function makeDuplicate(
  result: CountedResult,
  { held, settings, mark, lines, ...options }: EditOptions,
): Edit | undefined {
  const { text, tokens } = result;
  const same = held.findLast(({ whole }) => whole === options.whole);
  if (same === undefined || !settings.seen.isSameText(same, text)) return undefined;
  // A failure that still occurs is shown again.
  if (result.isOutput && lines !== undefined && weighLines(lines).includes(3)) return undefined;
  const id = options.id();
  const size = describeSize(text, tokens);
  const above = result.isUnordered === true ? "above, before these calls" : "above";
  const note = `[${mark}: Same text as the result of ${same.label} ${above}${same.isPage === true ? ", which is a page of it" : ""} (${size}). To print it again: ${settings.recallHint(id)}]`;
  return {
    runs: [],
    admitted: {
      text: note,
      tokens: settings.counter.count(note),
      edit: "duplicate",
      id,
      same: same.sequence,
      bases: listCallIds([same]),
    },
  };
}

function makeDelta(
  result: CountedResult,
  { held, label, settings, lines, hash, mark, ...options }: EditOptions,
): Edit | undefined {
  if (held.length === 0 || lines === undefined) return undefined;
  const weights = result.isOutput ? weighLines(lines) : [];
  const isOnePiece = result.isOnePiece === true;
  const recallHint = (): string => settings.recallHint(options.id());
  const isKept = (index: number): boolean => weights[index] === 3;
  // What belongs to a failure is shown as it is.
  const isExact = weights.length === 0 ? undefined : (index: number): boolean => (weights[index] ?? 0) >= 2;
  const { isUnordered } = result;
  const found = { held, label, isKept, isExact, isOnePiece, isUnordered, hash, mark, recallHint };
  const delta = findDelta(lines, found);
  if (delta === undefined || !settings.seen.areSameLines(lines, delta.ranges)) return undefined;
  const { text, ranges, piece } = delta;
  return {
    runs: collectRuns(lines, ranges),
    ranges,
    admitted: {
      text,
      tokens: settings.counter.count(text),
      edit: "delta",
      id: options.id(),
      held: ranges.map(({ start, end, base, baseFrom, name: { by }, differing }) => ({
        start,
        end,
        sequence: base.sequence,
        isWritten: base.isWritten === true,
        from: baseFrom,
        ...(by !== undefined && { by }),
        ...(differing !== undefined && { differing }),
      })),
      bases: listCallIds(
        ranges.flatMap(({ base, name }) => [base, ...held.filter(({ sequence }) => sequence === name.by)]),
      ),
      ...(piece !== undefined && { piece }),
    },
  };
}

function listCallIds(texts: readonly HeldText[]): string[] {
  return [...new Set(texts.flatMap(({ callId }) => callId ?? []))];
}

function makePagedResult(result: CountedResult, { settings, mark, hash, ...options }: EditOptions): Edit | undefined {
  const id = options.id();
  const { counter, pageTokens, recallHint } = settings;
  const { tokens: resultTokens } = result;
  const size = describeSize(result.text, resultTokens);
  const { savedAs = "" } = result;
  const saved = savedAs === "" || savedAs.length > 250 ? "" : ` The client saved it as ${cleanWords(savedAs)}.`;
  const about = `[${mark}: The whole result has ${size}.${saved} To read the rest: ${recallHint(id)}${settings.rangeHint}]`;
  if (result.isOnePiece === true) {
    const beginning = cutBeginning(options.lines ?? [], { counter, maxTokens: pageTokens, mark, about });
    if (beginning === undefined) return undefined;
    const { end, ...page } = beginning;
    return {
      runs: collectRuns((options.lines ?? []).slice(0, end)),
      admitted: { ...page, edit: "page", id },
    };
  }
  const fit = { counter, maxTokens: pageTokens, shareOfLimit: (text: string) => readShare(text, result, settings) };
  const asked = { ...fit, resultTokens, about, mark, isOutput: result.isOutput };
  const page = (isSource(result) ? makeSourcePage : makePage)(result.text, asked);
  if (page === undefined) return undefined;
  const { text, tokens } = page;
  // Only parts of a large text were read, so its lines are not counted.
  const runs = result.text.length > largeText ? [] : page.runs;
  return {
    runs: runs.flatMap((run) => collectRuns(hashLines(run, hash))),
    admitted: { text, tokens, edit: "page", id },
  };
}
/** Marks lines that look like our notes as text of the result. Without a mark, no line is ours. */
export function quoteResult(
  admitted: AdmittedResult,
  {
    mark,
    settings,
    lines = [],
    result,
  }: Partial<EditOptions> & { readonly settings: ResolvedOptions; readonly result: CountedResult },
): AdmittedResult {
  const text = quoteNotes(admitted.text, mark);
  if (text === admitted.text) return admitted;
  const whole = { start: 0, end: lines.length, text: lines.map(({ body }) => body).join("\n"), note: "" };
  const piece = admitted.piece ?? (admitted.edit === "none" && result.isOnePiece === true ? whole : undefined);
  return {
    ...admitted,
    text,
    tokens: countLarge(text, settings.counter),
    edit: admitted.edit === "none" ? "quote" : admitted.edit,
    ...(piece !== undefined && { piece: { ...piece, text: quoteNotes(piece.text, mark) } }),
  };
}

/** Which share of the client's limits a text takes. Above 1 the client cuts it. */
export function readShare(
  text: string,
  { shareOfLimit: own }: IncomingResult,
  { shareOfLimit }: ResolvedOptions,
): number {
  return Math.max(shareOfLimit(text), own?.(text) ?? 0);
}
