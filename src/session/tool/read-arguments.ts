/** What a tool takes, once: the JSON Schema that a model reads and the check of what it sends are made from one table. */
import { leastAllocation } from "../../budget/index.ts";
import { didYouMean, shorten } from "../../text/index.ts";
import type { JsonSchema, ToolArguments, ToolFailure } from "./budgeted-tool.ts";

export interface ToolParameter {
  readonly type: "string" | "integer" | "boolean";
  readonly description: string;
  readonly default?: string | number | boolean;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly required?: true;
}

export type ToolParameters = Readonly<Record<string, ToolParameter>>;

/** The checked values, by the parameters' names. */
export type ParameterValues<P extends ToolParameters> = { readonly [Name in keyof P]: Value<P[Name]> };

type Value<P extends ToolParameter> = P extends { required: true } | { default: string | number | boolean }
  ? Plain[P["type"]]
  : Plain[P["type"]] | undefined;

interface Plain {
  string: string;
  integer: number;
  boolean: boolean;
}

export type ReadArguments<P extends ToolParameters> =
  | { readonly values: ParameterValues<P> }
  | { readonly failure: ToolFailure };

/** Taken by whatever gives a page. */
export const budgetParameter: ToolParameter & { readonly type: "integer" } = {
  type: "integer",
  description: `Tokens that this page may take: ${leastAllocation} at least, and never more than the session allots to one call.`,
  minimum: 1,
};

/** An unknown name fails: a filter that was silently ignored would cost a page of what nobody asked for. */
export function readArguments<P extends ToolParameters>(
  parameters: P,
  args: ToolArguments,
): ReadArguments<P> {
  for (const [name, value] of Object.entries(args)) {
    const problem = Object.hasOwn(parameters, name)
      ? problemOf(name, value, parameters[name] as ToolParameter)
      : unknownProblem(name, Object.keys(parameters));
    if (problem !== undefined) return { failure: problem };
  }
  const missing = Object.keys(parameters).find((name) => parameters[name]?.required && isAbsent(args[name]));
  if (missing !== undefined) {
    return { failure: { ...wrong(`${missing} is missing.`), hint: parameters[missing]!.description } };
  }
  const values = Object.entries(parameters).map(([name, parameter]) => [
    name,
    isAbsent(args[name]) ? parameter.default : plainValue(args[name], parameter),
  ]);
  return { values: Object.fromEntries(values) };
}

export function inputSchemaOf(parameters: ToolParameters): JsonSchema {
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

/** Several models send null for what they leave out. */
function isAbsent(value: unknown): boolean {
  return value === undefined || value === null;
}

function problemOf(name: string, value: unknown, parameter: ToolParameter): ToolFailure | undefined {
  if (isAbsent(value)) return undefined;
  const plain = plainValue(value, parameter);
  if (plain === undefined) {
    const given = shorten(JSON.stringify(value) ?? typeof value, mostShown);
    return wrong(`${name} is ${given}, and must be ${wanted(parameter)}.`);
  }
  if (plain === "" && parameter.required) return wrong(`${name} is empty.`);
  if (typeof plain !== "string") return undefined;
  if (plain.includes("\0")) return wrong(`${name} holds a NUL byte.`);
  return plain.length > mostCharacters
    ? wrong(`${name} has ${plain.length} characters, and ${mostCharacters} are the most.`)
    : undefined;
}

/** A process cannot be started with an argument of 128 KB (Linux, MAX_ARG_STRLEN). */
const mostCharacters = 10_000;
/** Of a name or a value in a message. */
const mostShown = 60;

function unknownProblem(name: string, known: readonly string[]): ToolFailure {
  const shown = shorten(name, mostShown);
  const guess = didYouMean(shown, known);
  const message = `Unknown parameter ${JSON.stringify(shown)}.${guess === undefined ? "" : ` ${guess}`}`;
  return { ...wrong(message), hint: `Known: ${known.join(", ")}.` };
}

function wrong(message: string): ToolFailure {
  return { code: "invalid_argument", message };
}

/** Several models send numbers and booleans as strings. */
function plainValue(value: unknown, parameter: ToolParameter): string | number | boolean | undefined {
  if (parameter.type === "string") return typeof value === "string" ? value : undefined;
  if (parameter.type === "integer") return wholeNumber(value, parameter);
  if (value === "true" || value === "false") return value === "true";
  return typeof value === "boolean" ? value : undefined;
}

function wholeNumber(value: unknown, { minimum = 0, maximum }: ToolParameter): number | undefined {
  const number = typeof value === "string" && /^\d{1,15}$/.test(value) ? Number(value) : value;
  if (typeof number !== "number" || !Number.isSafeInteger(number)) return undefined;
  return number >= minimum && number <= (maximum ?? number) ? number : undefined;
}

function wanted({ type, minimum = 0, maximum }: ToolParameter): string {
  if (type === "integer")
    return `a whole number from ${minimum}${maximum === undefined ? "" : ` to ${maximum}`}`;
  return type === "boolean" ? "true or false" : "a string";
}
