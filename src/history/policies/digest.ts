/** A digest lists what an epoch's trimming took away: files, names that the agent used, ids for `recall`, and lines of
 *  the newest edits. It is inside of a trimmed tool result. Every epoch writes a new one, from the history and the
 *  ledger alone. */
import { type CountedMessage, type CountedPart, filesOf, textsOf } from "../../messages/index.ts";
import { visitNames } from "../../text/index.ts";
import type { Counter } from "../../tokens/index.ts";
import type { HistoryDraft } from "../draft.ts";
import type { PlaceholderStyle } from "../placeholders.ts";
import type { TrackedMessage } from "../tracked-history.ts";
import type { PartPlace } from "../turns.ts";

export interface DigestOptions {
  /** The tokens for the digest without its lines. */
  readonly names: number;
  readonly lines: number;
}

/** Renders digests. Keeps what it read, so that each message is read once, at the first epoch that needs it. */
export type DigestRenderer = (draft: HistoryDraft, options: DigestOptions) => string | undefined;

export function createDigestRenderer(counter: Counter, style: PlaceholderStyle): DigestRenderer {
  let work = createWork();
  const nameSize = createSizer(counter);
  return (draft, options) => {
    if (!work.isPartOf(draft)) work = createWork();
    work.read(draft);
    const gone = collect(draft, { work, style });
    const listed = listNames(gone, createPurse(nameSize, options.names - frameTokens));
    if (listed === undefined) return undefined;
    const lines = createPurse((line) => counter.count(`\n${line}`), options.lines).take(goneLines(draft, work));
    return `${[listed, ...(lines.length > 0 ? ["lines of edits:", ...lines] : [])].join("\n")}]`;
  };
}

/** What the words of a digest take, beside its entries. */
const frameTokens = 40;

/** Returns the tokens of an entry and of the separator before it. */
type Sizer = (entry: string) => number;

/** The number of sizes to remember: those of a few digests. */
const mostSizes = 10_000;

/** Remembers the sizes of names, because most of them are in the next digest, too. */
function createSizer(counter: Counter): Sizer {
  const sizes = new Map<string, number>();
  return (entry) => {
    const known = sizes.get(entry);
    if (known !== undefined) return known;
    const size = counter.count(` ${entry}`);
    if (sizes.size === mostSizes) sizes.clear();
    sizes.set(entry, size);
    return size;
  };
}

/** Tokens to spend on entries. */
interface Purse {
  /** Takes entries, in order, as far as they fit into a share of what is left; by default all of it. */
  take(entries: Iterable<string>, share?: number): string[];
}

/** The least that an entry takes. With less left there is no need to count another one. */
const leastEntryTokens = 3;
/** After this many entries that do not fit, no other is tried. */
const mostMisses = 40;

function createPurse(sizeOf: Sizer, tokens: number): Purse {
  let left = tokens;
  return {
    take(entries, share = 1) {
      const kept = left * (1 - share);
      const taken: string[] = [];
      let misses = 0;
      for (const entry of entries) {
        if (left - kept < leastEntryTokens || misses > mostMisses) break;
        const size = sizeOf(entry);
        if (size > left - kept) {
          misses++;
          continue;
        }
        left -= size;
        taken.push(entry);
      }
      return taken;
    },
  };
}

/** Edited files come first: the agent will come back to them. */
function listNames(gone: Gone, purse: Purse): string | undefined {
  const edited = purse.take(gone.edited);
  const calls = purse.take(gone.calls);
  const files = purse.take(gone.read, 0.5);
  const names = purse.take(gone.names);
  if (edited.length + files.length + names.length === 0) return undefined;
  const section = (title: string, entries: readonly string[]): string[] =>
    entries.length === 0 ? [] : [`${title}: ${entries.join(" ")}`];
  return [
    `[trimmed earlier: ${calls.join(" ")}`,
    ...section("edited", edited),
    ...section("read", files),
    ...section("names", names),
  ].join("\n");
}

/** What is no longer in the request, latest first. */
interface Gone {
  /** How often each tool was called. */
  readonly calls: readonly string[];
  readonly edited: Iterable<string>;
  /** With descriptive placeholders, each with the id of its trimmed result. */
  readonly read: Iterable<string>;
  /** Names that the agent used and that came from a few results. */
  readonly names: Iterable<string>;
}

