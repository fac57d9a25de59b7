/** Keeps the requests of any SDK that takes a `fetch` within the context window. */
export {
  type BreakpointMode,
  type BudgetedFetchOptions,
  budgetedFetch,
  type RecallSource,
  type RecallTool,
  recallTool,
  type TrimEvent,
} from "../integrations/fetch.ts";
