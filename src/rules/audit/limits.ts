/** The sizes that a target must keep: the adapter's budget, measured on the block, and the tool's limits, measured on
 *  what the tool reads. */
import type { Counter } from "../../core/tokens/index.ts";
import type { Adapter, Scope, ToolLimit } from "../adapters/adapter.ts";

export interface Budget {
  readonly value: number;
  readonly unit: "bytes" | "tokens";
}

/** The budgets of adapters that share a text. */
export interface Budgets {
  readonly smallest: Budget | undefined;
  /** The smallest budget in bytes. 0 without a budget, and for tokens of another counter than bytes/4. */
  readonly smallestBytes: number;
  /** A text of more bytes exceeds one of the budgets. Infinite if only a count of tokens can decide. */
  readonly byteLimit: number;
  isExceeded(block: () => string): boolean;
}

export function readBudgets(adapters: readonly Adapter[], { counter }: { readonly counter: Counter }): Budgets {
  const maxBytes = (budget: Budget) => (budget.unit === "tokens" && counter.name !== "bytes/4" ? 0 : inBytes(budget));
  // Check every budget: bytes and counted tokens cannot be compared in advance.
  const budgets = adapters.flatMap((adapter) => readBudget(adapter) ?? []);
  const smallest = smallestBudget(budgets);
  return {
    smallest,
    smallestBytes: smallest === undefined ? 0 : maxBytes(smallest),
    byteLimit: Math.min(...budgets.map((budget) => maxBytes(budget) || Infinity)),
    isExceeded: (block) =>
      budgets.some((budget) => {
        const limit = maxBytes(budget);
        return limit > 0 ? Buffer.byteLength(block()) > limit : counter.count(block()) > budget.value;
      }),
  };
}

/** Uses `max_bytes` if it is set, else `max_tokens`. */
function readBudget({ maxBytes, maxTokens }: Adapter): Budget | undefined {
  if (maxBytes !== undefined && maxBytes > 0) return { value: maxBytes, unit: "bytes" };
  if (maxTokens !== undefined && maxTokens > 0) return { value: maxTokens, unit: "tokens" };
  return undefined;
}

/** Budgets by the ids of tools. `*` is every tool without a budget of its own. */
export type ToolBudgets = Readonly<Record<string, Budget>>;

/** Returns the adapters with these budgets. A tool's own budget replaces the adapter's. `*` never raises the adapter's
 *  smaller budget. In a project, the budget of a tool that reads another adapter's file limits that file too. */
export function applyBudgets(adapters: readonly Adapter[], budgets: ToolBudgets, scope: Scope): readonly Adapter[] {
  if (Object.keys(budgets).length === 0) return adapters;
  const named = (id: string) => (Object.hasOwn(budgets, id) ? budgets[id] : undefined);
  return adapters.map((adapter) => {
    const own = named(adapter.id) ?? smallestBudget([readBudget(adapter), named("*")]);
    const readers = scope === "project" ? adapter.reads.map(named) : [];
    const { value, unit } = smallestBudget([own, ...readers]) ?? {};
    if (value === undefined) return adapter;
    const [maxTokens, maxBytes] = unit === "tokens" ? [value, undefined] : [undefined, value];
    return { ...adapter, maxTokens, maxBytes };
  });
}

/** Returns the budgets of a project within those of its company. A budget that stays is the same object. */
export function limitBudgets(own: ToolBudgets, company: ToolBudgets): ToolBudgets {
  const ids = [...new Set([...Object.keys(own), ...Object.keys(company)])];
  const named = (budgets: ToolBudgets, id: string) => (Object.hasOwn(budgets, id) ? budgets[id] : undefined);
  return Object.fromEntries(
    ids.map((id) => {
      const budgets = [own, company].map((each) => named(each, id) ?? named(each, "*"));
      return [id, smallestBudget(budgets)!];
    }),
  );
}

/** Returns the budget that allows least, with 4 bytes per token. */
function smallestBudget(budgets: readonly (Budget | undefined)[]): Budget | undefined {
  return budgets.filter((budget) => budget !== undefined).sort((a, b) => inBytes(a) - inBytes(b))[0];
}

function inBytes({ unit, value }: Budget): number {
  return value * (unit === "tokens" ? 4 : 1);
}

/** Returns whether Plimsoll removes content for a limit: only for a hard limit that does not come from a single third party.
 *  Other limits are reported. */
export function isEnforced({ kind, evidence }: Pick<ToolLimit, "kind" | "evidence">): boolean {
  return kind === "hard" && evidence !== "third-party";
}

/** The texts of a target that a tool reads, one for each scope of a limit. */
export interface ReadTexts {
  /** The block alone: the text that a person pastes into a field. */
  readonly field: () => string;
  readonly file: () => string;
  /** The other files that a tool reads together with this one, for each folder where it may start. */
  readonly chains: readonly MeasuredChain[];
}

/** The files that a tool reads when it starts in a folder. */
export interface MeasuredChain {
  readonly folder: string | undefined;
  /** How often the target is among the files: a link is a second name of the same file. */
  readonly copies: number;
  /** The size of all other files, in the limit's unit. */
  readonly others: number;
}

export interface LimitUse {
  readonly limit: ToolLimit;
  readonly used: number;
  readonly exceeded: boolean;
  /** For a limit on a chain, the folder where the tool reads most. */
  readonly folder?: string | undefined;
}

export function measureUse(limit: ToolLimit, texts: ReadTexts, counter: Counter): LimitUse {
  const own = measure(limit.scope === "field" ? texts.field() : texts.file(), limit.unit, counter);
  if (limit.scope !== "chain") return { limit, used: own, exceeded: own > limit.value };
  const sumUp = ({ copies, others }: MeasuredChain) => own * copies + others;
  const heaviest = [...texts.chains].sort((a, b) => sumUp(b) - sumUp(a))[0];
  const used = heaviest === undefined ? 0 : sumUp(heaviest);
  return { limit, used, exceeded: used > limit.value, folder: heaviest?.folder };
}

/** Returns the size of a text: UTF-8 bytes, Unicode characters, lines (including a last line without a line break) or
 *  the counter's tokens. */
export function measure(text: string, unit: ToolLimit["unit"], counter: Counter): number {
  if (unit === "bytes") return Buffer.byteLength(text);
  if (unit === "tokens") return counter.count(text);
  if (unit === "lines") {
    let lines = text === "" || text.endsWith("\n") ? 0 : 1;
    for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines++;
    return lines;
  }
  // The search takes a fraction of the loop's time, and most texts have no pairs.
  if (!/[\udc00-\udfff]/.test(text)) return text.length;
  let pairs = 0;
  for (let at = 0; at < text.length; at++) if ((text.charCodeAt(at) & 0xfc00) === 0xdc00) pairs++;
  return text.length - pairs;
}
