/** The texts that the context holds, and how a note names their lines: by the number that the newest result of a call gave
 *  them. Text that such a result no longer shows has no name, even if it is still in the context. */
import { hashLength, type KeyedHash } from "../../core/text/index.ts";
import type { ResultLine } from "./result-lines.ts";

/** A line with the keyed hash of its body, by which it is compared. */
export interface HashedLine extends ResultLine {
  readonly hash: string;
}

export function hashLines(lines: readonly ResultLine[], hash: KeyedHash): HashedLine[] {
  return lines.map((line) => ({ ...line, hash: hash.text(line.body) }));
}

/** A text in the context: a result that was sent, or a text that the agent wrote in a call. */
export interface HeldText {
  /** The number of the result in its conversation, counted from 1. */
  readonly sequence: number;
  /** The call, as the notes name it. */
  readonly label: string;
  /** The id of the call, if the client has told it. */
  readonly callId?: string | undefined;
  readonly isWritten?: true;
  /** The hash of a whole text that was sent unchanged, while no later result of the call has another text. */
  readonly whole?: string | undefined;
  /** Set for a duplicate or a page: a reader may know lines of it that no run has. */
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
  /** If a later result left these lines out and named them in its own way. */
  readonly named?: NamedLines | undefined;
}

interface NamedLines {
  /** The call of that result. */
  readonly label: string;
  /** The number of that result. */
  readonly by: number;
  /** The number of the first line in that result. */
  readonly from: number;
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
}

export interface LineName {
  readonly label: string;
  /** Whether the agent wrote the lines in a call. */
  readonly isWritten: boolean;
  /** The number of the first line there. */
  readonly from: number;
  /** How many lines the agent wrote, if it wrote more than these. */
  readonly of?: number | undefined;
  /** The sign that stands before these lines in a diff, and not there. */
  readonly sign?: string | undefined;
  /** The number of the result that named them, if it is not the base. */
  readonly by?: number | undefined;
}

/** Texts of a few tokens each: every result reads and writes all that is held, and a window has room for thousands. */
const mostHeld = 500;

/** Drops the oldest texts above the window. */
export function withinWindow(held: readonly HeldText[], window: number): readonly HeldText[] {
  const oldest = Math.max(0, held.length - mostHeld);
  let start = held.length;
  for (let left = window; start > oldest; start--) {
    left -= (held[start - 1] as HeldText).tokens;
    if (left < 0) break;
  }
  return start === 0 ? held : held.slice(start);
}

/** Drops the names that a result gave to lines of an earlier one, if that result is gone. */
export function withoutLostNames(held: readonly HeldText[]): HeldText[] {
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
  /** Those of them under which different lines were shown. No note uses such a name for a result of this turn. */
  readonly unclear: readonly string[];
}

/** Returns what the context held before a turn, without lines that a result of this turn may rename. `unfinished` are
 *  the names of its calls without a result. */
export function beforeTurn(
  held: readonly HeldText[],
  turn: SentTurn,
  unfinished: readonly string[],
): readonly HeldText[] {
  if (turn.labels.length + unfinished.length === 0) return held;
  const earlier = held.filter(({ sequence }) => sequence < turn.first);
  // A turn of thousands of results fills the context alone.
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
  /** The turn of this result, as it was before it. */
  readonly turn: SentTurn;
}

/** Adds what was sent to what the context holds, and what the agent wrote in the call. */
export function holdSent(
  before: readonly HeldText[],
  sent: SentResult,
): { readonly held: readonly HeldText[]; readonly turn: SentTurn } {
  const { text, hash, written: runs, turn } = sent;
  const { sequence, label, callId } = text;
  // How often an unclear name was used no longer matters.
  const labels = turn.unclear.includes(label) ? turn.labels : [...turn.labels, label];
  const isNamed = !turn.labels.includes(label) || !(turn.unclear.includes(label) || isUnclear(before, sent));
  const written: HeldText = {
    sequence,
    label,
    isWritten: true,
    tokens: 0,
    runs,
    ...(callId !== undefined && { callId }),
  };
  const others = nameWritten(nameLines(before, isNamed ? sent : { ...sent, ranges: [] }), written);
  if (!isNamed) {
    const held = [...withoutUnclear(others, turn.first, label), { ...text, runs: [], whole: undefined }];
    const unclear = turn.unclear.includes(label) ? turn.unclear : [...turn.unclear, label];
    return { held, turn: { ...turn, labels, unclear } };
  }
  const isOther = (each: HeldText): boolean =>
    each.label === label && each.sequence >= turn.first && each.isWritten !== true && each.whole !== hash;
  // Most results are the only one of their turn with this name.
  const own = turn.labels.includes(label) && before.some(isOther) ? { ...text, whole: undefined } : text;
  return { held: [...others, ...(runs.length === 0 ? [] : [written]), own], turn: { ...turn, labels } };
}

