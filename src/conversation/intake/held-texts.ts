/** The texts that the context holds, and how notes name their lines: by the number of the line in the newest result of
 *  a call. A line that this result no longer shows cannot be named, even if the context still has it. */
import { hashLength, type KeyedHash } from "../../core/text/index.ts";
import { type FieldKind, readShape } from "./changing-fields.ts";
import type { ResultLine } from "./result-lines.ts";

/** A line with the keyed hash of its body, by which it is compared. */
export interface HashedLine extends ResultLine {
  readonly hash: string;
  /** The hash of its shape: lines of a program that are alike have the same. Without changing fields it is `hash`. */
  readonly shape: string;
}

/** `hasShapes`: whether a program printed the lines. In other texts every number matters. */
export function hashLines(
  lines: readonly ResultLine[],
  { text: hashText }: Pick<KeyedHash, "text">,
  hasShapes = false,
): HashedLine[] {
  return lines.map(({ text, body, number, sign }) => {
    const hash = hashText(body);
    const shape = hasShapes ? readShape(body) : body;
    // Copying each object by a spread takes as long as hashing a short line.
    return { text, body, number, sign, hash, shape: shape === body ? hash : hashText(shape) };
  });
}

/** A text in the context: a result that was sent, or a text that the agent wrote in a call. */
export interface HeldText {
  /** The number of the result in its conversation, counted from 1. */
  readonly sequence: number;
  /** The call, as the notes name it. */
  readonly label: string;
  /** The id of the call, if the client passes it. */
  readonly callId?: string | undefined;
  readonly isWritten?: true;
  /** The hash of the whole text, if it was sent unchanged or as a page. Removed when a later result of the same call has another
   *  text. */
  readonly whole?: string | undefined;
  /** Whether only a page of the whole text was sent. */
  readonly isPage?: true | undefined;
  /** Set if `runs` may lack lines that a reader knows from this result, as for a duplicate or a page. */
  readonly isPartial?: true | undefined;
  /** What this text takes of the window of deltas: 0 for what the agent wrote. */
  readonly tokens: number;
  readonly runs: readonly HeldRun[];
}

/** Lines that were sent one after the other. */
export interface HeldRun {
  /** The number of the first line. */
  readonly from: number;
  /** The hashes of all lines, joined. */
  readonly hashes: string;
  /** The hashes of their shapes, if any line has another one. */
  readonly shapes?: string | undefined;
  /** If a later result left these lines out: the numbers that they have there. */
  readonly named?:
    | {
        /** The call of that result. */
        readonly label: string;
        /** The number of that result. */
        readonly by: number;
        /** The number of the first line in that result. */
        readonly from: number;
      }
    | undefined;
}

/** A range of lines that is not sent again, by indexes in the result. */
export interface HeldRange {
  readonly start: number;
  /** The index after the last line. */
  readonly end: number;
  readonly base: HeldText;
  /** The number of the first line in the base. */
  readonly baseFrom: number;
  /** How a reader finds the lines. */
  readonly name: LineName;
  /** If the lines are only alike: the fields in which they may differ. */
  readonly differing?: readonly FieldKind[] | undefined;
}

export interface LineName {
  readonly label: string;
  /** Whether the agent wrote the lines in a call. */
  readonly isWritten: boolean;
  /** The number of the first line there. */
  readonly from: number;
  /** How many lines the agent wrote, if it wrote more than these. */
  readonly of?: number | undefined;
  /** The sign before these lines in a diff. The named lines do not have it. */
  readonly sign?: string | undefined;
  /** The number of the result that named them, if it is not the base. */
  readonly by?: number | undefined;
}

/** The most texts that count as held. A window has room for thousands of short texts, and every result reads and writes
 *  all that are held. */
const maxHeld = 500;

/** Drops the oldest texts above the window. */
export function keepWindow(held: readonly HeldText[], window: number): readonly HeldText[] {
  const oldest = Math.max(0, held.length - maxHeld);
  let start = held.length;
  for (let left = window; start > oldest; start--) {
    left -= (held[start - 1] as HeldText).tokens;
    if (left < 0) break;
  }
  return start === 0 ? held : held.slice(start);
}

/** When a result leaves lines out, later notes name them by their place in that result. Drops lines whose name comes
 *  from a result that is no longer held. */
export function dropLostNames(held: readonly HeldText[]): HeldText[] {
  const results = new Set(held.flatMap(({ sequence, isWritten }) => (isWritten === true ? [] : [sequence])));
  return held.map((text) => ({
    ...text,
    runs: text.runs.filter(({ named }) => named === undefined || results.has(named.by)),
  }));
}

