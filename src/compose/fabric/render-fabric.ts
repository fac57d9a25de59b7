/** The fabric as Markdown: the fabric layer of a prompt. */
import { fabricItem as item, oneLine } from "./fabric-item.ts";
import type {
  Discovery,
  Entanglement,
  FabricNote,
  FabricPhase,
  FabricState,
  NoteKind,
  PhaseState,
} from "./fabric-state.ts";

/**
 * A heading with the counts, then a section for each kind that has something to tell. Sections are `###`, items are list lines and
 * groups `####`, which is what compose truncates by. A section without items is left out: the counts say as much, in fewer tokens.
 * Nothing to tell at all is "". The same entries give the same bytes, in whatever order they come.
 */
export function renderFabric(state: FabricState): string {
  const sections = [
    section("Completed Phases", phaseLines(state.phases, ["completed"])),
    section("Available Entanglements", entanglementLines(state.entanglements)),
    section("Active File Claims", claimLines(state)),
    section("In-Progress Phases", phaseLines(state.phases, ["running"])),
    section("Blocked Phases", phaseLines(state.phases, ["blocked", "failed"])),
    section("Unresolved Discoveries", discoveryLines(state.discoveries)),
    section("Shared Notes", noteLines(state.notes)),
  ].filter((each) => each !== "");
  return sections.length === 0 ? "" : [heading(state), ...sections].join("\n\n");
}

/** Without the word that makes compose keep a section whole: only what is in the section of that name is kept. */
function heading({ phases, entanglements, discoveries }: FabricState): string {
  const inState = (...states: PhaseState[]) => phases.filter(({ state }) => states.includes(state)).length;
  const counts = [
    `${inState("completed")} completed`,
    `${inState("running")} in progress`,
    `${inState("blocked", "failed")} blocked`,
    `${entanglements.length} entanglements`,
    `${discoveries.filter(({ resolved }) => !resolved).length} unresolved`,
  ];
  return `## Fabric State (${counts.join(", ")})`;
}

function section(title: string, lines: readonly string[]): string {
  return lines.length === 0 ? "" : [`### ${title}`, ...lines].join("\n");
}

function phaseLines(phases: readonly FabricPhase[], states: readonly PhaseState[]): string[] {
  return byId(phases)
    .filter(({ state }) => states.includes(state))
    .map(({ id, title, state }) => item(`${id}: ${title}${state === "failed" ? " (failed)" : ""}`));
}

function entanglementLines(entanglements: readonly Entanglement[]): string[] {
  const packages = new Map<string, Entanglement[]>();
  for (const each of byId(entanglements)) {
    const name = oneLine(each.package);
    const entries = packages.get(name) ?? [];
    entries.push(each);
    packages.set(name, entries);
  }
  return [...packages]
    .sort(([one], [two]) => compare(one, two))
    .flatMap(([name, entries]) => {
      const producers = [...new Set(entries.map(({ from }) => oneLine(from)))].sort(compare);
      const lines = entries.map(({ kind, signature, file }) =>
        item(`${kind} ${signature}${file === undefined ? "" : ` (${file})`}`),
      );
      return [`#### ${name} (from: ${producers.join(", ")})`, ...lines];
    });
}

/** A claim is active until the phase that owns it is completed; one of a person, until it is dropped. */
function claimLines({ claims, phases }: FabricState): string[] {
  const completed = new Set(phases.filter(({ state }) => state === "completed").map(({ id }) => id));
  return byId(claims)
    .filter(({ owner }) => !completed.has(owner))
    .map(({ path, owner }) => item(`${path} → ${owner}`));
}

/** With the id, so that whoever reads of it can resolve it. */
function discoveryLines(discoveries: readonly Discovery[]): string[] {
  return byId(discoveries)
    .filter(({ resolved }) => !resolved)
    .map(({ id, kind, detail, from, affects, date }) => {
      const facts = [`from: ${from}`, affects === undefined ? [] : `affects: ${affects}`, date ?? [], id];
      return item(`[${kind}] ${detail} (${facts.flat().join(", ")})`);
    });
}

const noteGroups: readonly (readonly [kind: NoteKind, title: string])[] = [
  ["decision", "Decisions"],
  ["failure", "Failures"],
  ["feedback", "Feedback"],
  ["note", "Notes"],
];

function noteLines(notes: readonly FabricNote[]): string[] {
  return noteGroups.flatMap(([kind, title]) => {
    const lines = byId(notes)
      .filter((note) => note.kind === kind)
      .map(({ text, from }) => item(`${text} (from: ${from})`));
    return lines.length === 0 ? [] : [`#### ${title}`, ...lines];
  });
}

/** By the letters of an id, then by its number: d2 comes before d10. */
function byId<Entry extends { readonly id: string }>(entries: readonly Entry[]): Entry[] {
  return entries
    .map((entry) => ({ entry, ...parts(entry.id) }))
    .sort(
      (one, two) =>
        compare(one.name, two.name) || one.number - two.number || compare(one.entry.id, two.entry.id),
    )
    .map(({ entry }) => entry);
}

function parts(id: string): { name: string; number: number } {
  const name = id.replace(/\d{1,15}$/, "");
  return { name, number: Number(id.slice(name.length)) };
}

function compare(one: string, two: string): number {
  return one < two ? -1 : one > two ? 1 : 0;
}
