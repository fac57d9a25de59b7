/** Finds what each turn of a session refers to. A reference is something from earlier in the session that a turn uses: a
 *  line that it quotes, a name that it uses again, or the text that an edit replaces. */
import { type CountedPart, filesOf, noteIn, type Role, textsOf } from "../../core/messages/index.ts";
import { visitNames } from "../../core/text/index.ts";

/** How many references there were, and how many of them the request contained. */
export interface Tally {
  found: number;
  total: number;
}

/** `far` counts only references that were last seen at least 10 assistant turns earlier. */
export interface ReferenceTally extends Tally {
  readonly far: Tally;
}

/** `quotes` are whole lines of earlier results. `names` are identifiers and paths that only one to three results
 *  contain. `edits` are texts to be replaced, all of whose lines must be there. */
export const referenceKinds = ["quotes", "names", "edits"] as const;
export type ReferenceKind = (typeof referenceKinds)[number];

export interface ReferenceTotals extends Readonly<Record<ReferenceKind, ReferenceTally>> {
  /** Results that a model would have had to fetch again for the lines that it quoted. */
  refetches: number;
  /** Counts calls after the first edit; found are those whose request names every file that was edited so far. */
  readonly filesNamed: Tally;
  /** Counts, for each call, the notes in the thinking of the last 10 turns; found are those that the request contains. */
  readonly notes: Tally;
}

/** All references of a session. They are the same for every policy and window. */
export interface SessionReferences {
  /** For each call, what the turn that it asks for refers to. */
  readonly calls: readonly CallReferences[];
  /** Returns the units that a message contains: lines, names and files that some turn refers to. */
  unitsIn(message: object): ReadonlySet<string>;
}

export interface CallReferences extends Readonly<Record<ReferenceKind, readonly Reference[]>> {
  /** The files that were edited for the first time since the call before. */
  readonly newFiles: readonly string[];
  /** The notes in the thinking of the last turns. */
  readonly notes: readonly string[];
}

export interface Reference {
  /** What the request must contain. */
  readonly units: readonly string[];
  readonly isFar: boolean;
  /** The results that contain it, oldest first. */
  readonly sources: readonly number[];
}

/** A session, as far as references need it. */
interface ReferenceSession {
  readonly messages: readonly object[];
  /** For each call, the number of messages in its request. */
  readonly calls: readonly number[];
  read(message: object): { readonly role: Role; readonly parts: readonly CountedPart[] };
}

/** Reads a session twice: first what its turns use, then where that was seen. */
export function findReferences(session: ReferenceSession): SessionReferences {
  const { messages, read } = session;
  const uses = findUses(session);
  const units = collectUnits(uses);
  const readUnits = createPartReader(createMatcher(units));
  const unitsIn = createUnitReader(read, readUnits);
  const sightings = createSightings(units, readUnits);
  const calls: CallReferences[] = [];
  for (const [index, message] of messages.entries()) {
    if (session.calls[calls.length] === index) {
      const turn = calls.length;
      const notes = uses.slice(Math.max(0, turn - noteTurns), turn).flatMap((each) => each.notes);
      calls.push({ ...sightings.refer(uses[turn] as TurnUses), notes });
    }
    const { role, parts } = read(message);
    for (const part of parts) sightings.add(part, { role, turn: calls.length });
  }
  return { calls, unitsIn };
}

/** What a turn uses, whether or not it was seen before. Quotes are lines that some result of the session has. */
interface TurnUses {
  readonly quotes: Set<string>;
  readonly names: Set<string>;
  readonly edits: string[][];
  /** The files that were edited for the first time since the turn before. */
  readonly newFiles: readonly string[];
  readonly notes: string[];
}

/** How many turns an agent's notes are expected to be there. */
const noteTurns = 10;

function collectUnits(uses: readonly TurnUses[]): ReadonlySet<string> {
  const units = new Set<string>();
  for (const { quotes, names, edits, newFiles, notes } of uses)
    for (const some of [quotes, names, newFiles, notes, ...edits]) for (const unit of some) units.add(unit);
  return units;
}

const quoteLength = { least: 24, most: 399 } as const;

function findUses({ messages, calls, read }: ReferenceSession): TurnUses[] {
  const uses: TurnUses[] = [];
  const files = new Set<string>();
  const printed = printedLines(messages, read);
  let known = 0;
  for (const [index, message] of messages.entries()) {
    if (calls[uses.length] === index) {
      uses.push({ quotes: new Set(), names: new Set(), edits: [], newFiles: [...files].slice(known), notes: [] });
      known = files.size;
    }
    const { role, parts } = read(message);
    const turn = uses.at(-1);
    if (role !== "assistant" || turn === undefined) continue;
    for (const part of parts) {
      if (part.kind !== "thinking") addUses(part, turn, { files, printed });
      const note = noteIn(part);
      if (note !== undefined) turn.notes.push(note);
    }
  }
  return uses;
}