/** Only single names pass: what a tool printed must not become an instruction. */
const isEntry = (text: string): boolean => /^[\p{L}\p{N}_./\\:#@~+=-]{1,120}$/u.test(text);
const mostTools = 8;

/** A name that more results contain is part of the project's vocabulary. */
const mostSources = 3;

interface CollectOptions {
  readonly work: Work;
  readonly style: PlaceholderStyle;
}

function collect(draft: HistoryDraft, { work, style }: CollectOptions): Gone {
  const { calls, edited, opened, used } = work;
  const request = {};
  markStanding(draft, work, request);
  const isGone = ({ text, standsIn }: Name): boolean => standsIn !== request && isEntry(text);
  const isPrinted = ({ results }: Name): boolean => results > 0;
  const isFile = (name: Name): boolean => edited.has(name) || opened.has(name);
  const counted = [...calls].filter(([name]) => isEntry(name)).sort(([, some], [, others]) => others - some);
  const withId = (file: Name): string => {
    const place = style === "plain" ? undefined : opened.get(file);
    const id = place && draft.messages[place.message]?.decisions.get(place.part)?.id;
    return id === undefined ? file.text : `${file.text} ${id}`;
  };
  return {
    calls: counted.slice(0, mostTools).map(([name, count]) => `${count} ${name}`),
    edited: latest(edited, isGone),
    read: latest(opened.keys(), (file) => !edited.has(file) && isGone(file), withId),
    names: latest(used, (name) => isPrinted(name) && !isFile(name) && isGone(name)),
  };
}

function* latest(
  names: Iterable<Name>,
  isListed: (name: Name) => boolean,
  entryOf: (name: Name) => string = ({ text }) => text,
): Generator<string> {
  for (const name of [...names].reverse()) if (isListed(name)) yield entryOf(name);
}

/** Marks the names that the request still contains. */
function markStanding({ messages }: HistoryDraft, { names }: Work, request: object): void {
  const mark = (some: readonly Name[]): void => {
    for (const name of some) name.standsIn = request;
  };
  for (const [index, { original, decisions, sent }] of messages.entries()) {
    if (sent === undefined) continue;
    for (const [at, facts] of names.in(original, index).entries()) {
      const decision = decisions.get(at)?.decision;
      if (decision === undefined) mark(facts.names);
      if (decision?.action !== "replace") continue;
      mark(names.known(decision.text));
      // A shortened input keeps its path.
      if (decision.keeps !== undefined) mark(facts.names.slice(0, 1));
    }
  }
}

/** Returns the lines that the agent wrote or replaced in its latest edits and that no longer stand in any of its edits.
 *  An agent often edits again what it has edited. Looking through the results, too, would take longer than everything
 *  else. */
function* goneLines({ messages, boundary }: HistoryDraft, { edits, names }: Work): Generator<string> {
  const seen = new Set<string>();
  for (const [index, { original }] of messages.slice(boundary).entries())
    for (const facts of names.in(original, boundary + index)) for (const line of linesOfEdit(facts)) seen.add(line);
  for (let index = edits.length - 1; index >= 0; index--) {
    for (const line of linesOfEdit(edits[index] as PartFacts)) {
      if (seen.has(line)) continue;
      seen.add(line);
      yield line;
    }
  }
}

const lineLength = { least: 8, most: 120 } as const;
const noLines: readonly string[] = [];

/** Returns the lines of a call that edits files, without the names of the files, which have their own place. */
function linesOfEdit(facts: PartFacts): readonly string[] {
  const { part, path, edited } = facts;
  if (edited.length === 0) return noLines;
  facts.lines ??= textsOf(part)
    .flatMap((text) => text.slice(0, mostCharacters).split("\n"))
    .map((line) => line.trim())
    .filter(({ length }) => length >= lineLength.least && length <= lineLength.most)
    .filter((line) => line !== path && !edited.includes(line));
  return facts.lines;
}

/** What the turns before the boundary did. Everything is in the order of its latest use, latest last. */
interface Work {
  readonly names: Names;
  /** How often each tool was called. */
  readonly calls: ReadonlyMap<string, number>;
  readonly edited: ReadonlySet<Name>;
  /** The files that calls named, each with the place of the result. */
  readonly opened: ReadonlyMap<Name, PartPlace | undefined>;
  /** The names in the agent's text and calls, except those that too many results contain. */
  readonly used: ReadonlySet<Name>;
  /** The calls that edited files. */
  readonly edits: readonly PartFacts[];
  /** Whether the history still begins with what was read. */
  isPartOf(draft: HistoryDraft): boolean;
  /** Reads on up to the boundary. */
  read(draft: HistoryDraft): void;
}

function createWork(): Work {
  const names = createNames();
  const calls = new Map<string, number>();
  const edited = new Set<Name>();
  const opened = new Map<Name, PartPlace | undefined>();
  const used = new Set<Name>();
  const edits: PartFacts[] = [];
  /** The file of each call whose result was not read yet. */
  const waiting = new Map<string, Name>();
  const readCall = (facts: PartFacts): void => {
    const { toolName = "call", callId = "" } = facts.part;
    calls.set(toolName, (calls.get(toolName) ?? 0) + 1);
    if (facts.edited.length > 0) edits.push(facts);
    for (const file of facts.edited) moveToEnd(edited, names.file(file));
    if (facts.path === undefined) return;
    const file = names.file(facts.path);
    opened.delete(file);
    opened.set(file, undefined);
    waiting.set(callId, file);
  };
  const readResult = (facts: PartFacts, place: PartPlace): void => {
    const { callId = "" } = facts.part;
    for (const name of facts.names) if (++name.results > mostSources) used.delete(name);
    const file = waiting.get(callId);
    if (file !== undefined) opened.set(file, place);
    waiting.delete(callId);
  };
  /** What the agent thinks is not used: only what it says and calls. */
  const readUsed = ({ names: some }: PartFacts): void => {
    for (const name of some) if (name.results <= mostSources) moveToEnd(used, name);
  };
  const readMessage = (original: CountedMessage, message: number): void => {
    for (const [index, facts] of names.in(original, message).entries()) {
      const { part } = facts;
      if (part.kind === "tool_call") readCall(facts);
      if (part.kind === "tool_result") readResult(facts, { message, part: index });
      if (original.role === "assistant" && hasOwnText(part)) readUsed(facts);
    }
  };
  let next = 0;
  let chain: string | undefined;
  return {
    ...{ names, calls, edited, opened, used, edits },
    isPartOf: ({ messages, boundary }) => next <= boundary && messages[next - 1]?.chain === chain,
    read({ messages, boundary }) {
      for (; next < boundary; next++) readMessage((messages[next] as TrackedMessage).original, next);
      chain = messages[next - 1]?.chain;
    },
  };
}

function moveToEnd<Value>(values: Set<Value>, value: Value): void {
  values.delete(value);
  values.add(value);
}

function hasOwnText({ kind }: CountedPart): boolean {
  return kind === "text" || kind === "tool_call";
}

/** A name, a path or an id in a history. Each is one object, whatever part it is found in. */
interface Name {
  /** Known only of what was said or called. */
  text: string;
  /** How many results before the boundary contain it. */
  results: number;
  /** The part in which it was found last. */
  foundIn: CountedPart | undefined;
  /** The request in which it was found last. */
  standsIn: object | undefined;
}

/** What is in a part. Each part is read once, at the first epoch that needs it. */
interface PartFacts {
  readonly part: CountedPart;
  /** The names in it, each once. The path of a call comes first. */
  readonly names: readonly Name[];
  readonly path: string | undefined;
  readonly edited: readonly string[];
  /** The lines of an edit, once they were needed. */
  lines: readonly string[] | undefined;
}

interface Names {
  /** Returns the facts of each part of the message at this index. */
  in(message: CountedMessage, index: number): readonly PartFacts[];
  /** Returns those names in a text that were found before. */
  known(text: string): readonly Name[];
  file(path: string): Name;
}

/** The characters of a text that are read. */
const mostCharacters = 32_000;

/** Finds names by their hashes: creating and comparing the texts of all names in all results would take much longer than
 *  the rest of an epoch. If two names have the same hash, one of them may be left out. */
function createNames(): Names {
  const byHash = new Map<number, Name>();
  const files = new Map<string, Name>();
  const read: { readonly message: CountedMessage; readonly facts: readonly PartFacts[] }[] = [];
  const create = (): Name => ({ text: "", results: 0, foundIn: undefined, standsIn: undefined });
  const at = (hash: number): Name => {
    const known = byHash.get(hash);
    if (known !== undefined) return known;
    const name = create();
    byHash.set(hash, name);
    return name;
  };
  const file = (path: string): Name => {
    let name = files.get(path);
    if (name !== undefined) return name;
    visitNames(path, (start, end, hash) => {
      if (end - start === path.length) name = at(hash);
    });
    const found = name ?? create();
    found.text = path;
    files.set(path, found);
    return found;
  };
  const readPart = (part: CountedPart): PartFacts => {
    const names: Name[] = [];
    const add = (name: Name): void => {
      if (name.foundIn === part) return;
      name.foundIn = part;
      names.push(name);
    };
    const { path, edited } = filesOf(part);
    for (const each of path === undefined ? edited : [path, ...edited]) add(file(each));
    const needsText = hasOwnText(part);
    for (const whole of textsOf(part)) {
      const text = whole.length > mostCharacters ? whole.slice(0, mostCharacters) : whole;
      visitNames(text, (start, end, hash) => {
        const name = at(hash);
        if (needsText && name.text === "") name.text = text.slice(start, end);
        add(name);
      });
    }
    return { part, names, path, edited, lines: undefined };
  };
  return {
    in(message, index) {
      const known = read[index];
      if (known?.message === message) return known.facts;
      const facts = message.parts.map(readPart);
      read[index] = { message, facts };
      return facts;
    },
    known(text) {
      const found: Name[] = [];
      visitNames(text, (_start, _end, hash) => {
        const name = byHash.get(hash);
        if (name !== undefined) found.push(name);
      });
      return found;
    },
    file,
  };
}
