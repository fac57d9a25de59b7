/** Tools as a session sees them. A tool returns its items lazily, and the session decides how many it delivers now. */

import { leastAllocation } from "../../core/budget/index.ts";
import { didYouMean, shorten } from "../../core/text/index.ts";
import type { PageData } from "./envelope.ts";
import type { Compressor } from "./log-entry.ts";

/** A tool that a session can run. */
export interface BudgetedTool<Name extends string = string> {
  readonly name: Name;
  /** What the model reads about the tool. */
  readonly description: string;
  /** The parameters. Include `budget` (tokens) and `offset` (items) next to the tool's own. */
  readonly inputSchema: JsonSchema;
  /** The tokens that one unit costs, used until the session has measured real results. */
  readonly itemTokens: number;
  /** The unit of hints, such as "files with metadata". With "KB", hints measure the text instead of counting items. */
  readonly itemUnit: string;
  /** The parameter that limits the number of items, such as `max_files`. Hints in schemas set its default. */
  readonly limitParameter?: string | undefined;
  /** Summarizes a result for the work log. */
  readonly compress: Compressor;
  /** Returns a page as compact text, for sessions with `format: "text"`. Without it, each item is a line of JSON. */
  readonly renderText?: ((page: PageData) => string) | undefined;
  /** Returns the result from the argument `offset` on, or a failure. */
  run(args: ToolArguments, call: ToolCall): Promise<ToolResult | ToolFailure>;
}

/** The arguments of a call, by parameter name. */
export type ToolArguments = Readonly<Record<string, unknown>>;

/** How a session calls a tool. */
export interface ToolCall {
  readonly signal: AbortSignal;
  readonly timeoutMs?: number | undefined;
}

/** What a tool returns: facts about the result, and its items from `offset` on. Functions in it are called after the
 *  items were read. */
export interface ToolResult {
  /** Facts that are shown before the items, such as `{ root, project_type }`. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** The name of the list of items, such as `files` or `matches`. */
  readonly itemsName: string;
  /** The items. The session reads as many as the page needs, then calls the iterator's `return`. */
  readonly items: AsyncIterable<unknown> | Iterable<unknown>;
  /** The place of the first item in the whole result, counted from 0. */
  readonly offset: number;
  /** The number of items of the whole result, if known. */
  readonly total?: number | (() => number | undefined) | undefined;
  /** Whether items follow although the iteration ended, as with a maximum that the caller set. Not needed with
   *  `total`. */
  readonly more?: boolean | (() => boolean) | undefined;
  /** A text that changes with the underlying data. If it differs between two pages, the page has a warning. */
  readonly version?: string | undefined;
  /** What the model should know about the result. */
  readonly warnings?: readonly string[] | (() => readonly string[]) | undefined;
}

/** Why a tool has no result. The model reads it. */
export interface ToolFailure {
  /** A short code such as `not_found`. */
  readonly code: string;
  /** What happened. */
  readonly message: string;
  /** What to do about it. */
  readonly hint?: string | undefined;
}

/** The JSON Schema of a tool's parameters. */
export interface JsonSchema {
  readonly type: "object";
  readonly properties: Readonly<Record<string, JsonProperty>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean;
}

export interface JsonProperty {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly default?: unknown;
  readonly [keyword: string]: unknown;
}

export function isFailure(outcome: object): outcome is ToolFailure {
  return "code" in outcome && "message" in outcome;
}

/** One parameter of a tool. The JSON Schema that a model reads and the check of its arguments come from the same
 *  table. */
export interface ToolParameter {
  readonly type: "string" | "integer" | "boolean";
  readonly description: string;
  readonly default?: string | number | boolean;
  /** The values that a string can have. */
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly required?: true;
}

export type ToolParameters = Readonly<Record<string, ToolParameter>>;

/** The checked arguments, by parameter name. */
export type ParameterValues<P extends ToolParameters> = {
  readonly [Name in keyof P]:
    | (P[Name] extends { enum: readonly (infer Choice)[] }
        ? Choice
        : { string: string; integer: number; boolean: boolean }[P[Name]["type"]])
    | (P[Name] extends { required: true } | { default: string | number | boolean } ? never : undefined);
};

/** The parameter `budget` of every call that returns a page. */
export const budgetParameter: ToolParameter & { readonly type: "integer" } = {
  type: "integer",
  description: `Most tokens of this page: at least ${leastAllocation}, at most the session's share for one call.`,
  minimum: 1,
};

