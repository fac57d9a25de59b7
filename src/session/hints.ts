/** Tells the model how much the next call may bring, so that it can ask for that. */
import type { Ledger } from "../budget/index.ts";
import type { Measured } from "./state/session-record.ts";
import type { BudgetedTool, JsonSchema } from "./tool/budgeted-tool.ts";

/** `schema`: in the tools' definitions, which breaks the provider's prompt cache. `note`: in each result. */
export type HintMode = "schema" | "note" | "off";

export interface ToolSchema {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
}

export interface Hints {
  /** "Current budget allows ~200 files with metadata.", in the mode `note`. */
  note(tool: HintedTool): string | undefined;
  /** "Budget allows ~100 more.", unless hints are off. */
  noteOfMore(tool: HintedTool, page: Measured): string | undefined;
  /** Without hints in them they are the same from call to call. */
  schemas(tools: readonly BudgetedTool[]): readonly ToolSchema[];
  observe(tool: HintedTool, page: Measured): void;
  measured(): Readonly<Record<string, Measured>>;
}

export type HintedTool = Pick<BudgetedTool, "name" | "itemTokens" | "itemUnit">;

export interface HintOptions {
  readonly mode: HintMode;
  readonly ledger: Ledger;
  /** What the next call of a tool will get. */
  expected(toolName: string): number;
  readonly measured: Readonly<Record<string, Measured>>;
}

export function createHints({ mode, ledger, expected, measured: before }: HintOptions): Hints {
  const measured = new Map(Object.entries(before));
  const seen = (tool: HintedTool): Measured => measured.get(tool.name) ?? nothing;
  // Undefined where nobody should be encouraged to ask for more.
  const allowedBy = (tool: HintedTool, page: Measured): number | undefined => {
    const free = ledger.available();
    if (free < ledger.limits.warningThreshold * silentShare) return undefined;
    const tokens = Math.min(expected(tool.name), free);
    return Math.max(1, Math.floor(tokens / tokensPerUnit(tool, page)));
  };
  const allowed = (tool: HintedTool): number | undefined => allowedBy(tool, seen(tool));
  const sentence = (tool: HintedTool): string | undefined => {
    const count = allowed(tool);
    return count === undefined ? undefined : `Current budget allows ~${count} ${tool.itemUnit}.`;
  };
  return {
    note: (tool) => (mode === "note" ? sentence(tool) : undefined),
    noteOfMore(tool, page) {
      const count = mode === "off" ? undefined : allowedBy(tool, add(seen(tool), page));
      return count === undefined ? undefined : `Budget allows ~${count} more${unitOf(tool)}.`;
    },
    schemas: (tools) =>
      tools.map((tool) => (mode === "schema" ? hinted(tool, sentence(tool), allowed(tool)) : schemaOf(tool))),
    observe: (tool, page) => measured.set(tool.name, add(seen(tool), page)),
    measured: () => Object.fromEntries(measured),
  };
}

const nothing: Measured = { units: 0, tokens: 0 };

/** With less than this share of the warning threshold available (5,000 of 20,000) no hint invites to read on. */
const silentShare = 0.25;

/** The table's figure counts as much as ten units that were seen. */
const tableUnits = 10;

function tokensPerUnit({ itemTokens }: HintedTool, { units, tokens }: Measured): number {
  return Math.max(1, (itemTokens * tableUnits + tokens) / (tableUnits + units));
}

function add(left: Measured, right: Measured): Measured {
  return { units: left.units + right.units, tokens: left.tokens + right.tokens };
}

/** Other units are the items that "more" speaks of. */
function unitOf({ itemUnit }: HintedTool): string {
  return itemUnit === "KB" ? " KB" : "";
}

function schemaOf({ name, description, inputSchema }: BudgetedTool): ToolSchema {
  return { name, description, inputSchema };
}

function hinted(tool: BudgetedTool, sentence: string | undefined, count: number | undefined): ToolSchema {
  const schema = schemaOf(tool);
  if (sentence === undefined || count === undefined) return schema;
  const description = `${tool.description} ${sentence}`;
  const property = tool.inputSchema.properties[tool.limitParameter ?? ""];
  if (tool.limitParameter === undefined || property === undefined) return { ...schema, description };
  const suggested = {
    ...property,
    description: `${property.description ?? "Limit of what is returned"} (budget suggests: ${count})`,
    default: count,
  };
  const properties = { ...tool.inputSchema.properties, [tool.limitParameter]: suggested };
  return { ...schema, description, inputSchema: { ...tool.inputSchema, properties } };
}
