/** Sums calls by day, project, model and so on. */

import type { UsageStep } from "../../core/billing/index.ts";
import type { Agent, SessionFacts } from "../sessions/session-facts.ts";
import { type BilledCall, type BilledSession, countInput } from "./price-calls.ts";

export const groupings = [
  "day",
  "week",
  "month",
  "project",
  "session",
  "model",
  "agent",
  "tool",
  "cause",
  "part",
] as const;
export type Grouping = (typeof groupings)[number];

export interface BillTotals {
  readonly calls: number;
  readonly uncached: number;
  readonly write5m: number;
  readonly write1h: number;
  readonly read: number;
  readonly output: number;
  /** Dollars of the calls whose model has a price of its own. */
  readonly usd: number;
  /** Calls without a price. */
  readonly unpriced: number;
}

export interface BillRow extends BillTotals {
  readonly key: string;
}

/** One call with the session that it belongs to. */
export interface PlacedCall {
  readonly call: BilledCall;
  readonly facts: SessionFacts;
}

/** Returns the calls that are billed and pass the test, in the order of time. */
export function billedCalls(
  sessions: readonly BilledSession[],
  isWanted: (placed: PlacedCall) => boolean,
): readonly PlacedCall[] {
  const billed: PlacedCall[] = [];
  for (const { facts, calls } of sessions) {
    for (const call of calls) {
      const placed = { call, facts };
      if (!call.isCopy && isWanted(placed)) billed.push(placed);
    }
  }
  return billed.sort((left, right) => left.call.fact.time - right.call.fact.time);
}

/** Times are sorted by name, everything else by dollars. `causeOf` names the cause if a call lost the cache. */
export function sumCalls(
  calls: readonly PlacedCall[],
  grouping: Grouping,
  causeOf: (call: BilledCall) => string | undefined = () => undefined,
): readonly BillRow[] {
  const groups = new Map<string, PlacedCall[]>();
  for (const placed of calls) {
    const key = chooseKey(placed, grouping) ?? causeOf(placed.call) ?? "(no loss)";
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [placed]);
    else group.push(placed);
  }
  const rows = [...groups].map(([key, group]) => ({ key, ...sumTotals(group) }));
  const byTime = grouping === "day" || grouping === "week" || grouping === "month";
  return rows.sort((left, right) =>
    byTime ? (left.key < right.key ? -1 : 1) : right.usd - left.usd || countInput(right) - countInput(left),
  );
}

export function sumTotals(calls: readonly PlacedCall[]): BillTotals {
  const total = { calls: calls.length, uncached: 0, write5m: 0, write1h: 0, read: 0, output: 0, usd: 0, unpriced: 0 };
  for (const { call } of calls) {
    addStep(total, call.fact);
    for (const step of call.fact.extra ?? []) addStep(total, step);
    if (call.usd === undefined) total.unpriced++;
    else total.usd += call.usd;
  }
  return total;
}

function addStep(total: { -readonly [Kind in keyof UsageStep]: number }, step: UsageStep): void {
  total.uncached += step.uncached;
  total.write5m += step.write5m;
  total.write1h += step.write1h;
  total.read += step.read;
  total.output += step.output;
}

export const agentNames: Readonly<Record<Agent, string>> = {
  "claude-code": "Claude Code",
  codex: "Codex",
  opencode: "opencode",
  "gemini-cli": "gemini-cli",
  pi: "pi",
  "copilot-cli": "Copilot CLI",
  cline: "cline",
  "qwen-code": "qwen-code",
};

function chooseKey({ call: { fact }, facts }: PlacedCall, grouping: Grouping): string | undefined {
  switch (grouping) {
    case "cause":
    case "part":
      return undefined;
    case "project":
      return facts.project || "(unknown)";
    case "session":
      return facts.session || "(unknown)";
    case "model":
      return fact.model;
    case "agent":
      return [agentNames[facts.agent], facts.subAgent ?? (fact.chain > 0 ? "sub-agent" : [])].flat().join(", ");
    case "tool":
      return fact.tool ?? "(prompt)";
    default:
      return periodOf(fact.time, grouping);
  }
}

/** In the zone of the machine. A week is named after its Monday. */
export function periodOf(time: number, period: "day" | "week" | "month"): string {
  if (!(time > 0)) return "(unknown)";
  const date = new Date(time);
  if (period === "week") date.setDate(date.getDate() - ((date.getDay() + 6) % 7));
  const two = (value: number): string => String(value).padStart(2, "0");
  const month = `${date.getFullYear()}-${two(date.getMonth() + 1)}`;
  return period === "month" ? month : `${month}-${two(date.getDate())}`;
}
