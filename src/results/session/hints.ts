/** Tells the model how much the next call can return, so that it asks for that much. */
import { leastAllocation } from "../../core/budget/index.ts";
import type { BudgetedTool, JsonProperty, ToolArguments } from "./budgeted-tool.ts";
import { parseToken } from "./continuations.ts";
import type { Cut } from "./envelope.ts";
import type { Ledger } from "./ledger.ts";
import type { NoteFacts } from "./render-page.ts";
import type { Measured } from "./session-record.ts";

/** Where hints are shown. `schema`: in the tools' definitions, which breaks the provider's prompt cache. `note`: in
 *  each result. */
export type HintMode = "schema" | "note" | "off";

export type ToolDefinition = Pick<BudgetedTool, "name" | "description" | "inputSchema">;

/** A tool's definition, in a form that the types of SDKs take. */
export interface ToolSchema {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: {
    type: "object";
    properties: Record<string, JsonProperty>;
    required?: string[];
    additionalProperties?: boolean;
  };
}

export interface Hints {
  /** Returns `budget_note`: how to continue from this page, and how much more fits. */
  pageNote(facts: NoteFacts, options: NoteOptions): string | undefined;
  /** Learns from a page of a tool what its items cost. */
  observe(toolName: string, page: Pick<NoteFacts, "items" | "itemTokens">): void;
  /** Returns the tools' definitions. They are the same from call to call unless the mode is `schema`. */
  schemas(): ToolSchema[];
  /** Adds the defaults that the definitions advertise to the arguments of a call. */
  withDefaults(toolName: string, args: ToolArguments): ToolArguments;
  measured(): Readonly<Record<string, Measured>>;
  /** Continues with other measurements. */
  restore(measured: Readonly<Record<string, Measured>>): void;
}

interface NoteOptions {
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

export function createHints(settings: {
  readonly mode: HintMode;
  readonly tools: ReadonlyMap<string, BudgetedTool>;
  readonly ledger: Ledger;
  /** Returns the tokens that the next call of a tool will get, if `further` tokens are recorded before. */
  expected(toolName: string, further?: number): number;
  readonly measured: Readonly<Record<string, Measured>>;
}): Hints {
  const { mode, tools, ledger, expected, measured: before } = settings;
  let measured = new Map(Object.entries(before));
  const nothing: Measured = { units: 0, tokens: 0 };
  const seen = (tool: HintedTool): Measured => measured.get(tool.name) ?? nothing;
  // For a tool that is not ours, the page is all that is known.
  const hintedTool = (name: string): HintedTool => tools.get(name) ?? { name, itemTokens: 50, itemUnit: "items" };
  const allowed = (tool: HintedTool, page: Measured = nothing): number => {
    const { units, tokens } = addMeasures(seen(tool), page);
    // The number in the tool's table weighs as much as ten measured units.
    const unitTokens = Math.max(1, (tool.itemTokens * 10 + tokens) / (10 + units));
    return Math.max(1, Math.floor(expected(tool.name, page.tokens) / unitTokens));
  };
  // Below half of the warning threshold (10,000 of 20,000) hints are off: the warning asks for less.
  const isShort = (further = 0): boolean => ledger.available() - further < ledger.limits.warningThreshold * 0.5;
  const sentence = (tool: HintedTool): string | undefined =>
    isShort() ? undefined : `Current budget allows ~${allowed(tool)} ${tool.itemUnit}.`;
  const sentenceOfMore = (tool: HintedTool, facts: NoteFacts): string | undefined => {
    if (mode === "off" || isShort(facts.itemTokens)) return undefined;
    // Without a unit, "more" refers to the items.
    return `Budget allows ~${allowed(tool, measurePage(facts, tool))} more${tool.itemUnit === "KB" ? " KB" : ""}.`;
  };
  /** The defaults of the last definitions, by tool. */
  const advertised = new Map<string, number>();
  const advertise = (tool: BudgetedTool): ToolSchema => {
    const hinted = { ...createSchema(tool), description: joinSentences([tool.description, sentence(tool)]) ?? "" };
    // The number in the tool's table is a guess. A first result that fits is not cut because of it.
    if (seen(tool).units === 0) return hinted;
    const count = allowed(tool);
    advertised.set(tool.name, count);
    return addDefault(hinted, tool.limitParameter, count);
  };
  return {
    pageNote(facts, options) {
      const { token, cut } = facts;
      const tool = hintedTool(options.origin);
      // Explains why a page is larger than asked for.
      const { maxTokens = leastAllocation } = options;
      const isRaised = maxTokens < leastAllocation && (facts.token !== undefined || facts.itemTokens > maxTokens);
      const first = [isRaised ? `The smallest budget is ${leastAllocation}.` : undefined, cut && describeCut(cut)];
      if (token === undefined) {
        return joinSentences([...first, mode === "note" && options.isDirectCall ? sentence(tool) : undefined]);
      }
      const isMore = cut === undefined && parseToken(token)?.position.at === "items";
      return joinSentences([
        ...first,
        explainContinuation(token, options),
        isMore ? sentenceOfMore(tool, facts) : undefined,
      ]);
    },
    observe(toolName, page) {
      const tool = hintedTool(toolName);
      measured.set(toolName, addMeasures(seen(tool), measurePage(page, tool)));
    },
    schemas: () => [...tools.values()].map(mode === "schema" ? advertise : createSchema),
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

function addMeasures(left: Measured, right: Measured): Measured {
  return { units: left.units + right.units, tokens: left.tokens + right.tokens };
}

/** A copy, because SDKs take schemas that can be changed. */
function createSchema({ name, description, inputSchema }: BudgetedTool): ToolSchema {
  return { name, description, inputSchema: structuredClone(inputSchema) as ToolSchema["inputSchema"] };
}

function addDefault(schema: ToolSchema, limitParameter: string | undefined, count: number): ToolSchema {
  const property = schema.inputSchema.properties[limitParameter ?? ""];
  if (limitParameter === undefined || property === undefined) return schema;
  const suggested = {
    ...property,
    description: `${property.description ?? "Most items to return"} (budget suggests: ${count})`,
    default: count,
  };
  const properties = { ...schema.inputSchema.properties, [limitParameter]: suggested };
  return { ...schema, inputSchema: { ...schema.inputSchema, properties } };
}

/** Measures a page in the unit of the tool's hints. */
function measurePage(
  { items, itemTokens }: Pick<NoteFacts, "items" | "itemTokens">,
  { itemUnit }: HintedTool,
): Measured {
  const units = itemUnit === "KB" ? JSON.stringify(items).length / 1_024 : items.length;
  return { units, tokens: itemTokens };
}

function explainContinuation(token: string, { origin, isDirectCall, nextPageName }: NoteOptions): string {
  const { id, position } = parseToken(token) ?? {};
  if (position?.at === "fields" && position.from === 0)
    return `Fields are left out: use ${nextPageName} with token ${token} to get them.`;
  const offset = position?.at === "items" ? position.offset : undefined;
  if (offset !== undefined && isDirectCall) return `Use offset=${offset} to continue.`;
  if (offset !== undefined && id === undefined) return `Call ${origin} with offset=${offset} to continue.`;
  return `Use ${nextPageName} with token ${token} to continue.`;
}

function describeCut({ item, from, to, length }: Cut): string {
  const what = item === undefined ? "The fields" : `Item ${item}`;
  return `${what}: characters ${from} to ${to} of ${length}, too large for one page.`;
}

function joinSentences(sentences: readonly (string | undefined)[]): string | undefined {
  const present = sentences.filter((sentence) => sentence !== undefined);
  return present.length === 0 ? undefined : present.join(" ");
}
