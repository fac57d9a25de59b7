import { didYouMean } from "../../../../text/index.ts";
import type { ContentProblem } from "../../../../workspace/index.ts";
import type { PhaseDraft } from "../phase-file.ts";

/** `from` depends on `to`, and where that is written. */
export interface Dependency {
  readonly from: string;
  readonly to: string;
  readonly file: string;
  readonly line: number;
}

export interface CheckedDependencies {
  /** Between phases that there are, in the order of the files; those of `depends_on` before those of `blocks`. */
  readonly dependencies: readonly Dependency[];
  readonly problems: readonly ContentProblem[];
}

export function checkDependencies(
  drafts: readonly PhaseDraft[],
  byId: ReadonlyMap<string, PhaseDraft>,
): CheckedDependencies {
  const dependencies: Dependency[] = [];
  const problems: ContentProblem[] = [];
  const suggest = createSuggest([...byId.keys()]);
  for (const { draft, key, name, index } of namedIn(drafts)) {
    const { id } = draft.keys;
    const place = { file: draft.file, line: draft.lineOf([key, index]) };
    const problem = problemOf(key, { name, id, isKnown: byId.has(name), suggest });
    if (problem !== undefined) problems.push({ ...place, ...problem });
    // A phase whose id another one has is told already.
    else if (id !== undefined && byId.get(id) === draft)
      dependencies.push({ ...place, ...ends(key, id, name) });
  }
  return { dependencies, problems };
}

const keys = ["depends_on", "blocks"] as const;

interface NamedPhase {
  readonly draft: PhaseDraft;
  readonly key: (typeof keys)[number];
  readonly name: string;
  readonly index: number;
}

function namedIn(drafts: readonly PhaseDraft[]): NamedPhase[] {
  return keys.flatMap((key) =>
    drafts.flatMap((draft) => (draft.keys[key] ?? []).map((name, index) => ({ draft, key, name, index }))),
  );
}

function ends(key: NamedPhase["key"], id: string, name: string): Pick<Dependency, "from" | "to"> {
  return key === "depends_on" ? { from: id, to: name } : { from: name, to: id };
}

interface Named {
  readonly name: string;
  readonly id: string | undefined;
  readonly isKnown: boolean;
  suggest(name: string): string;
}

function problemOf(
  key: string,
  { name, id, isKnown, suggest }: Named,
): Omit<ContentProblem, "file" | "line"> | undefined {
  if (name === id) {
    return {
      severity: "error",
      rule: "self-dependency",
      message: `${key} names the phase itself, "${name}"`,
    };
  }
  if (isKnown) return undefined;
  return {
    // Whoever depends on nothing that is there can never start; that nothing waits for a phase keeps nobody from running.
    severity: key === "depends_on" ? "error" : "warning",
    rule: "unknown-dependency",
    message: `${key} names "${name}", which no phase here has as its id${suggest(name)}`,
  };
}

/** Looking through all ids for each of thousands of wrong names would take minutes. */
const mostSuggestions = 50;

function createSuggest(ids: readonly string[]): (name: string) => string {
  const known = new Map<string, string>();
  return (name) => {
    const found = known.get(name);
    if (found !== undefined || known.size >= mostSuggestions) return found ?? "";
    const meant = didYouMean(name, ids);
    const sentence = meant === undefined ? "" : `. ${meant}`;
    known.set(name, sentence);
    return sentence;
  };
}
