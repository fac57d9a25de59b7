import { invalidArgument } from "../../core/errors.ts";
import { compareText, oneLine, printable, wellFormed } from "../../core/text/index.ts";

/** What phases share with each other: what they made, claim, found out and decided. */
export interface FabricState extends FabricLists {
  readonly phases: readonly FabricPhase[];
}

/** The entries of a fabric, by kind. */
export interface FabricLists {
  readonly entanglements: readonly Entanglement[];
  readonly claims: readonly Claim[];
  readonly discoveries: readonly Discovery[];
  readonly notes: readonly FabricNote[];
}

export type FabricKind = keyof FabricLists;

/** What phases reported to each other: interfaces to build on, claimed paths, open problems and notes. */
export interface Fabric extends FabricLists {
  /** The number of the last id of each kind. An id is never used again, even after its entry was removed. */
  readonly lastIds: Readonly<Record<FabricKind, number>>;
}

export const phaseStates = ["waiting", "running", "completed", "failed", "blocked"] as const;
export type PhaseState = (typeof phaseStates)[number];

export interface FabricPhase {
  readonly id: string;
  readonly title: string;
  readonly state: PhaseState;
}

/** Something that others can build on: a function, a type, an endpoint. */
export interface Entanglement {
  readonly id: string;
  readonly package: string;
  readonly kind: string;
  readonly signature: string;
  readonly file?: string | undefined;
  readonly from: string;
}

/** A path that its owner is changing. It is active until the owner's phase has completed: a failed phase runs again
 *  on the same files. */
export interface Claim {
  readonly id: string;
  readonly path: string;
  readonly owner: string;
}

/** A problem that others must know about until it is resolved. */
export interface Discovery {
  readonly id: string;
  readonly kind: string;
  readonly detail: string;
  readonly from: string;
  /** Ids of phases, with commas between them. */
  readonly affects?: string | undefined;
  /** YYYY-MM-DD. */
  readonly date?: string | undefined;
  readonly resolved: boolean;
}

export const noteKinds = ["decision", "failure", "feedback", "note"] as const;
export type NoteKind = (typeof noteKinds)[number];

export interface FabricNote {
  readonly id: string;
  readonly kind: NoteKind;
  readonly text: string;
  readonly from: string;
}

/**
 * A fabric without entries, to start from.
 *
 * @example
 * ```ts
 * import { addToFabric, emptyFabric } from "plimsoll/compose";
 *
 * const { fabric } = addToFabric(emptyFabric, { claims: [{ path: "src/store/**" }] }, { from: "store" });
 * console.log(fabric.claims);
 * ```
 */
export const emptyFabric: Fabric = {
  entanglements: [],
  claims: [],
  discoveries: [],
  notes: [],
  lastIds: { entanglements: 0, claims: 0, discoveries: 0, notes: 0 },
};

/** Resolves an entry. A discovery stays and is no longer rendered. Any other entry is removed. Resolving a discovery
 *  again changes nothing. */
export function resolveEntry(fabric: Fabric, id: string): Fabric {
  if (fabric.discoveries.some((each) => each.id === id)) return withResolved(fabric, [id]);
  for (const kind of ["entanglements", "claims", "notes"] as const) {
    const kept = (fabric[kind] as readonly { readonly id: string }[]).filter((each) => each.id !== id);
    if (kept.length < fabric[kind].length) return { ...fabric, [kind]: kept };
  }
  // Lists discoveries first, because they are resolved most often.
  const open = fabric.discoveries.filter(({ resolved }) => !resolved);
  const all = [...open, ...fabric.entanglements, ...fabric.claims, ...fabric.notes].map((each) => each.id);
  const maxListed = 10;
  const ids = [...all.slice(0, maxListed), ...(all.length > maxListed ? ["…"] : [])];
  const hint = all.length === 0 ? "It has no entries." : `It has ${ids.join(", ")}.`;
  throw invalidArgument(`the fabric has no entry ${JSON.stringify(id)}`, hint);
}

