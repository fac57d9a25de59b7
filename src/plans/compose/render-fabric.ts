/** The fabric as Markdown: the fabric layer of a prompt. */

import { compareText, oneLine, printable, wellFormed } from "../../core/text/index.ts";
import {
  type Discovery,
  type Entanglement,
  type FabricNote,
  type FabricPhase,
  type FabricState,
  noteKinds,
  type PhaseState,
} from "./fabric.ts";

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
