import type { LedgerOptions } from "../budget/index.ts";
import type { Store } from "../store/index.ts";
import type { Counter } from "../tokens/index.ts";
import type { HintMode } from "./hints.ts";
import type { PageLimit } from "./results.ts";
import type { BudgetedTool } from "./tool/budgeted-tool.ts";

export interface SessionOptions {
  /** A session of that id goes on where it was; without one a new session begins. */
  readonly id?: string | undefined;
  /** Sessions that name the same one have their results in common, as conversations side by side about one thing; each its own id unless
   *  told. */
  readonly resultsOf?: string | undefined;
  readonly counter: Counter;
  readonly store: Store;
  readonly now: () => Date;
  readonly budget?: LedgerOptions | undefined;
  readonly tools?: readonly BudgetedTool[] | undefined;
  /** `note` unless told. */
  readonly hints?: HintMode | undefined;
  /** `offset` unless told. */
  readonly continuations?: ContinuationForm | undefined;
  /** Asked for each page: what is known of the client may come later. */
  readonly pageLimit?: (() => PageLimit) | undefined;
  /** How long a call that needs more than its fair share of the tool tier waits for the sizes of the calls beside it; until all are known
   *  unless told. */
  readonly patience?: (() => Promise<void>) | undefined;
  /** What the tool that takes tokens is called, asked for each page; `next_page` unless told. */
  readonly nextPageName?: (() => string) | undefined;
}

/** How a result of our own tools says where it goes on. `offset`: always as `offset:100`, for a program that knows which tool it called.
 *  `unique`: so only where no other call goes on there, else as `r12:offset:100`; `nextPage` takes both. */
export type ContinuationForm = "offset" | "unique";
