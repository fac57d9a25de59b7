import { ContextError } from "../../errors.ts";
import type { Claim, Entanglement, Fabric, FabricKind, NoteKind } from "./fabric-state.ts";

/** What an agent or a person reports: entries without their ids and without who reports them. */
export interface FabricReport {
  readonly entanglements?: readonly Omit<Entanglement, "id" | "from">[] | undefined;
  readonly claims?: readonly Omit<Claim, "id" | "owner">[] | undefined;
  readonly discoveries?: readonly ReportedDiscovery[] | undefined;
  readonly notes?: readonly ReportedNote[] | undefined;
}

export interface ReportedDiscovery {
  /** `blocker` unless told. */
  readonly kind?: string | undefined;
  readonly detail: string;
  readonly affects?: string | undefined;
}

export interface ReportedNote {
  /** `note` unless told. */
  readonly kind?: NoteKind | undefined;
  readonly text: string;
}

/** Who reports, and when. */
export interface Reporter {
  /** Id of a phase, or who else it is. */
  readonly from: string;
  /** YYYY-MM-DD, for discoveries. */
  readonly date?: string | undefined;
}

export interface AddedReport {
  readonly fabric: Fabric;
  /** By kind, in the order of the report. An entry that was there before has the id that it had. */
  readonly ids: Readonly<Record<FabricKind, readonly string[]>>;
}

/** Characters of one text of an entry. */
export const maxEntryLength = 2_000;
/** Entries of one kind. */
export const maxEntries = 10_000;

/**
 * The fabric with all that was reported, or an error and nothing. The same entry of the same `from` is not added twice; a discovery
 * that was resolved and is reported again is a new one. With nothing to add, the same object comes back.
 */
export function addToFabric(fabric: Fabric, report: FabricReport, reporter: Reporter): AddedReport {
  const { omitted, ...added } = addWhatFits(fabric, report, reporter);
  for (const kind of fabricKinds) {
    if (omitted[kind] > 0) throw noRoom(kind, added.fabric[kind].length + omitted[kind]);
  }
  return added;
}

export interface FittedReport extends AddedReport {
  /** Entries that there was no room for, by kind. They have no ids. */
  readonly omitted: Readonly<Record<FabricKind, number>>;
}

/** As `addToFabric`, where a kind that is full leaves out what comes last of that kind, and nothing else. */
export function addWhatFits(fabric: Fabric, report: FabricReport, reporter: Reporter): FittedReport {
  const { from } = reporter;
  const bodies: Readonly<Record<FabricKind, readonly Body[]>> = {
    entanglements: (report.entanglements ?? []).map((each) => entanglementOf(each, from)),
    claims: (report.claims ?? []).map(({ path }) => ({ path, owner: from })),
    discoveries: (report.discoveries ?? []).map((each) => discoveryOf(each, reporter)),
    notes: (report.notes ?? []).map(({ kind = "note", text }) => ({ kind, text, from })),
  };
  const ids: Record<FabricKind, readonly string[]> = {
    entanglements: [],
    claims: [],
    discoveries: [],
    notes: [],
  };
  const omitted = { entanglements: 0, claims: 0, discoveries: 0, notes: 0 };
  let fitted = fabric;
  for (const kind of fabricKinds) {
    const added = addEntries(fitted, kind, bodies[kind]);
    [fitted, ids[kind], omitted[kind]] = [added.fabric, added.ids, added.omitted];
  }
  return { fabric: fitted, ids, omitted };
}

const fabricKinds = ["entanglements", "claims", "discoveries", "notes"] as const;

type Entry = Body & { readonly id: string };

/** An entry without its id. Keys are in the order of the type, so that equal entries are equal texts. */
type Body = Readonly<Record<string, string | boolean | undefined>>;

function entanglementOf(
  { package: name, kind, signature, file }: Reported<"entanglements">,
  from: string,
): Body {
  return { package: name, kind, signature, file, from };
}

function discoveryOf(
  { kind = "blocker", detail, affects }: ReportedDiscovery,
  { from, date }: Reporter,
): Body {
  return { kind, detail, from, affects, date, resolved: false };
}

type Reported<Kind extends FabricKind> = NonNullable<FabricReport[Kind]>[number];

interface AddedEntries {
  readonly fabric: Fabric;
  readonly ids: readonly string[];
  readonly omitted: number;
}

function addEntries(fabric: Fabric, kind: FabricKind, bodies: readonly Body[]): AddedEntries {
  if (bodies.length === 0) return { fabric, ids: [], omitted: 0 };
  const list = fabric[kind] as unknown as readonly Entry[];
  const idsSoFar = new Map(list.map((entry) => [identity(entry), entry.id]));
  const added: Entry[] = [];
  const tooMany = new Set<string>();
  const room = Math.max(0, maxEntries - list.length);
  const ids = bodies.map(trimmed).flatMap((body) => {
    const name = identity(body);
    const known = idsSoFar.get(name);
    if (known !== undefined) return known;
    if (added.length === room) {
      tooMany.add(name);
      return [];
    }
    const id = `${prefixes[kind]}${fabric.lastIds[kind] + added.length + 1}`;
    idsSoFar.set(name, id);
    added.push({ id, ...body });
    return id;
  });
  const omitted = tooMany.size;
  if (added.length === 0) return { fabric, ids, omitted };
  const lastIds = { ...fabric.lastIds, [kind]: fabric.lastIds[kind] + added.length };
  return { fabric: { ...fabric, [kind]: [...list, ...added], lastIds }, ids, omitted };
}

const prefixes: Readonly<Record<FabricKind, string>> = {
  entanglements: "e",
  claims: "c",
  discoveries: "d",
  notes: "n",
};

/** All that makes an entry what it is: when it was reported does not, and one that is resolved is like no new one. */
function identity({ id: _id, date: _date, ...rest }: Body): string {
  return JSON.stringify(Object.entries(rest).filter(([, value]) => value !== undefined));
}

function trimmed(body: Body): Body {
  const fields = Object.entries(body).map(([name, value]) => [name, checked(name, value)]);
  return Object.fromEntries(fields.filter(([, value]) => value !== undefined));
}

function checked(name: string, value: string | boolean | undefined): string | boolean | undefined {
  if (typeof value !== "string") return value;
  const text = value.trim();
  if (text === "") throw invalid(`the ${name} is empty`, "Say it in a few words.");
  if (text.length > maxEntryLength) {
    throw invalid(
      `the ${name} has ${text.length} characters, at most ${maxEntryLength} are kept`,
      "Shorten it.",
    );
  }
  return text;
}

function noRoom(kind: FabricKind, count: number): ContextError {
  return invalid(
    `the fabric would have ${count} ${kind}, at most ${maxEntries} are kept`,
    "Report only what others need.",
  );
}

function invalid(message: string, hint: string): ContextError {
  return new ContextError("invalid_argument", message, { hint });
}
