import type { LogEntry, WorkLogView } from "../../session/index.ts";
import { countNoun, formatNumber, printable } from "../../text/index.ts";
import { entryLines } from "./entry-lines.ts";

/** The work log in one of the views that a model gets. */
export function renderView(view: WorkLogView): string {
  if ("steps" in view) {
    const { steps, last_result } = view;
    return [
      countNoun(steps, "step"),
      ...(last_result === undefined ? [] : [`last: ${printable(last_result)}`]),
    ].join("\n");
  }
  const { total_steps } = view;
  if ("recent" in view)
    return [`${countNoun(total_steps, "step")}, newest first`, ...lines(view.recent)].join("\n");
  const evicted = view.evicted === 0 ? "" : `, ${formatNumber(view.evicted)} evicted`;
  return [`${countNoun(total_steps, "step")}${evicted}`, ...lines(view.entries)].join("\n");
}

function lines(entries: readonly Omit<LogEntry, "tokens">[]): string[] {
  return entries.flatMap(entryLines);
}
