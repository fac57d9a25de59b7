/** Tells the model how much the next call can return, so that it asks for that much. */
import { type Ledger, leastAllocation } from "../../core/budget/index.ts";
import type { BudgetedTool, JsonSchema, ToolArguments } from "./budgeted-tool.ts";
import { parseToken } from "./continuations.ts";
import type { Cut } from "./envelope.ts";
import type { NoteFacts } from "./render-page.ts";
import type { Measured } from "./session-record.ts";

/** Where hints are shown. `schema`: in the tools' definitions, which breaks the provider's prompt cache. `note`: in
 *  each result. */
export type HintMode = "schema" | "note" | "off";

export interface ToolSchema {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
}

export interface Hints {
  /** Returns `budget_note`: how to continue from this page, and how much more fits. */
  pageNote(facts: NoteFacts, options: NoteOptions): string | undefined;
  /** Learns from a page of a tool what its items cost. */
  observe(toolName: string, page: MeasuredPage): void;
  /** Returns the tools' definitions. They are the same from call to call unless the mode is `schema`. */
  schemas(): readonly ToolSchema[];
  /** Adds the defaults that the definitions advertise to the arguments of a call. */
  withDefaults(toolName: string, args: ToolArguments): ToolArguments;
  measured(): Readonly<Record<string, Measured>>;
  /** Continues with other measurements. */
  restore(measured: Readonly<Record<string, Measured>>): void;
}

export interface NoteOptions {
  /** The tool whose result is on the page. */
  readonly origin: string;
  /** Whether the tool itself was called. Otherwise the page was asked for with a token. */
  readonly isDirectCall: boolean;
  /** The most tokens that the caller asked for. */
  readonly maxTokens: number | undefined;
  /** The name of the tool that takes tokens. */
  readonly nextPageName: string;
}

type HintedTool = Pick<BudgetedTool, "name" | "itemTokens" | "itemUnit">;
type MeasuredPage = Pick<NoteFacts, "items" | "itemTokens">;

interface HintOptions {
  readonly mode: HintMode;
  readonly tools: ReadonlyMap<string, BudgetedTool>;
  readonly ledger: Ledger;
  /** Returns the tokens that the next call of a tool will get, if `further` tokens are recorded before. */
  expected(toolName: string, further?: number): number;
  readonly measured: Readonly<Record<string, Measured>>;
}

export function createHints({ mode, tools, ledger, expected, measured: before }: HintOptions): Hints {
  let measured = new Map(Object.entries(before));
  const seen = (tool: HintedTool): Measured => measured.get(tool.name) ?? nothing;
  // For a tool that is not ours, the page is all that is known.
  const hintedTool = (name: string): HintedTool => tools.get(name) ?? { name, itemTokens: 50, itemUnit: "items" };
  const allowed = (tool: HintedTool, page: Measured = nothing): number => {
    const tokens = expected(tool.name, page.tokens);
    return Math.max(1, Math.floor(tokens / tokensPerUnit(tool, add(seen(tool), page))));
  };
  // Then the model should not ask for more.
  const isShort = (further = 0): boolean => ledger.available() - further < ledger.limits.warningThreshold * silentShare;
  const sentence = (tool: HintedTool): string | undefined =>
    isShort() ? undefined : `Current budget allows ~${allowed(tool)} ${tool.itemUnit}.`;
  const sentenceOfMore = (tool: HintedTool, facts: NoteFacts): string | undefined => {
    if (mode === "off" || isShort(facts.itemTokens)) return undefined;
    return `Budget allows ~${allowed(tool, measurePage(facts, tool))} more${unitOf(tool)}.`;
  };
  /** The defaults of the last definitions, by tool. */
  const advertised = new Map<string, number>();
  const advertise = (tool: BudgetedTool): ToolSchema => {
    const count = allowed(tool);
    advertised.set(tool.name, count);
    return hinted(tool, sentence(tool), count);
  };
  return {
    pageNote(facts, options) {
      const { token, cut } = facts;
      const tool = hintedTool(options.origin);
      const first = [leastNote(facts, options), cut && cutNote(cut)];
      if (token === undefined) {
        return join([...first, mode === "note" && options.isDirectCall ? sentence(tool) : undefined]);
      }
      const isMore = cut === undefined && parseToken(token)?.position.at === "items";
      return join([...first, continueNote(token, options), isMore ? sentenceOfMore(tool, facts) : undefined]);
    },
    observe(toolName, page) {
      const tool = hintedTool(toolName);
      measured.set(toolName, add(seen(tool), measurePage(page, tool)));
    },
    schemas: () => [...tools.values()].map(mode === "schema" ? advertise : schemaOf),
    withDefaults(name, args) {
      const { limitParameter } = tools.get(name) ?? {};
      const count = advertised.get(name);
      if (limitParameter === undefined || count === undefined) return args;
      return { ...args, [limitParameter]: args[limitParameter] ?? count };
    },
    measured: () => Object.fromEntries(measured),
    restore(other) {
      measured = new Map(Object.entries(other));
    },
  };
}