/** What an agent or a person reports: entries without ids and without the reporter's name. */
export interface FabricReport {
  /** What others can build on: functions, types, endpoints. */
  readonly entanglements?: readonly Omit<Entanglement, "id" | "from">[] | undefined;
  /** Paths that the reporter is changing. */
  readonly claims?: readonly Omit<Claim, "id" | "owner">[] | undefined;
  /** Problems that others must know about. */
  readonly discoveries?:
    | readonly {
        /**
         * What sort of problem it is.
         * @default "blocker"
         */
        readonly kind?: string | undefined;
        readonly detail: string;
        /** One or more phases. */
        readonly affects?: string | readonly string[] | undefined;
      }[]
    | undefined;
  /** Decisions, failures, feedback and other notes. */
  readonly notes?:
    | readonly {
        /**
         * What sort of note it is.
         * @default "note"
         */
        readonly kind?: NoteKind | undefined;
        readonly text: string;
      }[]
    | undefined;
  /** Ids of discoveries that no longer hold. Unknown ids have no effect. */
  readonly resolved?: readonly string[] | undefined;
}

/** Who reports, and when. */
export interface Reporter {
  /** Id of the phase that reports, or another name. */
  readonly from: string;
  /** The date of its discoveries, as YYYY-MM-DD. */
  readonly date?: string | undefined;
}

/** Most characters of one text of an entry. */
export const maxEntryLength = 2_000;
/** Most entries of one kind. */
export const maxEntries = 10_000;

/**
 * Returns the fabric with all reported entries, or throws and adds nothing. An entry that the same reporter added
 * before is not added twice, except a discovery that was resolved since. An entanglement is added once, whoever reports
 * it. If there is nothing to change, the same object comes back.
 *
 * @example
 * ```ts
 * import { addToFabric, emptyFabric } from "plimsoll/compose";
 *
 * const report = { discoveries: [{ detail: "The schema has no index on orders.date", affects: "server" }] };
 * const { fabric, ids } = addToFabric(emptyFabric, report, { from: "store", date: "2026-03-01" });
 * console.log(ids.discoveries, fabric.discoveries);
 * ```
 */
export function addToFabric(fabric: Fabric, report: FabricReport, reporter: Reporter): Omit<FittedReport, "omitted"> {
  const { omitted, ...added } = addWhatFits(fabric, report, reporter);
  for (const kind of fabricKinds) {
    const count = added.fabric[kind].length + omitted[kind];
    const message = `the fabric would have ${count} ${kind}, but at most ${maxEntries} are allowed`;
    if (omitted[kind] > 0) throw invalidArgument(message, "Report only what others need.");
  }
  return added;
}

export interface FittedReport {
  readonly fabric: Fabric;
  /** Ids of the reported entries by kind, in the order of the report. An entry that existed before keeps its id. */
  readonly ids: Readonly<Record<FabricKind, readonly string[]>>;
  /** Number of entries that did not fit, by kind. They have no ids. */
  readonly omitted: Readonly<Record<FabricKind, number>>;
}

/** Like `addToFabric`, but leaves out the last entries of a kind that is full instead of throwing. */
export function addWhatFits(fabric: Fabric, report: FabricReport, reporter: Reporter): FittedReport {
  const { from, date } = reporter;
  const bodies: Readonly<Record<FabricKind, readonly Body[]>> = {
    entanglements: (report.entanglements ?? []).map(({ package: name, kind, signature, file }) => {
      return { package: name, kind, signature, file, from };
    }),
    claims: (report.claims ?? []).map(({ path }) => ({ path, owner: from })),
    discoveries: (report.discoveries ?? []).map(({ kind = "blocker", detail, affects }) => {
      const phases = typeof affects === "object" ? affects.map((each) => each.trim()).join(", ") : affects;
      return { kind, detail, from, affects: phases || undefined, date, resolved: false };
    }),
    notes: (report.notes ?? []).map(({ kind = "note", text }) => ({ kind, text, from })),
  };
  const ids: Record<FabricKind, readonly string[]> = { entanglements: [], claims: [], discoveries: [], notes: [] };
  const omitted = { entanglements: 0, claims: 0, discoveries: 0, notes: 0 };
  let fitted = fabric;
  for (const kind of fabricKinds) {
    const added = addEntries(fitted, kind, bodies[kind]);
    [fitted, ids[kind], omitted[kind]] = [added.fabric, added.ids, added.omitted];
  }
  return { fabric: withResolved(fitted, report.resolved ?? []), ids, omitted };
}

function withResolved(fabric: Fabric, ids: readonly string[]): Fabric {
  const isResolved = ({ id, resolved }: Discovery) => !resolved && ids.includes(id);
  if (!fabric.discoveries.some(isResolved)) return fabric;
  const discoveries = fabric.discoveries.map((each) => (isResolved(each) ? { ...each, resolved: true } : each));
  return { ...fabric, discoveries };
}

