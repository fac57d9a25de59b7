/** The tools that MCP adds to whatever it serves: for a page that follows, for an earlier result, for the budget itself. */
import { leastAllocation } from "../budget/index.ts";
import type { JsonSchema, ToolFailure } from "../session/index.ts";

export interface PageTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
}

const budget = {
  type: "integer",
  minimum: 1,
  description: `Tokens that this page may take: ${leastAllocation} at least, and never more than the session allots to one call.`,
} as const;

export const nextPageTool: PageTool = {
  name: "next_page",
  description:
    "Get the next page of a result that was too large for one: pass its continuation_token. Do not repeat the call that gave it.",
  inputSchema: {
    type: "object",
    properties: {
      token: { type: "string", description: "The continuation_token of the page before, as it is." },
      budget,
    },
    required: ["token"],
  },
};

export const recallTool: PageTool = {
  name: "recall",
  description: "Get an earlier result of this session again, from the store, without running its tool.",
  inputSchema: {
    type: "object",
    properties: {
      id: {
        type: "string",
        description: "The id of the result, as budget_status lists it: r42 of a token r42:offset:100.",
      },
      offset: { type: "integer", minimum: 0, description: "Items to skip." },
      budget,
    },
    required: ["id"],
  },
};

export const budgetStatusTool: PageTool = {
  name: "budget_status",
  description:
    "Show how much of the session's token budget is used and left, and what was done so far (result ids for recall).",
  inputSchema: {
    type: "object",
    properties: {
      reset: {
        type: "boolean",
        default: false,
        description: "Begin a new account, as for a new conversation. Results stay recallable.",
      },
    },
  },
};

/** A text that a call must have. */
export function requiredText(value: unknown, tool: PageTool, name: string): string | ToolFailure {
  if (typeof value === "string" && value !== "") return value;
  const message = value === undefined ? `${name} is missing` : `${name} is ${JSON.stringify(value)}`;
  return wrongArgument(message, `${tool.name} takes ${name}: ${describe(tool, name)}`);
}

/** A whole number that a call may have. */
export function optionalCount(value: unknown, name: string, least: number): number | undefined | ToolFailure {
  if (value === undefined || value === null) return undefined;
  if (Number.isSafeInteger(value) && Number(value) >= least) return Number(value);
  return wrongArgument(`${name} is ${JSON.stringify(value)}`, `Use a whole number from ${least}.`);
}

function wrongArgument(message: string, hint: string): ToolFailure {
  return { code: "invalid_argument", message, hint };
}

function describe({ inputSchema }: PageTool, name: string): string {
  return inputSchema.properties[name]?.description ?? "";
}
