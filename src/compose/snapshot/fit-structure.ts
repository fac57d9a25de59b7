import { largestWithin } from "../truncate/largest-within.ts";
import type { FittedSection, SectionLimit } from "./fitted-section.ts";
import { createTreeView, entriesText, type RenderedTree } from "./tree-view.ts";

/** A tree of this many steps is small in any budget that is worth having. */
const firstSteps = 64;

export interface Structure {
  /** The tree of a project in a fence; as much of it as fits, and how much is left out. */
  fit(limit: SectionLimit): FittedSection;
  /** No tree at all, only how much is left out: with a heading, or as one line. */
  readonly least: readonly FittedSection[];
}

export function createStructure(paths: readonly string[]): Structure {
  const view = createTreeView(paths);
  const none = view.render(0);
  const least = [renderStructure(none), marker(none)].map((text) => ({ text, omitted: none.omitted }));
  return {
    least: view.steps === 0 ? [] : least,
    fit({ limit, tokensWith }) {
      if (view.steps === 0) return { text: "", omitted: 0 };
      const tokensAt = (steps: number): number => tokensWith(renderStructure(view.render(steps)));
      const steps = largestWithin({ limit, most: view.steps, first: firstSteps, tokensAt });
      const tree = view.render(steps);
      const fits = steps > 0 || tokensAt(0) <= limit;
      return { text: fits ? renderStructure(tree) : "", omitted: tree.omitted };
    },
  };
}

function renderStructure(tree: RenderedTree): string {
  const { lines, omitted } = tree;
  const notes = omitted === 0 ? [] : [marker(tree)];
  if (lines.length === 0) return ["## Structure", "", ...notes].join("\n");
  const fence = "`".repeat(longestRun(lines) + 1);
  return ["## Structure", "", fence, ...lines, ...notes, fence].join("\n");
}

function marker({ omitted }: RenderedTree): string {
  return `[... truncated, ${entriesText(omitted)} omitted]`;
}

/** Of backticks, 2 at least: no name can close a longer fence. */
function longestRun(lines: readonly string[]): number {
  let longest = 2;
  for (const line of lines)
    if (line.includes("```"))
      for (const [run] of line.matchAll(/`+/g)) longest = Math.max(longest, run.length);
  return longest;
}
