/** What a tool takes, once: the JSON Schema that a model reads and the check of what it sends are made from one table. */
import type { JsonSchema, ToolArguments, ToolFailure } from "../../session/index.ts";
import { didYouMean } from "../../text/index.ts";
import { failure } from "./failure.ts";

export interface Parameter {
  readonly type: "string" | "integer" | "boolean";
  readonly description: string;
  readonly default?: string | number | boolean;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly required?: true;
}

export type Parameters = Readonly<Record<string, Parameter>>;

/** The checked values, by the parameters' names. */
export type Values<P extends Parameters> = { readonly [Name in keyof P]: Value<P[Name]> };

type Value<P extends Parameter> = P extends { required: true } | { default: string | number | boolean }
  ? Plain[P["type"]]
  : Plain[P["type"]] | undefined;

interface Plain {
  string: string;
  integer: number;
  boolean: boolean;
}

export type ReadArguments<P extends Parameters> =
  | { readonly values: Values<P> }
  | { readonly failure: ToolFailure };

/** An unknown name fails: a filter that was silently ignored would cost a page of what nobody asked for. */
export function readArguments<P extends Parameters>(parameters: P, args: ToolArguments): ReadArguments<P> {
  for (const [name, value] of Object.entries(args)) {
    const problem = Object.hasOwn(parameters, name)
      ? problemOf(name, value, parameters[name] as Parameter)
      : unknownProblem(name, Object.keys(parameters));
    if (problem !== undefined) return { failure: problem };
  }
  const missing = Object.keys(parameters).find((name) => parameters[name]?.required && isAbsent(args[name]));
  if (missing !== undefined) return { failure: failure("invalid_argument", `${missing} is missing.`) };
  const values = Object.entries(parameters).map(([name, parameter]) => [
    name,
    isAbsent(args[name]) ? parameter.default : plainValue(args[name], parameter),
  ]);
  return { values: Object.fromEntries(values) };
}

export function schemaOf(parameters: Parameters): JsonSchema {
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

function problemOf(name: string, value: unknown, parameter: Parameter): ToolFailure | undefined {
  if (isAbsent(value)) return undefined;
  const plain = plainValue(value, parameter);
  if (plain === undefined) {
    const given = JSON.stringify(value)?.slice(0, 60) ?? typeof value;
    return failure("invalid_argument", `${name} is ${given}, and must be ${wanted(parameter)}.`);
  }
  if (plain === "" && parameter.required) return failure("invalid_argument", `${name} is empty.`);
  if (typeof plain !== "string") return undefined;
  if (plain.includes("\0")) return failure("invalid_argument", `${name} holds a NUL byte.`);
  return plain.length > mostCharacters
    ? failure(
        "invalid_argument",
        `${name} has ${plain.length} characters, and ${mostCharacters} are the most.`,
      )
    : undefined;
}

/** A process cannot be started with an argument of 128 KB (Linux, MAX_ARG_STRLEN). */
const mostCharacters = 10_000;

function unknownProblem(name: string, known: readonly string[]): ToolFailure {
  const shown = name.slice(0, 60);
  const guess = didYouMean(shown, known);
  return failure(
    "invalid_argument",
    `Unknown parameter ${JSON.stringify(shown)}.${guess === undefined ? "" : ` ${guess}`}`,
    `Known: ${known.join(", ")}.`,
  );
}

/** Several models send numbers and booleans as strings. */
function plainValue(value: unknown, parameter: Parameter): string | number | boolean | undefined {
  if (parameter.type === "string") return typeof value === "string" ? value : undefined;
  if (parameter.type === "integer") return wholeNumber(value, parameter);
  if (value === "true" || value === "false") return value === "true";
  return typeof value === "boolean" ? value : undefined;
}

function wholeNumber(value: unknown, { minimum = 0, maximum }: Parameter): number | undefined {
  const number = typeof value === "string" && /^\d{1,15}$/.test(value) ? Number(value) : value;
  if (typeof number !== "number" || !Number.isSafeInteger(number)) return undefined;
  return number >= minimum && number <= (maximum ?? number) ? number : undefined;
}

function wanted({ type, minimum = 0, maximum }: Parameter): string {
  if (type === "integer")
    return `a whole number from ${minimum}${maximum === undefined ? "" : ` to ${maximum}`}`;
  return type === "boolean" ? "true or false" : "a string";
}
