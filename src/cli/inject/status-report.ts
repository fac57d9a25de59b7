import type { TargetState } from "../../adapters/index.ts";
import { formatNumber } from "../../text/index.ts";
import { renderTable } from "../table.ts";

/** Rows of `--status` for programs: one an adapter and file. Of a file that no adapter knows the adapter is null. */
export function statusRows(states: readonly TargetState[], shown: (path: string) => string): object[] {
  return states.flatMap(({ tools, scope, path, state, bytes, limit }) =>
    (tools.length === 0 ? [null] : tools).map((adapter) => ({
      adapter,
      scope,
      path: shown(path),
      state,
      bytes,
      limit: limit === undefined ? null : { value: limit.value, unit: limit.unit, kind: limit.kind },
    })),
  );
}

export function renderStatus(states: readonly TargetState[], shown: (path: string) => string): string {
  if (states.length === 0) return "no file to write for these tools in this scope";
  const rows = states.map(({ tools, path, state, bytes, limit }) => [
    state,
    shown(path),
    tools.join(", "),
    formatNumber(bytes),
    limit === undefined ? "" : `${formatNumber(limit.value)} ${limit.unit}`,
  ]);
  return renderTable(
    [["State", "File", "Tools", "Bytes", "Hard limit"], ...rows],
    ["left", "left", "left", "right", "right"],
  ).join("\n");
}
