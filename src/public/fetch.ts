/** Keeps the requests of any SDK that takes a `fetch` within the context window. */
export {
  type BudgetedFetchOptions,
  budgetedFetch,
  type CallEvent,
  type CallSummary,
  type RecallTool,
  recallTool,
  type TrimEvent,
} from "../conversation/sdk/fetch.ts";
