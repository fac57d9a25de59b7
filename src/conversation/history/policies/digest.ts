/** A digest lists what was trimmed: files, names that the agent used, ids for `recall`, and lines of the newest edits.
 *  It is part of a trimmed tool result. An epoch writes a new digest from the history and the decisions alone. It keeps
 *  the previous one if it changes only later messages, and it writes none if there is no room. */
import { type CountedMessage, type CountedPart, filesOf, noteIn, textsOf } from "../../../core/messages/index.ts";
import { visitNames } from "../../../core/text/index.ts";
import type { Counter } from "../../../core/tokens/index.ts";
import type { HistoryDraft } from "../draft.ts";
import type { TrackedMessage } from "../tracked-history.ts";
import type { PartPlace } from "../turns.ts";

export interface DigestOptions {
  /** The tokens for the digest without its lines. */
  readonly names: number;
  readonly lines: number;
  /** The tokens for notes of the agent that go with its thinking. The lines get what is left of them. */
  readonly notes: number;
  /** Whether the model can recall what was trimmed by its id. */
  readonly hasIds: boolean;
}

/** Renders digests. Keeps what it read, so that each message is read once, at the first epoch that needs it. */
export type DigestRenderer = (draft: HistoryDraft, options: DigestOptions) => string | undefined;

export function createDigestRenderer(counter: Counter): DigestRenderer {
  let work = createWork();
  const nameSize = createSizer(counter, " ");
  const lineSize = createSizer(counter, "\n");
  return (draft, options) => {
    if (!work.isPartOf(draft)) work = createWork();
    work.read(draft);
    const gone = collect(draft, { work, hasIds: options.hasIds });
    // The words of a digest take 40 tokens, beside its entries.
    const listed = listNames(gone, createPurse(nameSize, options.names - 40));
    const notes = createPurse(lineSize, Math.min(options.notes, options.lines)).take(goneNotes(draft));
    if (listed === undefined && notes.length === 0) return undefined;
    const left = notes.reduce((rest, note) => rest - lineSize(note), options.lines);
    const lines = createPurse(lineSize, left).take(goneLines(draft, work));
    const section = (title: string, entries: readonly string[]): string[] =>
      entries.length === 0 ? [] : [title, ...entries];
    const sections = [...section("notes:", notes.reverse()), ...section("lines of edits:", lines)];
    return `${[listed ?? "[trimmed earlier:", ...sections].join("\n")}]`;
  };
}

/** Returns the tokens of an entry and of the separator before it. */
type Sizer = (entry: string) => number;

/** Remembers the sizes of entries, because most of them are in the next digest, too. */
function createSizer(counter: Counter, separator: string): Sizer {
  const sizes = new Map<string, number>();
  // Enough for the entries of a few digests.
  const maxSizes = 10_000;
  return (entry) => {
    const known = sizes.get(entry);
    if (known !== undefined) return known;
    const size = counter.count(separator + entry);
    if (sizes.size === maxSizes) sizes.clear();
    sizes.set(entry, size);
    return size;
  };
}

/** Tokens to spend on entries. */
interface Purse {
  readonly left: number;
  /** Takes entries, in order, as far as they fit into `limit` tokens; by default into all that are left. */
  take(entries: Iterable<string>, limit?: number): string[];
}