/** Returns the lines of all results. An agent writes many lines, and only these can be quotes. */
function printedLines(messages: readonly object[], read: ReferenceSession["read"]): ReadonlySet<string> {
  const printed = new Set<string>();
  for (const message of messages)
    for (const part of read(message).parts)
      if (part.kind === "tool_result")
        for (const text of textsOf(part)) for (const line of splitLines(text)) printed.add(line);
  return printed;
}

function addUses(
  part: CountedPart,
  { quotes, names, edits }: TurnUses,
  { files, printed }: { readonly files: Set<string>; readonly printed: ReadonlySet<string> },
): void {
  const isQuote = (line: string): boolean =>
    line.length >= quoteLength.least && line.length <= quoteLength.most && printed.has(line);
  for (const text of textsOf(part)) {
    for (const line of splitLines(text)) if (isQuote(line)) quotes.add(line);
    visitNames(text, (start, end) => names.add(text.slice(start, end)));
  }
  // A file is known by its name and the folder that it is in.
  const { replaced, edited } = filesOf(part);
  for (const text of replaced) edits.push([...new Set(splitLines(text))]);
  for (const file of edited) files.add(file.split("/").slice(-2).join("/"));
}

const lineNumber = /^\s*\d+\s?(?:→|\t|\||:)/;
/** Shorter lines, such as brackets, are everywhere. */
const leastLineLength = 8;

/** Returns the lines of a text without line numbers and indentation. */
function splitLines(text: string): string[] {
  const lines = text.split("\n").map((line) => line.replace(lineNumber, "").trim());
  return lines.filter(({ length }) => length >= leastLineLength);
}

const farTurns = 10;
/** A name in more results than this is part of the project's vocabulary. */
const maxNameSources = 3;

/** Notes where units were seen so far. */
function createSightings(units: ReadonlySet<string>, readUnits: PartUnits) {
  /** For each unit, the results that contain it, those that have it as a whole line, and the turn that saw it last. */
  const inside = new Map<string, number[]>();
  const asLine = new Map<string, number[]>();
  const lastTurn = new Map<string, number>();
  const said = new Set<string>();
  let results = 0;
  let turn = 0;
  const refer = (wanted: readonly string[], sources: readonly number[] = []): Reference => {
    const last = wanted.reduce((most, unit) => Math.max(most, lastTurn.get(unit) ?? 0), 0);
    return { units: wanted, isFar: turn + 1 - last >= farTurns, sources: [...sources] };
  };
  return {
    add(part: CountedPart, place: { readonly role: Role; readonly turn: number }): void {
      turn = place.turn;
      const found = readUnits(part);
      for (const unit of found) lastTurn.set(unit, turn);
      if (part.kind === "tool_result") {
        results++;
        addAll(inside, found, results);
        const lines = textsOf(part).flatMap(splitLines);
        addAll(
          asLine,
          lines.filter((line) => units.has(line)),
          results,
        );
      } else if (place.role !== "assistant") for (const unit of found) said.add(unit);
    },
    /** Returns what a turn uses and was seen before. */
    refer({ quotes, names, edits, newFiles }: TurnUses): Omit<CallReferences, "notes"> {
      const isRare = (name: string): boolean => {
        const sources = inside.get(name)?.length ?? 0;
        return sources > 0 && sources <= maxNameSources && !said.has(name);
      };
      const quoted = [...quotes].filter((line) => asLine.has(line));
      return {
        quotes: quoted.map((line) => refer([line], asLine.get(line))),
        names: [...names].filter(isRare).map((name) => refer([name])),
        edits: edits.filter(({ length }) => length > 0).map((lines) => refer(lines)),
        newFiles,
      };
    },
  };
}

function addAll(places: Map<string, number[]>, units: Iterable<string>, result: number): void {
  for (const unit of units) {
    const list = places.get(unit);
    if (list === undefined) places.set(unit, [result]);
    else if (list.at(-1) !== result) list.push(result);
  }
}

type PartUnits = (part: CountedPart) => ReadonlySet<string>;

/** Reads each part once. */
function createPartReader(match: Matcher): PartUnits {
  const known = new WeakMap<CountedPart, ReadonlySet<string>>();
  return (part) => {
    const found = known.get(part) ?? match(textsOf(part));
    known.set(part, found);
    return found;
  };
}

