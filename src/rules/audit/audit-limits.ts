/** Compares a tool's limits with the files that it loads: how much of each limit is used, and what the tool cuts. */
import { formatNumber } from "../../core/text/index.ts";
import type { Counter } from "../../core/tokens/index.ts";
import type { Adapter, ToolLimit } from "../adapters/adapter.ts";
import type { LoadedFile } from "../load-model/load-files.ts";
import { isLimitOn, type ToolFiles } from "../load-model/tool-files.ts";
import { isEnforced, type LimitUse, measure, measureUse } from "./limits.ts";

export interface LimitReport extends LimitUse {
  readonly advice: readonly string[];
}

interface LimitOptions {
  readonly name: string;
  readonly counter: Counter;
  show(path: string): string;
}

/** Returns the limits of the tool's own adapter, and the limits that a shared file's adapter lists for the tool. */
export function findLimits(tool: ToolFiles, adapters: readonly Adapter[]): ToolLimit[] {
  const ids = [tool.id, tool.limitsFrom];
  const limits = adapters.filter(({ id }) => ids.includes(id)).flatMap((adapter) => adapter.limits);
  return limits.filter((limit) => limit.scope !== "field");
}

export function reportLimit(
  limit: ToolLimit,
  files: readonly LoadedFile[],
  { tool, ...options }: LimitOptions & { readonly tool: ToolFiles },
): LimitReport {
  const counted = files.filter((file) => countsToward(limit, file, tool));
  if (limit.scope === "chain") return reportChain(limit, counted, options);
  const uses = counted.map((file) => ({
    file,
    ...measureUse(limit, { field: () => "", file: () => file.text, chains: [] }, options.counter),
  }));
  const used = Math.max(0, ...uses.map((use) => use.used));
  const over = uses.filter((use) => use.exceeded);
  return {
    limit,
    used,
    exceeded: over.length > 0,
    advice: over.map((use) => describeExcess(use.file, use.used, limit, options)),
  };
}

/** Rules that are loaded on demand do not count toward the chain. For some tools the user's own file does not count
 *  either. No limit is about skills. */
export function countsToward(
  limit: ToolLimit,
  { path, scope, onDemand, alwaysText }: LoadedFile,
  { id, userExempt }: ToolFiles,
): boolean {
  if (alwaysText !== undefined) return false;
  if (limit.scope === "chain") return !onDemand && (scope === "project" || !userExempt);
  return isLimitOn(path, limit, id);
}

function describeExcess(
  file: LoadedFile,
  used: number,
  limit: ToolLimit,
  { name, counter, show }: LimitOptions,
): string {
  const size = `${show(file.path)} has ${amount(used, limit)}`;
  const note = limit.note === undefined ? "" : ` (${limit.note})`;
  if (limit.kind === "warn") return `${size}; ${name} warns above ${formatNumber(limit.value)}${note}.`;
  if (limit.kind === "advice")
    return `${size}; fewer than ${formatNumber(limit.value)} are advised for ${name}${note}.`;
  const line = findLine(file.text, limit.value, { unit: limit.unit, counter });
  const excess = used - limit.value;
  const verb = excess === 1 ? "is" : "are";
  const lost = `the last ${amount(excess, limit)}, from line ${formatNumber(line)} on, ${describeLoss(limit, verb)}`;
  return `${size}; ${name} takes ${formatNumber(limit.value)}: ${lost}${note}.`;
}

function describeLoss(limit: ToolLimit, verb: "is" | "are"): string {
  return isEnforced(limit) ? `${verb} lost` : "may be lost: the limit comes from a third party";
}

/** Returns the line in which a text reaches a size. */
function findLine(text: string, size: number, by: { unit: ToolLimit["unit"]; counter: Counter }): number {
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (measure(text.slice(0, middle), by.unit, by.counter) <= size) low = middle;
    else high = middle - 1;
  }
  return text.slice(0, low).split("\n").length;
}

function amount(value: number, { unit }: ToolLimit): string {
  const noun = unit === "chars" ? "characters" : unit;
  return `${formatNumber(value)} ${value === 1 ? noun.slice(0, -1) : noun}`;
}

/** The tool reads the files in order until it reaches the limit. It cuts the file that crosses the limit. */
function reportChain(limit: ToolLimit, files: readonly LoadedFile[], options: LimitOptions): LimitReport {
  const { name, counter, show } = options;
  const sizes = files.map((file) => measure(file.text, limit.unit, counter));
  const used = sizes.reduce((sum, size) => sum + size, 0);
  if (used <= limit.value) return { limit, used, exceeded: false, advice: [] };
  const total = `The files together have ${amount(used, limit)}; ${name} takes ${formatNumber(limit.value)}`;
  if (limit.kind !== "hard") return { limit, used, exceeded: true, advice: [`${total}.`] };
  let room = limit.value;
  const cut = sizes.findIndex((size) => {
    room -= size;
    return room < 0;
  });
  const kept = room + sizes[cut]!;
  const line = findLine(files[cut]!.text, kept, { unit: limit.unit, counter });
  const place = `${formatNumber(kept)} of its ${amount(sizes[cut]!, limit)}, in line ${formatNumber(line)}`;
  const gone = files.slice(cut + 1).map((file) => show(file.path));
  const rest = gone.length === 0 ? "" : ` and all of ${gone.join(", ")}`;
  const lost = `what follows there${rest} ${describeLoss(limit, gone.length === 0 ? "is" : "are")}`;
  const advice = `${total}: ${show(files[cut]!.path)} is cut after ${place}; ${lost}.`;
  return { limit, used, exceeded: true, advice: [advice] };
}
