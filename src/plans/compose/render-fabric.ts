/** The fabric as Markdown: the fabric layer of a prompt. */

import { compareText, printable, wellFormed } from "../../core/text/index.ts";
import type { Discovery, Entanglement, FabricNote, FabricPhase, FabricState, NoteKind, PhaseState } from "./fabric.ts";

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

/** Avoids the word "discoveries", because compose keeps every section with that word in its heading whole. */
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
    .map(({ id, title, state }) => fabricItem(`${id}: ${title}${state === "failed" ? " (failed)" : ""}`));
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
    .sort(([one], [two]) => compareText(one, two))
    .flatMap(([name, entries]) => {
      const producers = [...new Set(entries.map(({ from }) => oneLine(from)))].sort(compareText);
      const lines = entries.map(({ kind, signature, file }) =>
        fabricItem(`${kind} ${signature}${file === undefined ? "" : ` (${file})`}`),
      );
      return [`#### ${name} (from: ${producers.join(", ")})`, ...lines];
    });
}

/** Renders active claims: those of a phase until it has completed, those of a person until they are removed. */
function claimLines({ claims, phases }: FabricState): string[] {
  const completed = new Set(phases.filter(({ state }) => state === "completed").map(({ id }) => id));
  return byId(claims)
    .filter(({ owner }) => !completed.has(owner))
    .map(({ path, owner }) => fabricItem(`${path} → ${owner}`));
}

/** Includes the id, so that a reader can resolve the discovery. */
function discoveryLines(discoveries: readonly Discovery[]): string[] {
  return byId(discoveries)
    .filter(({ resolved }) => !resolved)
    .map(({ id, kind, detail, from, affects, date }) => {
      const facts = [`from: ${from}`, affects === undefined ? [] : `affects: ${affects}`, date ?? [], id];
      return fabricItem(`[${kind}] ${detail} (${facts.flat().join(", ")})`);
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
      .map(({ text, from }) => fabricItem(`${text} (from: ${from})`));
    return lines.length === 0 ? [] : [`#### ${title}`, ...lines];
  });
}

/** Sorts by the letters of an id, then by its number: d2 comes before d10. */
function byId<Entry extends { readonly id: string }>(entries: readonly Entry[]): Entry[] {
  return entries
    .map((entry) => ({ entry, ...parts(entry.id) }))
    .sort(
      (one, two) =>
        compareText(one.name, two.name) || one.number - two.number || compareText(one.entry.id, two.entry.id),
    )
    .map(({ entry }) => entry);
}

function parts(id: string): { name: string; number: number } {
  const name = id.replace(/\d{1,15}$/, "");
  return { name, number: Number(id.slice(name.length)) };
}

/** Renders any text as one list line. Reported text must not end its line, open a fence or start a heading. */
function fabricItem(text: string): string {
  return `- ${oneLine(text).replace(blockStart, escapeStart)}`;
}

/** Replaces white space by single blanks, control characters by visible escapes, and lone surrogates by U+FFFD. */
function oneLine(text: string): string {
  return printable(wellFormed(text).replaceAll(/\s+/g, " ").trim());
}

/** Text that starts a Markdown block right after a list mark: a heading, fence, quote, tag, rule, or another list. */
const blockStart = /^(?:#{1,6}(?= |$)|`{3}|~{3}|>|<|[-*+](?= |$)|([-*_] ?){3,}$|=+$|\d{1,9}(?=[.)](?: |$)))/;

/** Escapes a number after its digits, and any other text before its first character. */
function escapeStart(start: string): string {
  return /^\d/.test(start) ? `${start}\\` : `\\${start}`;
}
