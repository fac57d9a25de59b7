/** What the RFC's budget is made of. Wrong values are mistakes in the caller's code and throw at once. */
import { ContextError } from "../../errors.ts";
import { typeName } from "../../messages/index.ts";

export interface BudgetOptions extends ContextManagerOptions, ContextBudget {}

export interface ContextManagerOptions {
  /** Assistant messages at the end that are left alone while the budget allows. Absent: 10. */
  readonly keepLastNAssistantMessages?: number | undefined;
  /** Share of the window, 0 to 1, above which trimming sets in. Absent: 0.8. */
  readonly contextBudgetThreshold?: number | undefined;
}

export interface ContextBudget {
  /** Tokens that messages and tool definitions may take. */
  readonly contextWindow: number;
  /** What the last reduction of this history gave back. */
  readonly metadata?: ContextMetadata | undefined;
  readonly tools?: readonly object[] | undefined;
}

/** Plain JSON of a checkpoint. Keys of others are kept. */
export interface ContextMetadata {
  /** Exclusive end of the trimmed messages, counted after merging. */
  readonly trimmed_up_to_message_index?: number;
  readonly [key: string]: unknown;
}

export type CheckedManagerOptions = { readonly [Key in keyof ContextManagerOptions]-?: number };

export function checkManagerOptions(options: ContextManagerOptions): CheckedManagerOptions {
  const { keepLastNAssistantMessages = 10, contextBudgetThreshold = 0.8 } = fieldsOf(options);
  if (!isWhole(keepLastNAssistantMessages)) {
    reject("keepLastNAssistantMessages", keepLastNAssistantMessages, "a whole number from 0");
  }
  if (!(isTokens(contextBudgetThreshold) && contextBudgetThreshold <= 1)) {
    reject("contextBudgetThreshold", contextBudgetThreshold, "a number from 0 to 1");
  }
  return { keepLastNAssistantMessages, contextBudgetThreshold };
}

/** The boundary that the metadata holds, 0 when it holds none. */
export function checkBudget(budget: ContextBudget): number {
  const { contextWindow, metadata } = fieldsOf(budget);
  if (!isTokens(contextWindow)) reject("contextWindow", contextWindow, "a number of tokens from 0");
  if (metadata === undefined) return 0;
  if (!isObject(metadata)) reject("metadata", metadata, "an object, or left out");
  const { trimmed_up_to_message_index: index = 0 } = metadata;
  if (!isWhole(index)) reject("metadata.trimmed_up_to_message_index", index, "a whole number from 0");
  return index;
}

function fieldsOf<Options extends object>(options: Options): Options {
  return isObject(options) ? options : reject("options", options, "an object");
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isTokens(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function reject(name: string, value: unknown, wanted: string): never {
  const got = typeof value === "number" ? String(value) : typeName(value);
  throw new ContextError("invalid_argument", `${name} must be ${wanted}, not ${got}`);
}