const nothing: Measured = { units: 0, tokens: 0 };

/** Below this share of the warning threshold (10,000 of 20,000) the warning asks to finish now, so hints are off. */
const silentShare = 0.5;

/** The number in the tool's table weighs as much as ten measured units. */
const tableUnits = 10;

function tokensPerUnit({ itemTokens }: HintedTool, { units, tokens }: Measured): number {
  return Math.max(1, (itemTokens * tableUnits + tokens) / (tableUnits + units));
}

function add(left: Measured, right: Measured): Measured {
  return { units: left.units + right.units, tokens: left.tokens + right.tokens };
}

/** Without a unit, "more" refers to the items. */
function unitOf({ itemUnit }: HintedTool): string {
  return itemUnit === "KB" ? " KB" : "";
}

function schemaOf({ name, description, inputSchema }: BudgetedTool): ToolSchema {
  return { name, description, inputSchema };
}

/** If little is left, the sentence is absent, but the default still follows the budget. */
function hinted(tool: BudgetedTool, sentence: string | undefined, count: number): ToolSchema {
  const schema = schemaOf(tool);
  const description = join([tool.description, sentence]) ?? "";
  const property = tool.inputSchema.properties[tool.limitParameter ?? ""];
  if (tool.limitParameter === undefined || property === undefined) return { ...schema, description };
  const suggested = {
    ...property,
    description: `${property.description ?? "Most items to return"} (budget suggests: ${count})`,
    default: count,
  };
  const properties = { ...tool.inputSchema.properties, [tool.limitParameter]: suggested };
  return { ...schema, description, inputSchema: { ...tool.inputSchema, properties } };
}

/** Measures a page in the unit of the tool's hints. */
function measurePage({ items, itemTokens }: MeasuredPage, { itemUnit }: HintedTool): Measured {
  const units = itemUnit === "KB" ? JSON.stringify(items).length / 1_024 : items.length;
  return { units, tokens: itemTokens };
}

/** Explains why a page is larger than asked for. */
function leastNote(facts: NoteFacts, { maxTokens = leastAllocation }: NoteOptions): string | undefined {
  const isRaised = maxTokens < leastAllocation && (facts.token !== undefined || facts.itemTokens > maxTokens);
  return isRaised ? `The smallest budget is ${leastAllocation}.` : undefined;
}

function continueNote(token: string, { origin, isDirectCall, nextPageName }: NoteOptions): string {
  const { id, position } = parseToken(token) ?? {};
  if (position?.at === "fields" && position.from === 0)
    return `Fields are left out: use ${nextPageName} with token ${token} to get them.`;
  const offset = position?.at === "items" ? position.offset : undefined;
  if (offset !== undefined && isDirectCall) return `Use offset=${offset} to continue.`;
  if (offset !== undefined && id === undefined) return `Call ${origin} with offset=${offset} to continue.`;
  return `Use ${nextPageName} with token ${token} to continue.`;
}

function cutNote({ item, from, to, length }: Cut): string {
  const what = item === undefined ? "The fields" : `Item ${item}`;
  return `${what}: characters ${from} to ${to} of ${length}, too large for one page.`;
}

function join(sentences: readonly (string | undefined)[]): string | undefined {
  const told = sentences.filter((sentence) => sentence !== undefined);
  return told.length === 0 ? undefined : told.join(" ");
}