/** Returns the units of whole messages. The model can read all of it, so thinking counts too. */
function createUnitReader(read: ReferenceSession["read"], readUnits: PartUnits): SessionReferences["unitsIn"] {
  const known = new WeakMap<object, ReadonlySet<string>>();
  return (message) => {
    const found = known.get(message);
    if (found !== undefined) return found;
    const { parts } = read(message);
    const [only] = parts;
    const units =
      only !== undefined && parts.length === 1
        ? readUnits(only)
        : new Set(parts.flatMap((part) => [...readUnits(part)]));
    known.set(message, units);
    return units;
  };
}

/** Returns all units that texts contain. */
type Matcher = (texts: readonly string[]) => ReadonlySet<string>;

/** A unit is found by the hash of its first characters, which rolls over the text. Searching for each unit separately
 *  would take minutes for a long session. Long units get long starts, because many lines begin alike. */
const startLengths = [24, 8, 4, 1] as const;
const hashBits = 18;
const hashFactor = 31;

function createMatcher(units: Iterable<string>): Matcher {
  const byLength = new Map<number, string[]>(startLengths.map((length) => [length, []]));
  for (const unit of units) {
    const length = startLengths.find((each) => each <= unit.length);
    if (length !== undefined) byLength.get(length)?.push(unit);
  }
  const finders = [...byLength]
    .filter(([, some]) => some.length > 0)
    .map(([length, some]) => createFinder(some, length));
  return (texts) => {
    const found = new Set<string>();
    for (const text of texts) for (const find of finders) find(text, found);
    return found;
  };
}

/** Finds units that have at least `length` characters. */
function createFinder(units: readonly string[], length: number): (text: string, found: Set<string>) => void {
  const filter = new Uint8Array(1 << hashBits);
  const mask = filter.length - 1;
  const alike = new Map<string, string[]>();
  let oldest = 1;
  for (let at = 0; at < length; at++) oldest = Math.imul(oldest, hashFactor);
  const roll = (hash: number, text: string, at: number): number => {
    const next = Math.imul(hash, hashFactor) + text.charCodeAt(at);
    return at < length ? next | 0 : (next - Math.imul(oldest, text.charCodeAt(at - length))) | 0;
  };
  for (const unit of units) {
    const start = unit.slice(0, length);
    const same = alike.get(start);
    if (same === undefined) alike.set(start, [unit]);
    else same.push(unit);
    let hash = 0;
    for (let at = 0; at < length; at++) hash = roll(hash, unit, at);
    filter[hash & mask] = 1;
  }
  const byStart = new Map([...alike].map(([start, same]) => [start, sortUnits(same)]));
  return (text, found) => {
    for (let at = 0, hash = 0; at < text.length; at++) {
      hash = roll(hash, text, at);
      const from = at - length + 1;
      if (from < 0 || filter[hash & mask] === 0) continue;
      const sorted = byStart.get(text.slice(from, at + 1));
      if (sorted !== undefined) findAt(text, from, { sorted, found });
    }
  };
}

/** Units that begin alike, in the order of their characters. */
interface SortedUnits {
  readonly units: readonly string[];
  /** For each unit, the index of the longest other unit that it begins with, or -1. */
  readonly shorter: readonly number[];
}

function sortUnits(alike: readonly string[]): SortedUnits {
  const units = alike.toSorted((left, right) => (left < right ? -1 : 1));
  const shorter: number[] = [];
  for (const [index, unit] of units.entries()) {
    let before = index - 1;
    while (before >= 0 && !unit.startsWith(units[before] as string)) before = shorter[before] as number;
    shorter.push(before);
  }
  return { units, shorter };
}

/** Adds the units that the text has at `from`. All of them are beginnings of the last unit that does not come after the
 *  text in order, so that one search finds them. Comparing each unit would take minutes if many lines begin alike. */
function findAt(
  text: string,
  from: number,
  { sorted: { units, shorter }, found }: { readonly sorted: SortedUnits; readonly found: Set<string> },
): void {
  let [low, high] = [0, units.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const unit = units[middle] as string;
    if (unit <= text.slice(from, from + unit.length)) low = middle + 1;
    else high = middle;
  }
  let index = low - 1;
  const last = units[index];
  if (last === undefined) return;
  let common = 0;
  while (common < last.length && last.charCodeAt(common) === text.charCodeAt(from + common)) common++;
  while (index >= 0 && (units[index] as string).length > common) index = shorter[index] as number;
  // Where a unit was found before, so were those that it begins with.
  for (; index >= 0 && !found.has(units[index] as string); index = shorter[index] as number) {
    found.add(units[index] as string);
  }
}
