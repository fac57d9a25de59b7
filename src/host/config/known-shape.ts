/** Reads YAML files that are valid by the JSON Schemas of schemas/, without zod and mostly without yaml. Loading them
 *  takes longer than most commands run, so they are loaded to explain what is wrong. */
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { isPlainObject } from "../../core/text/index.ts";
import { type PlainYaml, readPlainYaml } from "./plain-yaml.ts";

/** The schemas that say all that zod checks. A schema with defaults of its own would not. */
export type ShapeName = "config" | "company" | "pack" | "samples" | "known-errors" | "learning" | "profile";

/** Returns `undefined` if the file is not valid as it is: the caller then reads it with zod. */
export async function readKnownShape<Value>(
  text: string,
  name: ShapeName,
): Promise<{ readonly value: Value; readonly lineOf: PlainYaml["lineOf"] } | undefined> {
  const { input, lineOf } = readPlainYaml(text) ?? (await import("./read-yaml.ts")).readYaml(text);
  const value = acceptShape<Value>(input, name);
  return value === undefined ? undefined : { value, lineOf };
}

/** Returns a copy of the value, its keys in the order of the schema, as zod does. Returns `undefined` if the value is
 *  not valid, or if its schema has a keyword that is not known here. */
export function acceptShape<Value>(input: unknown, name: ShapeName): Value | undefined {
  // Reads a schema once. The files belong to the package and never change.
  if (!schemas.has(name)) schemas.set(name, readSchema(name));
  const schema = schemas.get(name);
  if (schema === undefined) return undefined;
  const value = accept(input, schema);
  return value === notAccepted ? undefined : (value as Value);
}

interface JsonSchema {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly minLength?: number;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly items?: JsonSchema;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: JsonSchema | false;
  readonly propertyNames?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
}

/** The keywords above, and those that only describe. */
const keywords: ReadonlySet<string> = new Set([
  ...["type", "enum", "minLength", "pattern", "minimum", "maximum", "exclusiveMinimum", "items", "properties"],
  ...["required", "additionalProperties", "propertyNames", "anyOf", "$schema", "title", "description", "default"],
]);

const notAccepted: unique symbol = Symbol("not accepted");

function accept(value: unknown, schema: JsonSchema): unknown {
  if (Object.keys(schema).some((keyword) => !keywords.has(keyword))) return notAccepted;
  if (schema.anyOf !== undefined) return firstAccepted(value, schema.anyOf);
  if (schema.enum !== undefined && !schema.enum.includes(value)) return notAccepted;
  if (schema.type === "array") {
    const { items } = schema;
    if (!Array.isArray(value) || items === undefined) return notAccepted;
    const accepted = value.map((item) => accept(item, items));
    return accepted.includes(notAccepted) ? notAccepted : accepted;
  }
  if (schema.type === "object") return acceptMembers(value, schema);
  return scalarChecks.get(schema.type)?.(value, schema) === true ? value : notAccepted;
}

const scalarChecks: ReadonlyMap<string | undefined, (value: unknown, schema: JsonSchema) => boolean> = new Map([
  ["string", isText],
  ["boolean", (value) => typeof value === "boolean"],
  ["integer", (value, schema) => Number.isSafeInteger(value) && isInRange(value as number, schema)],
  ["number", (value, schema) => Number.isFinite(value) && isInRange(value as number, schema)],
]);

function firstAccepted(value: unknown, schemas: readonly JsonSchema[]): unknown {
  for (const schema of schemas) {
    const accepted = accept(value, schema);
    if (accepted !== notAccepted) return accepted;
  }
  return notAccepted;
}

function isText(value: unknown, { minLength = 0, pattern }: JsonSchema): boolean {
  if (typeof value !== "string" || value.length < minLength) return false;
  return pattern === undefined || new RegExp(pattern, "u").test(value);
}

function isInRange(value: number, { minimum, maximum, exclusiveMinimum }: JsonSchema): boolean {
  return value >= (minimum ?? value) && value <= (maximum ?? value) && !(value <= (exclusiveMinimum ?? -Infinity));
}

function acceptMembers(value: unknown, schema: JsonSchema): unknown {
  const { properties = {}, required = [], additionalProperties, propertyNames } = schema;
  if (!isPlainObject(value) || required.some((key) => !Object.hasOwn(value, key))) return notAccepted;
  const known = Object.keys(properties).filter((key) => Object.hasOwn(value, key));
  const others = Object.keys(value).filter((key) => !Object.hasOwn(properties, key));
  const entries: [string, unknown][] = known.map((key) => [key, accept(value[key], properties[key]!)]);
  for (const key of others) {
    const isNamed = propertyNames === undefined || accept(key, propertyNames) !== notAccepted;
    // zod drops this name, so it is reported.
    if (!additionalProperties || !isNamed || key === "__proto__") return notAccepted;
    entries.push([key, accept(value[key], additionalProperties)]);
  }
  return entries.some(([, member]) => member === notAccepted) ? notAccepted : Object.fromEntries(entries);
}

const schemas = new Map<ShapeName, JsonSchema | undefined>();

/** This module is in src/host/config/, in dist/host/config/ or, bundled, in dist/cli/bundle/. */
function readSchema(name: ShapeName): JsonSchema | undefined {
  const path = fileURLToPath(new URL(`../../../schemas/${name}.schema.json`, import.meta.url));
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : undefined;
}
