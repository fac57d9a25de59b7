/** Reads one YAML file and checks it against a schema. Returns its value and all mistakes with their lines. Loads
 *  yaml and zod. */
import { z } from "zod";
import { didYouMean } from "../../core/text/index.ts";
import { readYaml, type YamlProblem } from "./read-yaml.ts";

export interface YamlDocument<Value> {
  /** Undefined if a mistake makes the file unusable. */
  readonly value: Value | undefined;
  readonly problems: readonly YamlProblem[];
  /** Returns the line of a key, or of the nearest key around it. 1-based. */
  lineOf(path: readonly PropertyKey[]): number;
}

/** Reads as leniently as programs with typed fields do, so content for those programs loads unchanged. Reports unknown
 *  keys and leaves them out: the caller decides their severity. An empty file is an empty list or mapping. */
export function parseYamlDocument<Value>(text: string, schema: z.ZodType<Value>): YamlDocument<Value> {
  const { input, problems, lineOf, sourceOf } = readYaml(text);
  if (problems.length > 0) return { value: undefined, problems, lineOf };
  const root = { value: input };
  const unknown: z.core.$ZodIssue[] = [];
  for (;;) {
    const { success, data: value, error } = schema.safeParse(root.value, { reportInput: true });
    if (success) return { value, problems: explainIssues(unknown, schema, lineOf), lineOf };
    const { issues } = error;
    unknown.push(...issues.filter(isUnknownKey));
    const repaired = issues.filter((issue) => repair(root, issue, sourceOf));
    if (repaired.length > 0) continue;
    return { value: undefined, problems: explainIssues([...unknown, ...issues], schema, lineOf), lineOf };
  }
}

/** Nobody reads more mistakes of one file, and a longer list is slow to make. */
const maxProblems = 100;

/** Explains a schema's issues in the order of the lines. If there are too many, unknown keys are left out first: they
 *  may not be errors. */
export function explainIssues(
  issues: readonly z.core.$ZodIssue[],
  schema: z.ZodType,
  lineOf: (path: readonly PropertyKey[]) => number,
): YamlProblem[] {
  const single = issues.flatMap((issue): z.core.$ZodIssue[] =>
    issue.code === "unrecognized_keys" ? issue.keys.map((key) => ({ ...issue, keys: [key] })) : [issue],
  );
  const ordered =
    single.length <= maxProblems
      ? single
      : [...single.filter((issue) => !isUnknownKey(issue)), ...single.filter(isUnknownKey)];
  const explained = ordered.slice(0, maxProblems).flatMap((issue) => explainIssue(issue, schema));
  const problems = explained.map((each) => ({ ...each, line: lineOf(each.path) })).sort((a, b) => a.line - b.line);
  const left = ordered.slice(maxProblems);
  return left.length === 0
    ? problems
    : [
        ...problems,
        {
          path: [],
          line: problems.at(-1)!.line,
          rule: left.every(isUnknownKey) ? "unknown-key" : "invalid-value",
          message: `… and ${left.length} more`,
        },
      ];
}

function isUnknownKey({ code }: z.core.$ZodIssue): boolean {
  return code === "unrecognized_keys";
}

/** A schema's issue, explained for people. */
type Explained = Omit<YamlProblem, "line">;

/** Returns one sentence per mistake. Several unknown keys in one place are several mistakes. */
function explainIssue(issue: z.core.$ZodIssue, schema: z.ZodType): Explained[] {
  const { path } = issue;
  if (issue.code === "unrecognized_keys")
    return issue.keys.map((key) =>
      explainUnknownKey([...path, key], Object.keys(placeAt(path, schema)?.properties ?? {})),
    );
  const unknown = issue.code === "invalid_union" ? unknownInUnion(issue) : [];
  if (unknown.length > 0) return unknown;
  const wanted = `must be ${requirement(issue, schema)}, not ${describeValue(issue.input)}${suggestion(issue)}`;
  if (path.length === 0) return [{ path, rule: "invalid-value", message: wanted }];
  const name = dotted(path);
  if (issue.input === undefined) return [{ path, rule: "missing-key", message: `"${name}" is missing` }];
  return [{ path, rule: "invalid-value", message: `"${name}" ${wanted}` }];
}

/** Returns the keys that no alternative has. A key that one of them has is part of a wrong combination instead. */
function unknownInUnion({ path, errors }: z.core.$ZodIssueInvalidUnion): Explained[] {
  const unknownOf = (issues: readonly z.core.$ZodIssue[]) =>
    issues.flatMap((issue) => (issue.code === "unrecognized_keys" ? issue.keys : []));
  const mappings = errors.filter((issues) => unknownOf(issues).length > 0);
  const keys = unknownOf(mappings[0] ?? []).filter((key) => mappings.every((each) => unknownOf(each).includes(key)));
  const allowed = mappings.flat().flatMap((issue) => (issue.path.length === 1 ? [String(issue.path[0])] : []));
  return keys.map((key) => explainUnknownKey([...path, key], allowed));
}