/** Returns whether an earlier result of this turn with the same name shows, or may show, another line under a number. The
 *  client may send either one last, so the name means neither. The same is true of calls that wrote different texts with
 *  the same number of lines. */
function isUnclear(held: readonly HeldText[], { text: { label }, turn, lines, written }: SentResult): boolean {
  const others = held.filter((text) => text.label === label && text.sequence >= turn.first && text.isWritten !== true);
  const isLost = others.length < turn.labels.filter((each) => each === label).length;
  if (isLost || others.some(({ isPartial }) => isPartial === true)) return true;
  const hashes = new Map(lines?.map(({ number, hash }) => [number, hash]));
  return held.some((text) =>
    text.runs.some((run) => {
      if (text.isWritten === true && run.named === undefined) {
        const isOther = (own: HeldRun): boolean => linesIn(own) === linesIn(run) && own.hashes !== run.hashes;
        return text.label === label && text.sequence >= turn.first && written.some(isOther);
      }
      // Lines of earlier turns count, too: the other result may have left them out.
      const { label: own, from } = run.named ?? { label: text.label, from: run.from };
      if (own !== label) return false;
      return (
        lines === undefined || numbersOf(run, from).some(([number, hash]) => (hashes.get(number) ?? hash) !== hash)
      );
    }),
  );
}

function numbersOf(run: HeldRun, from: number): (readonly [number: number, hash: string])[] {
  return Array.from({ length: linesIn(run) }, (_, line) => [from + line, hashAt(run, line)]);
}

/** Drops the names that results of this turn gave under a label. */
function withoutUnclear(held: readonly HeldText[], first: number, label: string): HeldText[] {
  return held.map((text) => {
    const isOwn = text.label === label && text.sequence >= first;
    const isNamed = ({ named }: HeldRun): boolean =>
      named === undefined ? !isOwn : named.label !== label || named.by < first;
    return { ...text, runs: text.runs.filter(isNamed), whole: isOwn ? undefined : text.whole };
  });
}

/** Returns what the context holds of a result once it is sent without these ranges. */
export function runsSent(lines: readonly HashedLine[], ranges: readonly HeldRange[]): HeldRun[] {
  const runs: HeldRun[] = [];
  let at = 0;
  for (const range of [...ranges, undefined]) {
    const end = range?.start ?? lines.length;
    for (const run of numberedRuns(lines.slice(at, end))) runs.push(run);
    at = range?.end ?? end;
  }
  return runs;
}

/** Splits where the numbers do not count on. */
function numberedRuns(lines: readonly HashedLine[]): HeldRun[] {
  const runs: { from: number; hashes: string; next: number }[] = [];
  for (const { hash, number } of lines) {
    const last = runs.at(-1);
    if (last !== undefined && last.next === number) {
      last.hashes += hash;
      last.next++;
    } else runs.push({ from: number, hashes: hash, next: number + 1 });
  }
  return runs.map(({ from, hashes }) => ({ from, hashes }));
}

/** Returns the runs of the texts that an agent wrote in one call. A note tells several texts of calls with the same name
 *  apart by their numbers of lines. */
export function runsWritten(texts: readonly (readonly HashedLine[])[]): HeldRun[] {
  const byCount = new Map(texts.map((lines) => [lines.length, lines]));
  const counted = (lines: readonly HashedLine[]) => lines.map((line, index) => ({ ...line, number: index + 1 }));
  return [...byCount.values()].flatMap((lines) => runsSent(counted(lines), []));
}

/** Returns what the context holds when the agent has written another text in a call of the same name. */
function nameWritten(
  held: readonly HeldText[],
  { label, runs }: Pick<HeldText, "label" | "runs">,
): readonly HeldText[] {
  if (runs.length === 0) return held;
  const counts = new Set(runs.map(linesIn));
  const isNamed = (run: HeldRun): boolean => run.named !== undefined || !counts.has(linesIn(run));
  return held.map((text) =>
    text.isWritten === true && text.label === label ? { ...text, runs: text.runs.filter(isNamed) } : text,
  );
}