/** The newest turn: results that a client may send in any order. */
export interface SentTurn {
  /** The number of its first result. */
  readonly first: number;
  /** The names of its results, oldest first. */
  readonly labels: readonly string[];
  /** Names that several results of this turn share, although they show different lines. No note refers to a result of
   *  this turn by such a name. */
  readonly unclear: readonly string[];
}

/** Returns what the context held before this turn. Leaves out lines whose name is also the name of a call of this turn,
 *  because the note would be ambiguous. The result of such a call may show other lines under the same numbers.
 *  `unfinished` are the names of calls that have no result yet. */
export function beforeTurn(
  held: readonly HeldText[],
  turn: SentTurn,
  unfinished: readonly string[],
): readonly HeldText[] {
  if (turn.labels.length + unfinished.length === 0) return held;
  const earlier = held.filter(({ sequence }) => sequence < turn.first);
  // A turn of thousands of results fills the whole context, and then there is nothing to filter.
  if (earlier.length === 0) return earlier;
  const now = new Set([...turn.labels, ...unfinished]);
  return earlier.map((text) => {
    const runs = text.runs.filter(({ named }) => !now.has(named?.label ?? text.label));
    return { ...text, runs, whole: now.has(text.label) ? undefined : text.whole };
  });
}

export interface SentResult {
  readonly text: HeldText;
  /** The hash of the whole result. */
  readonly hash: string;
  /** All lines of the result. Undefined if there are too many to read. */
  readonly lines: readonly HashedLine[] | undefined;
  /** The lines that were not sent again. */
  readonly ranges: readonly HeldRange[];
  /** What the agent wrote in the call. */
  readonly written: readonly HeldRun[];
  /** The turn before this result was added. */
  readonly turn: SentTurn;
}

/** Adds what was sent to what the context holds, and what the agent wrote in the call. */
export function addSent(
  before: readonly HeldText[],
  sent: SentResult,
): { readonly held: readonly HeldText[]; readonly turn: SentTurn } {
  const { text, hash, written: runs, turn } = sent;
  const { sequence, label, callId } = text;
  const wasUnclear = turn.unclear.includes(label);
  const earlierResults = wasUnclear ? 1 : turn.labels.filter((each) => each === label).length;
  const isUnclear = wasUnclear || (earlierResults > 0 && isAmbiguous(before, sent, earlierResults));
  // An unclear name stays unclear, so it is not counted again.
  const labels = wasUnclear ? turn.labels : [...turn.labels, label];
  const shown = { ...sent, lines: hideFields(sent) };
  const renamed = renameLines(before, isUnclear ? { ...shown, ranges: [] } : shown);
  const others = replaceWritten(renamed, text.label, runs);
  if (isUnclear) {
    const unclear = wasUnclear ? turn.unclear : [...turn.unclear, label];
    const held = [...dropNames(others, turn.first, label), { ...text, runs: [], whole: undefined }];
    return { held, turn: { ...turn, labels, unclear } };
  }
  const written: HeldText = {
    sequence,
    label,
    isWritten: true,
    tokens: 0,
    runs,
    ...(callId !== undefined && { callId }),
  };
  const isOther = (each: HeldText): boolean =>
    each.label === label && each.sequence >= turn.first && each.isWritten !== true && each.whole !== hash;
  // Most results are the only one of their turn with this name.
  const own = earlierResults > 0 && before.some(isOther) ? { ...text, whole: undefined } : text;
  return { held: [...others, ...(runs.length === 0 ? [] : [written]), own], turn: { ...turn, labels } };
}

/** Returns the lines as a reader knows them. If a note said only that lines are alike, a reader knows their shape but
 *  not their numbers. */
function hideFields({ lines, ranges }: SentResult): readonly HashedLine[] | undefined {
  if (lines === undefined || !ranges.some(({ differing }) => differing !== undefined)) return lines;
  const hidden = [...lines];
  for (const { start, end, differing } of ranges) {
    if (differing === undefined) continue;
    // No hash has this sign.
    for (let index = start; index < end; index++) {
      const line = lines[index] as HashedLine;
      hidden[index] = { ...line, hash: `~${line.shape.slice(1)}` };
    }
  }
  return hidden;
}

/** Returns whether a note with the name of this result could mean two things. Either an earlier result of this turn has
 *  the same name and shows, or may show, another line under the same number. Or two calls of this name wrote different
 *  texts with equally many lines. The client may send both in any order, so the name cannot say which is meant. */
