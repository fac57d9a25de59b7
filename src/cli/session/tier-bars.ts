import type { SessionReport } from "../../session/index.ts";
import { formatNumber } from "../../text/index.ts";
import { renderTable } from "../table.ts";

const width = 24;

/** A line for each tier of the ledger: a bar of what is used, and the numbers. */
export function renderTiers(ledger: SessionReport["ledger"]): string[] {
  const tiers = Object.entries(ledger);
  const digits = Math.max(...tiers.map(([, { limit }]) => formatNumber(limit).length));
  const rows = tiers.map(([tier, { used, limit }]) => [
    tier.replaceAll("_", " "),
    bar(used, limit),
    `${formatNumber(used)} of ${formatNumber(limit).padStart(digits)}`,
    meaning(tier, used, limit),
  ]);
  return renderTable(rows, ["left", "left", "right", "left"]);
}

/** Full only where nothing is left, and empty only where nothing is used. */
function bar(used: number, limit: number): string {
  if (used >= limit && used > 0) return "█".repeat(width);
  const filled = used <= 0 ? 0 : Math.min(width - 1, Math.max(1, Math.round((used / limit) * width)));
  return "█".repeat(filled) + "░".repeat(width - filled);
}

function meaning(tier: string, used: number, limit: number): string {
  if (used > limit) return `${formatNumber(used - limit)} over`;
  return tier === "response" ? "reserved" : "";
}
