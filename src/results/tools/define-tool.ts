import {
  type BudgetedTool,
  budgetParameter,
  type CompressInput,
  createInputSchema,
  isFailure,
  type PageData,
  type ParameterValues,
  readArguments,
  type ToolFailure,
  type ToolParameters,
  type ToolResult,
} from "../session/index.ts";
import { failure, type Run, startRun, type ToolPlace } from "./run.ts";

interface ToolDefinition<Name extends ToolName, P extends ToolParameters> {
  readonly name: Name;
  readonly description: string;
  /** Without `offset` and `budget`, which every tool has. */
  readonly parameters: P;
  readonly limitParameter?: keyof P & string;
  compress(input: CompressInput): string;
  renderText(page: PageData): string;
  run(values: ParameterValues<P & typeof pageParameters>, run: Run): Promise<ToolAnswer>;
}

/** What a tool returns: a result, or why there is none. */
export type ToolAnswer = ToolResult | ToolFailure;

const pageParameters = {
  offset: {
    type: "integer",
    description: "Items to skip: the number after `offset:` in a continuation_token. next_page needs only the token.",
    default: 0,
    minimum: 0,
  },
  budget: budgetParameter as typeof budgetParameter,
} as const;

/** Defines a tool that checks its arguments, has a time limit, and never throws because of the tree or the call. */
export function defineTool<Name extends ToolName, const P extends ToolParameters>(
  definition: ToolDefinition<Name, P>,
): (place: ToolPlace) => BudgetedTool<Name> {
  const { name, description, limitParameter } = definition;
  const parameters = { ...definition.parameters, ...pageParameters };
  return (place) => ({
    name,
    description,
    inputSchema: createInputSchema(parameters),
    ...itemHints[name],
    limitParameter,
    compress: definition.compress,
    renderText: definition.renderText,
    run: async (args, call) => {
      const read = readArguments(parameters, args);
      if ("failure" in read) return read.failure;
      const run = startRun(place, call);
      const result = await definition.run(read.values, run).catch((error: unknown) => {
        run.finish();
        throw error;
      });
      if (call.signal.aborted) return failure("cancelled", `${name} was cancelled.`);
      // Ends the call when its items were read, or when the reader stops.
      if (!isFailure(result) && Symbol.asyncIterator in result.items) {
        return { ...result, items: finishAfter(result.items, run) };
      }
      run.finish();
      return result;
    },
  });
}

async function* finishAfter(items: AsyncIterable<unknown>, run: Run): AsyncGenerator<unknown> {
  try {
    yield* items;
  } finally {
    run.finish();
  }
}

/** The names of the tools that read a project. */
export type ToolName =
  | "project_files"
  | "search_content"
  | "read_file"
  | "vcs_log"
  | "vcs_diff"
  | "vcs_status"
  | "vcs_blame";

/** Tokens that one unit of a tool's result costs until a session has measured its own results. Six numbers are those of
 *  Efrit's budget hints (2025-11-25). The one of vcs_status is ours: an entry is a path and a word. */
const itemHints: Readonly<Record<ToolName, { itemTokens: number; itemUnit: string }>> = {
  project_files: { itemTokens: 100, itemUnit: "files with metadata" },
  search_content: { itemTokens: 200, itemUnit: "matches with context" },
  read_file: { itemTokens: 285, itemUnit: "KB" },
  vcs_log: { itemTokens: 150, itemUnit: "commits" },
  vcs_diff: { itemTokens: 285, itemUnit: "KB" },
  vcs_status: { itemTokens: 30, itemUnit: "changed files" },
  vcs_blame: { itemTokens: 50, itemUnit: "lines" },
};

/** The part of a long list that one call may need. All items are counted, but only a few are kept. */
export interface Window<Item> {
  /** Offers the next item. `make` is called only if the item is kept. */
  offer(make: () => Item, characters?: number): void;
  readonly items: readonly Item[];
  /** Returns the number of offered items. */
  total(): number;
  /** Returns whether items after the kept ones were offered. */
  more(): boolean;
}

/** Ten times the largest page of a known client (Claude Code: 25,000 tokens). */
const maxTotalCharacters = 1_000_000;

export function createWindow<Item>(options: {
  readonly offset: number;
  readonly limit?: number | undefined;
  /** The most characters of the kept items. At least one item is kept, however long it is. */
  readonly maxCharacters?: number | undefined;
}): Window<Item> {
  const { offset, limit = Number.POSITIVE_INFINITY, maxCharacters = maxTotalCharacters } = options;
  const items: Item[] = [];
  let offered = 0;
  let characters = 0;
  let full = false;
  return {
    offer: (make, size = 0) => {
      offered++;
      if (offered <= offset || full) return;
      // Once full, the window stays full, so that the kept items have no gaps.
      full =
        items.length >= limit || (items.length > 0 && characters + size > Math.min(maxCharacters, maxTotalCharacters));
      if (full) return;
      items.push(make());
      characters += size;
    },
    items,
    total: () => offered,
    more: () => offered > offset + items.length,
  };
}

/** The fields of a result that its window decides. If time is up, nobody knows whether there is more. */
export function describeWindow<Item>(
  window: Window<Item>,
  run: Run,
): Pick<ToolResult, "total" | "more"> & { readonly items: readonly Item[] } {
  const late = run.timedOut();
  return { items: window.items, total: late ? undefined : window.total(), more: late || window.more() };
}