function isAmbiguous(held: readonly HeldText[], sent: SentResult, earlierResults: number): boolean {
  const { turn, lines, written } = sent;
  const { label } = sent.text;
  const isOfTurn = (text: HeldText): boolean => text.label === label && text.sequence >= turn.first;
  const others = held.filter((text) => isOfTurn(text) && text.isWritten !== true);
  if (others.length < earlierResults || others.some(({ isPartial }) => isPartial === true)) return true;
  const findOther = createFinder(lines);
  return held.some((text) =>
    text.runs.some((run) => {
      if (text.isWritten === true && run.named === undefined) {
        const isOther = (own: HeldRun): boolean =>
          countRunLines(own) === countRunLines(run) && own.hashes !== run.hashes;
        return isOfTurn(text) && written.some(isOther);
      }
      // Lines from earlier turns count as well, because the other result of this turn may have left them out.
      return (run.named?.label ?? text.label) === label && findOther(run, 0) < countRunLines(run);
    }),
  );
}

/** Drops lines that can be named only by a result of this turn with this label. */
function dropNames(held: readonly HeldText[], first: number, label: string): HeldText[] {
  return held.map((text) => {
    const isOfTurn = text.label === label && text.sequence >= first;
    const runs = text.runs.filter(({ named }) =>
      named === undefined ? !isOfTurn : named.label !== label || named.by < first,
    );
    const whole = isOfTurn ? undefined : text.whole;
    return runs.length === text.runs.length && whole === text.whole ? text : { ...text, runs, whole };
  });
}

/** Returns the runs of lines that the context holds of a result that was sent without these ranges. A run ends where
 *  the next line number is not one higher. */
export function collectRuns(lines: readonly HashedLine[], ranges: readonly HeldRange[] = []): HeldRun[] {
  const runs: { from: number; hashes: string; shapes: string }[] = [];
  let next = Number.NaN;
  let passed = 0;
  for (let index = 0; index < lines.length; index++) {
    const range = ranges[passed];
    if (range?.start === index) {
      passed++;
      index = range.end - 1;
      next = Number.NaN;
      continue;
    }
    const { hash, number, shape } = lines[index] as HashedLine;
    const last = runs.at(-1);
    if (last !== undefined && number === next) {
      last.hashes += hash;
      last.shapes += shape;
    } else runs.push({ from: number, hashes: hash, shapes: shape });
    next = number + 1;
  }
  return runs.map(withoutEqualShapes);
}

function withoutEqualShapes<Run extends HeldRun>(run: Run): Run {
  return run.shapes === run.hashes ? { ...run, shapes: undefined } : run;
}

/** Returns the runs of the texts that an agent wrote in one call. If calls with the same name wrote several texts, a
 *  note says which one it means by the number of its lines. */
export function collectWrittenRuns(texts: readonly (readonly HashedLine[])[]): HeldRun[] {
  const byCount = new Map(texts.map((lines) => [lines.length, lines]));
  const counted = (lines: readonly HashedLine[]) => lines.map((line, index) => ({ ...line, number: index + 1 }));
  return [...byCount.values()].flatMap((lines) => collectRuns(counted(lines)));
}

/** Returns what the context holds when the agent has written these texts in a call. They replace those with the same
 *  number of lines that an earlier call of the same name wrote. */
function replaceWritten(held: readonly HeldText[], label: string, written: readonly HeldRun[]): readonly HeldText[] {
  if (written.length === 0) return held;
  const counts = new Set(written.map(countRunLines));
  const isLeft = (run: HeldRun): boolean => run.named !== undefined || !counts.has(countRunLines(run));
  return held.map((text) =>
    text.isWritten === true && text.label === label ? { ...text, runs: text.runs.filter(isLeft) } : text,
  );
}

/** Returns what the context holds after a reader has seen this result. Its line numbers now mean its own lines. If an
 *  earlier result of the same call showed other lines under these numbers, those lines can no longer be named. Lines
 *  that this result left out are now named by the numbers that they have in it. */