/** Returns what the context holds when a reader has seen this result. Its numbers now stand for its own lines: other
 *  lines that an earlier result of the same call had under these numbers can no longer be named. Lines that it left out
 *  get the numbers that it gave them. */
function nameLines(held: readonly HeldText[], sent: SentResult): readonly HeldText[] {
  const { hash: whole, lines, ranges } = sent;
  const { label, sequence } = sent.text;
  const hashes = new Map(lines?.map(({ number, hash }) => [number, hash]));
  const isGone = (number: number, hash: string): boolean =>
    lines === undefined || (hashes.get(number) ?? hash) !== hash;
  const isConcerned = (text: HeldText): boolean => {
    if (text.label === label || ranges.length > 0) return true;
    for (const { named } of text.runs) if (named?.label === label) return true;
    return false;
  };
  if (!held.some(isConcerned)) return held;
  const isRepeated = findRepeated(sent, isGone);
  return held.map((text) => {
    if (!isConcerned(text) || isRepeated(text)) return text;
    const runs = text.runs.flatMap((run) => {
      const { label: own, from } = run.named ?? { label: text.isWritten === true ? "" : text.label, from: run.from };
      return own === label ? splitRun(run, (line) => isGone(from + line, hashAt(run, line))) : [run];
    });
    const named = ranges.flatMap(({ start, end, base, baseFrom, name }): HeldRun[] => {
      const first = lines?.[start]?.number ?? 0;
      const isKnown = name.label === label && !name.isWritten && name.from === first;
      const isBase = base.sequence === text.sequence && base.isWritten === text.isWritten;
      if (!isBase || isKnown) return [];
      const hashes = (lines ?? []).slice(start, end).map(({ hash }) => hash);
      return [{ from: baseFrom, hashes: hashes.join(""), named: { label, by: sequence, from: first } }];
    });
    const isOther = text.label === label && text.whole !== whole;
    const isSame = named.length === 0 && runs.every((run, at) => run === text.runs[at]);
    if (isSame && runs.length === text.runs.length && !(isOther && text.whole !== undefined)) return text;
    return { ...text, runs: withNames(runs, named), whole: isOther ? undefined : text.whole };
  });
}

/** Returns a function that tells a text with the same lines under the same numbers: nothing of it is gone. Thousands of
 *  results may be one text. */
function findRepeated(
  { text: { label, runs }, hash, ranges }: SentResult,
  isGone: (number: number, hash: string) => boolean,
): (text: HeldText) => boolean {
  const [shown, ...others] = runs;
  if (shown === undefined || others.length > 0 || ranges.length > 0) return () => false;
  if (numbersOf(shown, shown.from).some(([number, line]) => isGone(number, line))) return () => false;
  const isShown = ({ named, from, hashes }: HeldRun): boolean =>
    named === undefined && from === shown.from && hashes === shown.hashes;
  return (text) => text.label === label && text.whole === hash && text.isWritten !== true && text.runs.every(isShown);
}

/** Many short results may name the same lines. Of these names only the newest are kept. */
function withNames(runs: readonly HeldRun[], added: readonly HeldRun[]): HeldRun[] {
  const all = [...runs, ...added];
  const old = all.filter(({ named }) => named !== undefined).slice(0, -mostNames);
  return old.length === 0 ? all : all.filter((run) => !old.includes(run));
}

const mostNames = 40;

/** Returns the parts of a run without the lines that are gone. Short parts are not worth a note. */
function splitRun(run: HeldRun, isGone: (line: number) => boolean): HeldRun[] {
  const count = linesIn(run);
  const parts: HeldRun[] = [];
  for (let start = 0, end = 0; start < count; start = end + 1) {
    for (end = start; end < count && !isGone(end); ) end++;
    if (start === 0 && end === count) return [run];
    if (end - start < leastPart) continue;
    const named = run.named && { ...run.named, from: run.named.from + start };
    parts.push({ from: run.from + start, hashes: run.hashes.slice(start * hashLength, end * hashLength), named });
  }
  return parts;
}

const leastPart = 3;

export function linesIn({ hashes }: HeldRun): number {
  return hashes.length / hashLength;
}

export function hashAt({ hashes }: HeldRun, line: number): string {
  return hashes.slice(line * hashLength, (line + 1) * hashLength);
}