function createPurse(measure: Sizer, tokens: number): Purse {
  // The least that an entry takes. With less left there is no need to count another one.
  const minEntryTokens = 3;
  // After this many entries that do not fit, no other is tried.
  const maxMisses = 40;
  let left = tokens;
  return {
    get left() {
      return left;
    },
    take(entries, limit = left) {
      const kept = Math.max(0, left - limit);
      const taken: string[] = [];
      let misses = 0;
      for (const entry of entries) {
        if (left - kept < minEntryTokens || misses > maxMisses) break;
        const size = measure(entry);
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
  // Of names that the agent has not used yet, more cost more than they are worth.
  const printedTokens = 0.35 * purse.left;
  const edited = purse.take(gone.edited);
  const calls = purse.take(gone.calls);
  const files = purse.take(gone.read, purse.left / 2);
  const names = purse.take(gone.names);
  names.push(...purse.take(gone.printed, printedTokens));
  if (edited.length + files.length + names.length === 0) return undefined;
  const section = (title: string, entries: readonly string[]): string[] =>
    entries.length === 0 ? [] : [`${title}: ${entries.join(" ")}`];
  return [
    `[trimmed earlier:${calls.map((each) => ` ${each}`).join("")}`,
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
  /** If the model can recall, each with the id of its trimmed result. */
  readonly read: Iterable<string>;
  /** Names that the agent used and that came from a few results. */
  readonly names: Iterable<string>;
  /** Names that a few results contain and that the agent has not used yet. */
  readonly printed: Iterable<string>;
}

/** Only single names pass: what a tool printed must not become an instruction. */
const isEntry = (text: string): boolean => /^[\p{L}\p{N}_./\\:#@~+=-]{1,120}$/u.test(text);

function collect(draft: HistoryDraft, { work, hasIds }: { readonly work: Work; readonly hasIds: boolean }): Gone {
  const { calls, edited, opened, used, printed } = work;
  work.names.markPresent(draft.messages);
  const isGone = (name: Name): boolean => name.presentTimes === 0 && describeName(name).isEntry;
  const isFile = (name: Name): boolean => edited.has(name) || opened.has(name);
  const counted = [...calls].filter(([name]) => isEntry(name)).sort(([, some], [, others]) => others - some);
  const withId = (file: Name): string => {
    const { text } = describeName(file);
    const place = hasIds ? opened.get(file) : undefined;
    const id = place && draft.messages[place.message]?.decisions.get(place.part)?.id;
    return id === undefined ? text : `${text} ${id}`;
  };
  return {
    calls: counted.slice(0, 8).map(([name, count]) => `${count} ${name}`),
    edited: latest([[...edited]], isGone),
    read: latest([[...opened.keys()]], (file) => !edited.has(file) && isGone(file), withId),
    names: latest(used, (name) => isRare(name) && !isFile(name) && isGone(name)),
    printed: latest(
      printed,
      (name) => isRare(name) && !name.isUsed && !isFile(name) && isGone(name) && describeName(name).isInformative,
    ),
  };
}

/** Whether few enough results contain the name. One that more contain is part of the project's vocabulary. */
function isRare({ results }: Name): boolean {
  return results > 0 && results <= 3;
}

/** Yields the entries of names from the latest one on, each once. */
function* latest(
  groups: readonly (readonly Name[])[],
  isListed: (name: Name) => boolean,
  write: (name: Name) => string = (name) => describeName(name).text,
): Generator<string> {
  const list = {};
  for (let group = groups.length - 1; group >= 0; group--) {
    const names = groups[group] as readonly Name[];
    for (let index = names.length - 1; index >= 0; index--) {
      const name = names[index] as Name;
      if (name.seenFor === list) continue;
      name.seenFor = list;
      if (isListed(name)) yield write(name);
    }
  }
}

/** Yields the lines that the agent wrote or replaced in edits before the boundary and that no later edit repeats,
 *  latest edit first. An agent often edits again what it has edited. Results are not searched for the lines, because
 *  that would take longer than everything else. */
function* goneLines({ messages, boundary }: HistoryDraft, { edits, names }: Work): Generator<string> {
  const seen = new Set<string>();
  for (const [index, { original }] of messages.slice(boundary).entries())
    for (const facts of names.in(original, boundary + index)) for (const line of readEditLines(facts)) seen.add(line);
  for (let index = edits.length - 1; index >= 0; index--) {
    for (const line of readEditLines(edits[index] as PartFacts)) {
      if (seen.has(line)) continue;
      seen.add(line);
      yield line;
    }
  }
}

/** Yields the agent's notes from removed thinking, latest first. That includes thinking that this draft will remove,
 *  because the draft changes something before it. */
function* goneNotes({ messages, firstChanged }: HistoryDraft): Generator<string> {
  const seen = new Set<string>();
  for (let index = messages.length - 1; index >= 0; index--) {
    const { original, decisions, sent } = messages[index] as TrackedMessage;
    for (const [at, part] of original.parts.entries()) {
      const isGone = sent === undefined || decisions.get(at)?.decision.action === "drop";
      const note = isGone || (index >= firstChanged && part.isBound !== true) ? noteIn(part) : undefined;
      if (note === undefined || seen.has(note)) continue;
      seen.add(note);
      yield note;
    }
  }
}

/** Returns the lines of a call that edits files, without the names of the files, which have their own place. */
function readEditLines(facts: PartFacts): readonly string[] {
  const { part, path, edited } = facts;
  if (edited.length === 0) return [];
  facts.lines ??= textsOf(part)
    .flatMap((text) => text.slice(0, maxCharacters).split("\n"))
    .map((line) => line.trim())
    .filter(({ length }) => length >= 8 && length <= 120)
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
  /** The names in each of the agent's texts and calls. */
  readonly used: readonly (readonly Name[])[];
  /** The names in each result. */
  readonly printed: readonly (readonly Name[])[];
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
  const used: (readonly Name[])[] = [];
  const printed: (readonly Name[])[] = [];
  const edits: PartFacts[] = [];
  /** The file of each call whose result was not read yet. */
  const waiting = new Map<string, Name>();
  const readCall = (facts: PartFacts): void => {
    const { toolName = "call", callId = "" } = facts.part;
    calls.set(toolName, (calls.get(toolName) ?? 0) + 1);
    if (facts.edited.length > 0) edits.push(facts);
    for (const path of facts.edited) {
      const file = names.file(path);
      edited.delete(file);
      edited.add(file);
    }
    if (facts.path === undefined) return;
    const file = names.file(facts.path);
    opened.delete(file);
    opened.set(file, undefined);
    waiting.set(callId, file);
  };
  const readResult = (facts: PartFacts, place: PartPlace): void => {
    const { callId = "" } = facts.part;
    for (const name of facts.names) name.results++;
    printed.push(facts.names);
    const file = waiting.get(callId);
    if (file !== undefined) opened.set(file, place);
    waiting.delete(callId);
  };
  const readUsed = ({ names: some }: PartFacts): void => {
    for (const name of some) name.isUsed = true;
    used.push(some);
  };
  const readMessage = (original: CountedMessage, message: number): void => {
    for (const [index, facts] of names.in(original, message).entries()) {
      const { part } = facts;
      if (part.kind === "tool_call") readCall(facts);
      if (part.kind === "tool_result") readResult(facts, { message, part: index });
      // A name counts as used if the agent writes it in an answer or a call. Thinking does not count.
      const isUse = original.role === "assistant" && (part.kind === "text" || part.kind === "tool_call");
      if (isUse) readUsed(facts);
    }
  };
  let next = 0;
  let chain: string | undefined;
  return {
    names,
    calls,
    edited,
    opened,
    used,
    printed,
    edits,
    isPartOf: ({ messages, boundary }) => next <= boundary && messages[next - 1]?.chain === chain,
    read({ messages, boundary }) {
      for (; next < boundary; next++) readMessage((messages[next] as TrackedMessage).original, next);
      chain = messages[next - 1]?.chain;
    },
  };
}

/** A name, a path or an id in a history. Each is one object, whatever part it is found in. */
interface Name {
  /** A text that contains it, and where. The name itself is cut out of it only if a digest lists it. */
  within: string;
  start: number;
  end: number;
  /** How many results before the boundary contain it. */
  results: number;
  /** Whether the agent used it before the boundary, in a text or a call. */
  isUsed: boolean;
  /** The part in which it was found last. */
  foundIn: CountedPart | undefined;
  /** How many times the parts that the request still contains name it. */
  presentTimes: number;
  /** The list for which it was last looked at. */
  seenFor: object | undefined;
  description: NameDescription | undefined;
}

/** What a digest needs to know of a name. */
interface NameDescription {
  readonly text: string;
  readonly isEntry: boolean;
  /** Whether a name that the agent has not used is worth its tokens: not a long path, and not a number or a hash. */
  readonly isInformative: boolean;
}

/** Reads the text of a name once, because each digest looks at most of the names of the digest before it. */
function describeName(name: Name): NameDescription {
  if (name.description !== undefined) return name.description;
  const text = name.within.slice(name.start, name.end);
  const digits = text.replace(/\D/g, "").length;
  const isInformative = text.length <= 30 && 4 * digits < text.length && /[A-Za-z]{3}/.test(text);
  name.description = { text, isEntry: isEntry(text), isInformative };
  return name.description;
}

function createName(): Name {
  return {
    within: "",
    start: 0,
    end: 0,
    results: 0,
    isUsed: false,
    foundIn: undefined,
    presentTimes: 0,
    seenFor: undefined,
    description: undefined,
  };
}

function setText(name: Name, within: string, { start, end }: Pick<Name, "start" | "end">): void {
  name.within = within;
  name.start = start;
  name.end = end;
  name.description = undefined;
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
  /** Counts for each name how often the messages to send contain it. */
  markPresent(messages: readonly TrackedMessage[]): void;
  file(path: string): Name;
}

/** The characters of a text that are read. */
const maxCharacters = 32_000;

/** Finds names by their hashes: creating and comparing the texts of all names in all results would take much longer than
 *  the rest of an epoch. If two names have the same hash, one of them may be left out. */
function createNames(): Names {
  const byHash = new Map<number, Name>();
  const files = new Map<string, Name>();
  const read: { readonly message: CountedMessage; readonly facts: readonly PartFacts[] }[] = [];
  const at = (hash: number): Name => {
    const known = byHash.get(hash);
    if (known !== undefined) return known;
    const name = createName();
    byHash.set(hash, name);
    return name;
  };
  const file = (path: string): Name => {
    let name = files.get(path);
    if (name !== undefined) return name;
    visitNames(path, (start, end, hash) => {
      if (end - start === path.length) name = at(hash);
    });
    const found = name ?? createName();
    setText(found, path, { start: 0, end: path.length });
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
    for (const whole of textsOf(part)) {
      const text = whole.length > maxCharacters ? whole.slice(0, maxCharacters) : whole;
      visitNames(text, (start, end, hash) => {
        const name = at(hash);
        if (name.end === 0) setText(name, text, { start, end });
        add(name);
      });
    }
    return { part, names, path, edited, lines: undefined };
  };
  const readFacts = (message: CountedMessage, index: number): readonly PartFacts[] => {
    const known = read[index];
    if (known?.message === message) return known.facts;
    const facts = message.parts.map(readPart);
    read[index] = { message, facts };
    return facts;
  };
  return {
    in: readFacts,
    markPresent: createPresenceMarker((message, index) => findPresent(message, readFacts(message.original, index), at)),
    file,
  };
}

/** Returns the names that a message to send contains, one list a text. */
function findPresent(
  { decisions, sent }: TrackedMessage,
  read: readonly PartFacts[],
  nameAt: (hash: number) => Name,
): (readonly Name[])[] {
  if (sent === undefined) return [];
  return read.flatMap((facts, part) => {
    const decision = decisions.get(part)?.decision;
    if (decision === undefined) return [facts.names];
    if (decision.action !== "replace") return [];
    const found: Name[] = [];
    visitNames(decision.text, (_start, _end, hash) => found.push(nameAt(hash)));
    // A shortened input keeps its path.
    return [found, decision.keeps === undefined ? [] : facts.names.slice(0, 1)];
  });
}

/** Counts again only what has changed since the last digest. */
function createPresenceMarker(
  find: (message: TrackedMessage, index: number) => (readonly Name[])[],
): Names["markPresent"] {
  const marked: (Pick<TrackedMessage, "decisions" | "original"> & { readonly names: (readonly Name[])[] })[] = [];
  const count = (groups: readonly (readonly Name[])[], sign: 1 | -1): void => {
    for (const names of groups) for (const name of names) name.presentTimes += sign;
  };
  return (messages) => {
    for (const { names } of marked.splice(messages.length)) count(names, -1);
    for (const [index, message] of messages.entries()) {
      const { decisions, original } = message;
      const known = marked[index];
      if (known?.decisions === decisions && known.original === original) continue;
      if (known !== undefined) count(known.names, -1);
      const names = find(message, index);
      count(names, 1);
      marked[index] = { decisions, original, names };
    }
  };
}
