import {
  type BudgetedTool,
  budgetParameter,
  type CompressInput,
  inputSchemaOf,
  isFailure,
  type ParameterValues,
  readArguments,
  type ToolFailure,
  type ToolParameters,
  type ToolResult,
} from "../../session/index.ts";
import { failure } from "./failure.ts";
import { itemHints, type ToolName } from "./item-hints.ts";
import { type Place, type Run, startRun } from "./run.ts";

export interface ToolDefinition<P extends ToolParameters> {
  readonly name: ToolName;
  readonly description: string;
  /** Without `offset` and `budget`, which every tool takes. */
  readonly parameters: P;
  readonly limitParameter?: keyof P & string;
  compress(input: CompressInput): string;
  run(values: ToolValues<P>, run: Run): Promise<ToolResult | ToolFailure>;
}

export type ToolValues<P extends ToolParameters> = ParameterValues<P & typeof pageParameters>;

const pageParameters = {
  offset: {
    type: "integer",
    description:
      "Items to skip: the number behind `offset:` in a continuation_token. With next_page the token is enough.",
    default: 0,
    minimum: 0,
  },
  budget: budgetParameter as typeof budgetParameter,
} as const;

/** A tool whose arguments are checked, whose time is limited, and which never throws for what is in the tree or in the call. */
export function defineTool<const P extends ToolParameters>(
  definition: ToolDefinition<P>,
  place: Place,
): BudgetedTool {
  const { name, description, limitParameter } = definition;
  const parameters = { ...definition.parameters, ...pageParameters };
  return {
    name,
    description,
    inputSchema: inputSchemaOf(parameters),
    ...itemHints[name],
    limitParameter,
    compress: definition.compress,
    run: async (args, call) => {
      const read = readArguments(parameters, args);
      if ("failure" in read) return read.failure;
      const run = startRun(place, call);
      const result = await definition.run(read.values, run).catch((error: unknown) => {
        run.finish();
        throw error;
      });
      if (call.signal.aborted) return failure("cancelled", `${name} was cancelled.`);
      return finishAfter(result, run);
    },
  };
}

/** A call is over when its items were read or left. */
function finishAfter(result: ToolResult | ToolFailure, run: Run): ToolResult | ToolFailure {
  if (!isFailure(result) && Symbol.asyncIterator in result.items) {
    return { ...result, items: finishing(result.items, run) };
  }
  run.finish();
  return result;
}

async function* finishing(items: AsyncIterable<unknown>, run: Run): AsyncGenerator<unknown> {
  try {
    yield* items;
  } finally {
    run.finish();
  }
}
