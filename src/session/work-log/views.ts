import type { LogEntry } from "./log-entry.ts";
import type { WorkLog } from "./work-log.ts";

export const workLogViews = ["minimal", "recent", "full"] as const;
export type WorkLogViewName = (typeof workLogViews)[number];

export type WorkLogView = MinimalView | RecentView | FullView;

export interface MinimalView {
  readonly steps: number;
  readonly last_result?: string;
}

export interface RecentView {
  readonly total_steps: number;
  /** Newest first. */
  readonly recent: readonly ViewedEntry[];
}

export interface FullView {
  readonly total_steps: number;
  readonly evicted: number;
  /** Oldest first. */
  readonly entries: readonly ViewedEntry[];
}

export type ViewedEntry = Omit<LogEntry, "tokens">;

const mostRecent = 5;

export function viewWorkLog(log: Pick<WorkLog, "entries" | "steps">, view: WorkLogViewName): WorkLogView {
  const entries = log.entries();
  const viewed = (list: readonly LogEntry[]): ViewedEntry[] => list.map(({ tokens, ...entry }) => entry);
  switch (view) {
    case "minimal": {
      const last = entries.at(-1);
      return { steps: log.steps(), ...(last === undefined ? {} : { last_result: last.result }) };
    }
    case "recent":
      return { total_steps: log.steps(), recent: viewed(entries.slice(-mostRecent).reverse()) };
    case "full":
      return { total_steps: log.steps(), evicted: log.steps() - entries.length, entries: viewed(entries) };
  }
}