const fabricKinds = ["entanglements", "claims", "discoveries", "notes"] as const;

type Entry = Body & { readonly id: string };

/** An entry without its id. Keys are in the order of the type, so that equal entries are equal texts. */
type Body = Readonly<Record<string, string | boolean | undefined>>;

function addEntries(fabric: Fabric, kind: FabricKind, bodies: readonly Body[]) {
  if (bodies.length === 0) return { fabric, ids: [], omitted: 0 };
  const list = fabric[kind] as unknown as readonly Entry[];
  const idsSoFar = new Map(list.flatMap((entry) => identify(entry, kind).own.map((name) => [name, entry.id] as const)));
  const added: Entry[] = [];
  const tooMany = new Set<string>();
  const room = Math.max(0, maxEntries - list.length);
  const ids = bodies.map(trimEntry).flatMap((body) => {
    const { own, same } = identify(body, kind);
    const known = same.map((name) => idsSoFar.get(name)).find((id) => id !== undefined);
    if (known !== undefined) return known;
    if (added.length === room) {
      tooMany.add(own[0]!);
      return [];
    }
    // The first letter of the kind: e, c, d or n.
    const id = `${kind[0]}${fabric.lastIds[kind] + added.length + 1}`;
    for (const name of own) idsSoFar.set(name, id);
    added.push({ id, ...body });
    return id;
  });
  const omitted = tooMany.size;
  if (added.length === 0) return { fabric, ids, omitted };
  const lastIds = { ...fabric.lastIds, [kind]: fabric.lastIds[kind] + added.length };
  return { fabric: { ...fabric, [kind]: [...list, ...added], lastIds }, ids, omitted };
}

/** Returns the entry's own names, and the names of entries that are the same. An entanglement is the same whoever reports
 *  it, and one without a file is the same as one with any file. Other entries differ by who reports them. A name has all
 *  fields except the date, so a resolved discovery differs from a new one. */
function identify(
  { id: _id, date: _date, ...body }: Body,
  kind: FabricKind,
): Readonly<Record<"own" | "same", readonly string[]>> {
  const name = (fields: Body) => JSON.stringify(Object.entries(fields).filter(([, value]) => value !== undefined));
  if (kind !== "entanglements") return { own: [name(body)], same: [name(body)] };
  const { from: _from, file, ...rest } = body;
  const [placed, unplaced, any] = [file, "", "*"].map((place) => name({ ...rest, place }));
  if (file === undefined) return { own: [unplaced!, any!], same: [unplaced!, any!] };
  return { own: [placed!, any!], same: [placed!, unplaced!] };
}

/** Removes white space around texts, and fields without a value. Throws if a text is empty or too long. */
function trimEntry(body: Body): Body {
  const fields = Object.entries(body).flatMap(([name, value]) => {
    if (typeof value !== "string") return value === undefined ? [] : [[name, value]];
    const text = value.trim();
    if (text === "") throw invalidArgument(`the ${name} is empty`, "Describe it in a few words.");
    if (text.length > maxEntryLength) {
      const message = `the ${name} has ${text.length} characters, but at most ${maxEntryLength} are allowed`;
      throw invalidArgument(message, "Shorten it.");
    }
    return [[name, text]];
  });
  return Object.fromEntries(fields);
}

/**
 * Renders the fabric as Markdown: a heading with counts, then a section for each kind of entry that exists. Returns ""
 * if there is nothing to show. The same entries give the same bytes in any order.
 *
 * @example
 * ```ts
 * import { addToFabric, emptyFabric, renderFabric } from "plimsoll/compose";
 *
 * const report = { notes: [{ kind: "decision" as const, text: "Dates are ISO strings" }] };
 * const { fabric } = addToFabric(emptyFabric, report, { from: "model" });
 * console.log(renderFabric({ ...fabric, phases: [{ id: "model", title: "Data model", state: "completed" }] }));
 * ```
 */