function explainUnknownKey(path: readonly PropertyKey[], allowed: readonly string[]): Explained {
  const meant = didYouMean(String(path.at(-1)), allowed) ?? `Allowed keys are ${allowed.join(", ")}.`;
  return { path, rule: "unknown-key", message: `unknown key "${dotted(path)}". ${meant}` };
}

const jsonSchemas = new WeakMap<z.ZodType, object>();

interface SchemaPlace {
  readonly type?: unknown;
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly items?: unknown;
  readonly additionalProperties?: unknown;
}

function placeAt(path: readonly PropertyKey[], schema: z.ZodType): SchemaPlace | undefined {
  // Converted once per schema, since this is the slowest step.
  const known = jsonSchemas.get(schema) ?? z.toJSONSchema(schema, { io: "input" });
  jsonSchemas.set(schema, known);
  return path.reduce<SchemaPlace | undefined>((at, part) => {
    const own = at?.properties !== undefined && Object.hasOwn(at.properties, part);
    const below = own ? at?.properties?.[String(part)] : (at?.items ?? at?.additionalProperties);
    return typeof below === "object" && below !== null ? below : undefined;
  }, known);
}

/** `targets[0].path`. */
function dotted(path: readonly PropertyKey[]): string {
  return path
    .map((part, index) => (typeof part === "number" ? `[${part}]` : `${index === 0 ? "" : "."}${String(part)}`))
    .join("");
}

function requirement(issue: z.core.$ZodIssue, schema: z.ZodType): string {
  if (issue.code === "invalid_value") return `one of ${issue.values.join(", ")}`;
  if (issue.code === "too_small" && issue.origin === "string") return "a text that is not empty";
  if (issue.code === "too_small") return `${issue.inclusive ? "at least" : "above"} ${issue.minimum}`;
  if (issue.code === "too_big") return `at most ${issue.maximum}`;
  if (issue.code !== "invalid_type") return issue.message;
  const { expected, path, input } = issue;
  // TOML has whole numbers that are too large to be exact.
  if (typeof input === "bigint" && expected === "number")
    return input > 0 ? `at most ${Number.MAX_SAFE_INTEGER}` : `at least ${Number.MIN_SAFE_INTEGER}`;
  // For other types than numbers, zod does not report that a number must be whole.
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

function describeValue(input: unknown): string {
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

type Path = readonly PropertyKey[];

/** Changes the value: removes unknown keys and keys without a value, uses the written text for a number where a text
 *  belongs, and turns yes, no, on and off into booleans where one belongs. Each repair removes a mistake, so the loop
 *  ends. */
function repair(
  root: { value: unknown },
  issue: z.core.$ZodIssue,
  sourceOf: (path: Path) => string | undefined,
): boolean {
  if (issue.code === "unrecognized_keys") {
    const place = valueAt(root, issue.path) as object;
    return issue.keys.map((key) => Reflect.deleteProperty(place, key)).every((isGone) => isGone);
  }
  if (issue.input === null) return dropEmpty(root, issue);
  if (issue.code !== "invalid_type") return false;
  const replacement = chooseReplacement(issue, sourceOf(issue.path));
  const place = valueAt(root, issue.path.slice(0, -1));
  if (replacement === undefined || !isObject(place)) return false;
  return Reflect.set(place, issue.path.at(-1)!, replacement);
}

/** A list item without a value is not removed, since this would move the other items. */
function dropEmpty(root: { value: unknown }, { path, ...issue }: z.core.$ZodIssue): boolean {
  if (path.length === 0) {
    root.value = issue.code === "invalid_type" && issue.expected === "array" ? [] : {};
    return true;
  }
  const place = valueAt(root, path.slice(0, -1));
  return isObject(place) && !Array.isArray(place) && Reflect.deleteProperty(place, path.at(-1)!);
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function chooseReplacement(
  { expected, input, path }: z.core.$ZodIssueInvalidType,
  source: string | undefined,
): string | boolean | undefined {
  if (path.length === 0) return undefined;
  if (expected === "string") return typeof input === "object" ? undefined : source;
  if (expected === "boolean") return oldBooleans.get(String(input).toLowerCase());
  return undefined;
}

/** Booleans of YAML 1.1. */
const oldBooleans: ReadonlyMap<string, boolean> = new Map([
  ["yes", true],
  ["on", true],
  ["no", false],
  ["off", false],
]);

function valueAt(root: { value: unknown }, path: Path): unknown {
  return path.reduce((at, part) => (at as Record<PropertyKey, unknown> | undefined)?.[part], root.value);
}