/** Checks the arguments of a call. An unknown name is an error: if a filter were ignored, the model would pay for a
 *  page that it did not ask for. */
export function readArguments<P extends ToolParameters>(
  parameters: P,
  args: ToolArguments,
): { readonly values: ParameterValues<P> } | { readonly failure: ToolFailure } {
  for (const [name, value] of Object.entries(args)) {
    const problem = Object.hasOwn(parameters, name)
      ? checkValue(name, value, parameters[name] as ToolParameter)
      : explainUnknown(name, Object.keys(parameters));
    if (problem !== undefined) return { failure: problem };
  }
  const missing = Object.keys(parameters).find((name) => parameters[name]?.required && isAbsent(args[name]));
  if (missing !== undefined) {
    return { failure: { ...createFailure(`${missing} is missing.`), hint: parameters[missing]!.description } };
  }
  const values = Object.entries(parameters).map(([name, parameter]) => [
    name,
    isAbsent(args[name]) ? parameter.default : convertValue(args[name], parameter),
  ]);
  return { values: Object.fromEntries(values) as ParameterValues<P> };
}

export function createInputSchema(parameters: ToolParameters): JsonSchema {
  const entries = Object.entries(parameters);
  const required = entries.filter(([, parameter]) => parameter.required).map(([name]) => name);
  const properties = entries.map(([name, { required: _, ...property }]) => [name, property]);
  return {
    type: "object",
    properties: Object.fromEntries(properties),
    ...(required.length > 0 ? { required } : {}),
    additionalProperties: false,
  };
}

/** Several models send null for parameters that they leave out. */
function isAbsent(value: unknown): boolean {
  return value === undefined || value === null;
}

function checkValue(name: string, value: unknown, parameter: ToolParameter): ToolFailure | undefined {
  if (isAbsent(value)) return undefined;
  const plain = convertValue(value, parameter);
  if (plain === undefined) {
    const given = shorten(JSON.stringify(value) ?? typeof value, maxQuoted);
    return createFailure(`${name} is ${given}, but must be ${describeAllowed(parameter)}.`);
  }
  if (plain === "" && parameter.required) return createFailure(`${name} is empty.`);
  if (typeof plain !== "string") return undefined;
  if (plain.includes("\0")) return createFailure(`${name} contains a NUL byte.`);
  return plain.length > maxCharacters
    ? createFailure(`${name} has ${plain.length} characters, more than ${maxCharacters}.`)
    : undefined;
}

/** Arguments can end up on a command line. Linux limits one argument to 128 KB (MAX_ARG_STRLEN). */
const maxCharacters = 10_000;
/** Characters of a name or a value in a message. */
const maxQuoted = 60;

function explainUnknown(name: string, known: readonly string[]): ToolFailure {
  const quoted = shorten(name, maxQuoted);
  const guess = didYouMean(quoted, known);
  const message = `Unknown parameter ${JSON.stringify(quoted)}.${guess === undefined ? "" : ` ${guess}`}`;
  return { ...createFailure(message), hint: `Known: ${known.join(", ")}.` };
}

function createFailure(message: string): ToolFailure {
  return { code: "invalid_argument", message };
}

/** Several models send numbers and booleans as strings. */
function convertValue(value: unknown, parameter: ToolParameter): string | number | boolean | undefined {
  const { type, enum: choices } = parameter;
  if (type === "string") return typeof value === "string" && (choices?.includes(value) ?? true) ? value : undefined;
  if (type === "integer") return convertNumber(value, parameter);
  if (value === "true" || value === "false") return value === "true";
  return typeof value === "boolean" ? value : undefined;
}

function convertNumber(value: unknown, { minimum = 0, maximum }: ToolParameter): number | undefined {
  const number = typeof value === "string" && /^\d{1,15}$/.test(value) ? Number(value) : value;
  if (typeof number !== "number" || !Number.isSafeInteger(number)) return undefined;
  return number >= minimum && number <= (maximum ?? number) ? number : undefined;
}

function describeAllowed({ type, minimum = 0, maximum, enum: choices }: ToolParameter): string {
  if (choices !== undefined) return choices.join(" or ");
  if (type === "integer") return `a whole number from ${minimum}${maximum === undefined ? "" : ` to ${maximum}`}`;
  return type === "boolean" ? "true or false" : "a string";
}
