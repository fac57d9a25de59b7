import type { LogEntry, WorkLogView } from "../../session/index.ts";
import { printable } from "../../text/index.ts";
import { formatNumber } from "../table.ts";
import { entryLines } from "./entry-lines.ts";

/** The work log in one of the views that a model gets. */
export function renderView(view: WorkLogView): string {
  if ("steps" in view) {
    const { steps, last_result } = view;
    return [count(steps), ...(last_result === undefined ? [] : [`last: ${printable(last_result)}`])].join(
      "\n",
    );
  }
  const { total_steps } = view;
  if ("recent" in view) return [`${count(total_steps)}, newest first`, ...lines(view.recent)].join("\n");
  const evicted = view.evicted === 0 ? "" : `, ${formatNumber(view.evicted)} evicted`;
  return [`${count(total_steps)}${evicted}`, ...lines(view.entries)].join("\n");
}

function count(steps: number): string {
  return `${formatNumber(steps)} ${steps === 1 ? "step" : "steps"}`;
}

function lines(entries: readonly Omit<LogEntry, "tokens">[]): string[] {
  return entries.flatMap(entryLines);
}
