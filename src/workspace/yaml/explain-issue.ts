/** What a schema finds wrong, in a person's words. */
import { z } from "zod";
import { didYouMean } from "../../text/index.ts";

export interface Explained {
  readonly path: readonly PropertyKey[];
  readonly rule: "unknown-key" | "missing-key" | "invalid-value";
  readonly message: string;
}

/** One sentence a mistake: several unknown keys in one place are several. */
export function explainIssue(issue: z.core.$ZodIssue, schema: z.ZodType): Explained[] {
  const { path } = issue;
  if (issue.code === "unrecognized_keys") return issue.keys.map((key) => unknownKey(path, key, schema));
  const wanted = `must be ${requirement(issue, schema)}, not ${shown(issue.input)}${suggestion(issue)}`;
  if (path.length === 0) return [{ path, rule: "invalid-value", message: wanted }];
  const name = dotted(path);
  if (issue.input === undefined) return [{ path, rule: "missing-key", message: `"${name}" is missing` }];
  return [{ path, rule: "invalid-value", message: `"${name}" ${wanted}` }];
}

function unknownKey(path: readonly PropertyKey[], key: string, schema: z.ZodType): Explained {
  const allowed = Object.keys(placeAt(path, schema)?.properties ?? {});
  const meant = didYouMean(key, allowed) ?? `Allowed are ${allowed.join(", ")}.`;
  const here = [...path, key];
  return { path: here, rule: "unknown-key", message: `unknown key "${dotted(here)}". ${meant}` };
}

const jsonSchemas = new WeakMap<z.ZodType, object>();

/** Made once a schema: it takes longer than all the rest. */
function jsonSchemaOf(schema: z.ZodType): object {
  const known = jsonSchemas.get(schema) ?? z.toJSONSchema(schema, { io: "input" });
  jsonSchemas.set(schema, known);
  return known;
}

interface Place {
  readonly type?: unknown;
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly items?: unknown;
  readonly additionalProperties?: unknown;
}

function placeAt(path: readonly PropertyKey[], schema: z.ZodType): Place | undefined {
  return path.reduce<Place | undefined>((at, part) => placeBelow(at, part), jsonSchemaOf(schema));
}

function placeBelow(at: Place | undefined, part: PropertyKey): Place | undefined {
  const own = at?.properties !== undefined && Object.hasOwn(at.properties, part);
  const below = own ? at?.properties?.[String(part)] : (at?.items ?? at?.additionalProperties);
  return typeof below === "object" && below !== null ? below : undefined;
}

/** `targets[0].path`. */
function dotted(path: readonly PropertyKey[]): string {
  return path
    .map((part, index) =>
      typeof part === "number" ? `[${part}]` : `${index === 0 ? "" : "."}${String(part)}`,
    )
    .join("");
}

function requirement(issue: z.core.$ZodIssue, schema: z.ZodType): string {
  if (issue.code === "invalid_value") return `one of ${issue.values.join(", ")}`;
  if (issue.code === "too_small" && issue.origin === "string") return "a text that is not empty";
  if (issue.code === "too_small") return `${issue.inclusive ? "at least" : "above"} ${issue.minimum}`;
  if (issue.code === "too_big") return `at most ${issue.maximum}`;
  if (issue.code === "invalid_type") return typeName(issue, schema);
  return issue.message;
}

/** zod tells that a number must be whole only of numbers. */
function typeName({ expected, path, input }: z.core.$ZodIssueInvalidType, schema: z.ZodType): string {
  // TOML has whole numbers that are too large to be exact.
  if (typeof input === "bigint" && expected === "number")
    return input > 0 ? `at most ${Number.MAX_SAFE_INTEGER}` : `at least ${Number.MIN_SAFE_INTEGER}`;
  const isWhole = expected === "number" && placeAt(path, schema)?.type === "integer";
  return typeNames[isWhole ? "int" : expected] ?? expected;
}

const typeNames: Readonly<Record<string, string>> = {
  string: "a text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "a mapping of keys",
  record: "a mapping of keys",
};

function shown(input: unknown): string {
  if (input === null || input === undefined) return "empty";
  if (Array.isArray(input)) return "a list";
  if (input instanceof Date) return "a date";
  if (typeof input === "object") return "a mapping";
  return typeof input === "string" ? JSON.stringify(input) : String(input);
}

function suggestion(issue: z.core.$ZodIssue): string {
  if (issue.code !== "invalid_value" || typeof issue.input !== "string") return "";
  const meant = didYouMean(issue.input, issue.values.map(String));
  return meant === undefined ? "" : `. ${meant}`;
}