export function renderFabric(state: FabricState): string {
  const { entanglements } = state;
  const phases = sortById(state.phases);
  const inState = (...states: PhaseState[]) => phases.filter((phase) => states.includes(phase.state));
  const [completed, running, blocked] = [inState("completed"), inState("running"), inState("blocked", "failed")];
  const unresolved = sortById(state.discoveries).filter(({ resolved }) => !resolved);
  // The claims of a phase are active until it has completed, those of a person until they are removed.
  const owners = new Set(completed.map(({ id }) => id));
  const claims = sortById(state.claims).filter(({ owner }) => !owners.has(owner));
  const sections = [
    ["Completed Phases", completed.map(renderPhase)],
    ["Available Entanglements", renderEntanglements(entanglements)],
    ["Active File Claims", claims.map(({ path, owner }) => renderItem(`${path} → ${owner}`))],
    ["In-Progress Phases", running.map(renderPhase)],
    ["Blocked Phases", blocked.map(renderPhase)],
    ["Unresolved Discoveries", unresolved.map(renderDiscovery)],
    ["Shared Notes", renderNotes(state.notes)],
  ] as const;
  const parts = sections.flatMap(([title, lines]) => (lines.length === 0 ? [] : [`### ${title}\n${lines.join("\n")}`]));
  // Without the word "discoveries", because compose keeps every section with that word in its heading whole.
  const counts = [
    `${completed.length} completed`,
    `${running.length} in progress`,
    `${blocked.length} blocked`,
    `${entanglements.length} entanglements`,
    `${unresolved.length} unresolved`,
  ];
  return parts.length === 0 ? "" : [`## Fabric State (${counts.join(", ")})`, ...parts].join("\n\n");
}

function renderPhase({ id, title, state }: FabricPhase): string {
  return renderItem(`${id}: ${title}${state === "failed" ? " (failed)" : ""}`);
}

/** Groups entanglements by package. */
function renderEntanglements(entanglements: readonly Entanglement[]): string[] {
  const packages = new Map<string, Entanglement[]>();
  for (const each of sortById(entanglements)) {
    const name = visibleLine(each.package);
    const entries = packages.get(name) ?? [];
    entries.push(each);
    packages.set(name, entries);
  }
  return [...packages]
    .sort(([one], [two]) => compareText(one, two))
    .flatMap(([name, entries]) => {
      const producers = [...new Set(entries.map(({ from }) => visibleLine(from)))].sort(compareText);
      const lines = entries.map(({ kind, signature, file }) =>
        renderItem(`${kind} ${signature}${file === undefined ? "" : ` (${file})`}`),
      );
      return [`#### ${name} (from: ${producers.join(", ")})`, ...lines];
    });
}

/** Includes the id, so that a reader can resolve the discovery. */
function renderDiscovery({ id, kind, detail, from, affects, date }: Discovery): string {
  const facts = [`from: ${from}`, affects === undefined ? [] : `affects: ${affects}`, date ?? [], id];
  return renderItem(`[${kind}] ${detail} (${facts.flat().join(", ")})`);
}

function renderNotes(notes: readonly FabricNote[]): string[] {
  const titles = { decision: "Decisions", failure: "Failures", feedback: "Feedback", note: "Notes" };
  return noteKinds.flatMap((kind) => {
    const lines = sortById(notes)
      .filter((note) => note.kind === kind)
      .map(({ text, from }) => renderItem(`${text} (from: ${from})`));
    return lines.length === 0 ? [] : [`#### ${titles[kind]}`, ...lines];
  });
}

/** Sorts by the letters of an id, then by its number: d2 comes before d10. */
function sortById<Entry extends { readonly id: string }>(entries: readonly Entry[]): Entry[] {
  return entries
    .map((entry) => {
      const name = entry.id.replace(/\d{1,15}$/, "");
      return { entry, name, number: Number(entry.id.slice(name.length)) };
    })
    .sort(
      (one, two) =>
        compareText(one.name, two.name) || one.number - two.number || compareText(one.entry.id, two.entry.id),
    )
    .map(({ entry }) => entry);
}

/** Renders any text as one list line. Reported text must not end its line, open a fence or start a heading. */
function renderItem(text: string): string {
  // What starts a Markdown block right after a list mark: a heading, fence, quote, tag, rule, or another list.
  const blockStart = /^(?:#{1,6}(?= |$)|`{3}|~{3}|>|<|[-*+](?= |$)|([-*_] ?){3,}$|=+$|\d{1,9}(?=[.)](?: |$)))/;
  // A number is escaped after its digits, other text before its first character.
  const line = visibleLine(text).replace(blockStart, (start) => (/^\d/.test(start) ? `${start}\\` : `\\${start}`));
  return `- ${line}`;
}

/** Replaces white space by single blanks, control characters by visible escapes, and lone surrogates by U+FFFD. */
function visibleLine(text: string): string {
  return printable(oneLine(wellFormed(text)));
}