function renameLines(held: readonly HeldText[], { text: sent, hash, lines, ranges }: SentResult): HeldText[] {
  let finder: FindOther | undefined;
  const findOther: FindOther = (run, start) => {
    finder ??= createFinder(lines);
    return finder(run, start);
  };
  const isNamed = ({ label, runs }: HeldText): boolean =>
    label === sent.label || runs.some(({ named }) => named?.label === sent.label);
  return held.map((text) => {
    // Nearly all texts have other names, and each result looks at hundreds of them.
    if (ranges.length === 0 && !isNamed(text)) return text;
    const ownLabel = text.isWritten === true ? undefined : text.label;
    const isUnchanged = (run: HeldRun): boolean =>
      (run.named?.label ?? ownLabel) !== sent.label || findOther(run, 0) === countRunLines(run);
    const isSame = text.runs.every(isUnchanged);
    const kept = isSame ? text.runs : text.runs.flatMap((run) => (isUnchanged(run) ? run : splitRun(run, findOther)));
    const added = ranges.flatMap(({ start, end, base, baseFrom, name, differing }): HeldRun[] => {
      const from = lines?.[start]?.number ?? 0;
      const isName = name.label === sent.label && !name.isWritten && name.from === from;
      const isBase = base.sequence === text.sequence && base.isWritten === text.isWritten;
      if (!isBase || (isName && differing === undefined)) return [];
      const named = { label: sent.label, by: sent.sequence, from };
      const [held] = collectRuns((lines ?? []).slice(start, end));
      const isKnown = kept.some(
        (run) => run.named?.label === sent.label && run.named.from === from && run.hashes === held?.hashes,
      );
      return held === undefined || isKnown ? [] : [{ ...held, from: baseFrom, named }];
    });
    const whole = text.label === sent.label && text.whole !== hash ? undefined : text.whole;
    if (isSame && added.length === 0 && whole === text.whole) return text;
    return { ...text, runs: keepNewestNames([...kept, ...added]), whole };
  });
}

/** Many short results may name the same lines. Of these names only the newest are kept. */
function keepNewestNames(runs: readonly HeldRun[]): readonly HeldRun[] {
  const old = new Set(runs.filter(({ named }) => named !== undefined).slice(0, -maxNames));
  return old.size === 0 ? runs : runs.filter((run) => !old.has(run));
}

const maxNames = 40;

/** Finds the first line of a run, from `start` on, whose number has another text in a result. Returns the run's length
 *  if there is none. */
type FindOther = (run: HeldRun, start: number) => number;

/** If the lines were not read, every line may be another one. */
function createFinder(lines: readonly HashedLine[] | undefined): FindOther {
  if (lines === undefined) return (_, start) => start;
  const [first, ...others] = collectRuns(lines);
  // The numbers of most results have no gaps. Then runs are compared as one text, without a map of all lines.
  const single = others.length === 0 ? first : undefined;
  const byNumber = new Map(single === undefined ? lines.map(({ number, hash }) => [number, hash]) : []);
  const readHash = (number: number): string | undefined =>
    single === undefined ? byNumber.get(number) : listHashes(single)[number - single.from];
  return (run, start) => {
    const count = countRunLines(run);
    const from = run.named?.from ?? run.from;
    if (single !== undefined) {
      const shift = from - single.from;
      const begin = Math.max(start, -shift);
      const end = Math.max(begin, Math.min(count, countRunLines(single) - shift));
      if (sliceLines(run, begin, end) === sliceLines(single, begin + shift, end + shift)) return count;
    }
    for (let line = start; line < count; line++) {
      const own = listHashes(run)[line];
      if ((readHash(from + line) ?? own) !== own) return line;
    }
    return count;
  };
}

/** Returns the parts of a run without the lines that a result shows differently. Short parts are not worth a note. */
function splitRun(run: HeldRun, findOther: FindOther): HeldRun[] {
  const count = countRunLines(run);
  const parts: HeldRun[] = [];
  for (let start = 0, end = 0; start < count; start = end + 1) {
    end = findOther(run, start);
    if (end - start < minPart) continue;
    const named = run.named && { ...run.named, from: run.named.from + start };
    const shapes = run.shapes && sliceLines({ ...run, hashes: run.shapes }, start, end);
    parts.push({ from: run.from + start, hashes: sliceLines(run, start, end), shapes, named });
  }
  return parts;
}

const minPart = 3;

export function countRunLines({ hashes }: HeldRun): number {
  return hashes.length / hashLength;
}

/** Returns the hashes of a run's lines, one by one, or those of their shapes. Every result is compared with all lines that
 *  are held, so they are cut apart once. */
export function listHashes(run: HeldRun, of: "hashes" | "shapes" = "hashes"): readonly string[] {
  const name = run.shapes === undefined ? "hashes" : of;
  const known = cutApart[name].get(run);
  if (known !== undefined) return known;
  const joined = run[name] ?? run.hashes;
  const cut = (_: unknown, line: number): string => joined.slice(line * hashLength, (line + 1) * hashLength);
  const list = Array.from({ length: countRunLines(run) }, cut);
  cutApart[name].set(run, list);
  return list;
}

const cutApart = {
  hashes: new WeakMap<HeldRun, readonly string[]>(),
  shapes: new WeakMap<HeldRun, readonly string[]>(),
};

function sliceLines({ hashes }: HeldRun, start: number, end: number): string {
  return hashes.slice(start * hashLength, end * hashLength);
}
