/** Packs that a budget can never hold, whatever else is dropped. */
import { textAt, type Verbosity } from "../../text/index.ts";
import type { Pack, PackSource } from "../pack.ts";
import type { LintFinding, LintInput, PackBudget } from "./lint-packs.ts";

export function lintSizes({
  packs,
  sources,
  budgets,
}: Pick<LintInput, "packs" | "sources" | "budgets">): LintFinding[] {
  if (budgets.length === 0) return [];
  return packs.flatMap((pack) => {
    const source = sources.findLast(({ id }) => id === pack.id);
    const message =
      source === undefined ? undefined : (beyondAll(pack, budgets) ?? baseBeyondSmallest(pack, budgets));
    if (source === undefined || message === undefined) return [];
    return [{ place: placeOf(source), severity: "warning", rule: "oversize", message }];
  });
}

function beyondAll(pack: Pack, budgets: readonly PackBudget[]): string | undefined {
  const isBeyond = (budget: PackBudget) => sizeOf(pack, budget.verbosity, budget.unit) > budget.value;
  if (!budgets.every(isBeyond)) return undefined;
  const largest = budgets.reduce((most, each) => (each.value > most.value ? each : most));
  const size = sizeOf(pack, largest.verbosity, largest.unit);
  return `the pack has ${size} ${largest.unit}, more than any tool with a budget takes (${largest.adapter}, the roomiest: ${largest.value}). Split it, or move text to higher tiers.`;
}

/** A base pack is meant for every tool, so its core should fit into the smallest. */
function baseBeyondSmallest(pack: Pack, budgets: readonly PackBudget[]): string | undefined {
  const smallest = budgets.reduce((least, each) => (each.value < least.value ? each : least));
  const size = sizeOf(pack, "minimal", smallest.unit);
  if (!pack.base || size <= smallest.value) return undefined;
  return `the core of this base pack has ${size} ${smallest.unit}, more than ${smallest.adapter} takes (${smallest.value}): it is dropped there. Mark less of it as core.`;
}

/** What is rendered of its texts; headings and tables of the block come on top. */
function sizeOf(
  { preamble, constraints, context }: Pack,
  verbosity: Verbosity,
  unit: PackBudget["unit"],
): number {
  const text = preamble + textAt(constraints, verbosity) + textAt(context, verbosity);
  return unit === "bytes" ? Buffer.byteLength(text) : [...text].length;
}

function placeOf({ directory, texts }: PackSource): LintFinding["place"] {
  const file = ["context.md", ...Object.keys(texts)].find((name) => name in texts);
  return file === undefined ? { directory, key: ["id"] } : { directory, file, line: 1 };
}
