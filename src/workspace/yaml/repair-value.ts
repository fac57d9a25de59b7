/** Reads YAML as generously as programs with typed fields do: content that was written for them loads unchanged. */
import type { z } from "zod";

export interface RepairedValue<Value> {
  readonly value: Value | undefined;
  /** Everything worth telling, unknown keys included. */
  readonly issues: readonly z.core.$ZodIssue[];
}

type Path = readonly PropertyKey[];

/** Validates `input`, which it changes: unknown keys go, a key without a value is absent, a number where a text belongs is the
 *  text as written, and yes, no, on, off are booleans where one belongs. */
export function repairValue<Value>(
  input: unknown,
  schema: z.ZodType<Value>,
  sourceAt: (path: Path) => string | undefined,
): RepairedValue<Value> {
  const root = { value: input };
  const unknown: z.core.$ZodIssue[] = [];
  for (;;) {
    const result = schema.safeParse(root.value, { reportInput: true });
    if (result.success) return { value: result.data, issues: unknown };
    const { issues } = result.error;
    unknown.push(...issues.filter(({ code }) => code === "unrecognized_keys"));
    const repaired = issues.filter((issue) => repair(root, issue, sourceAt));
    if (repaired.length === 0) return { value: undefined, issues: [...unknown, ...issues] };
  }
}

/** Each repair takes away what was wrong, so that this ends. */
function repair(
  root: { value: unknown },
  issue: z.core.$ZodIssue,
  sourceAt: (path: Path) => string | undefined,
): boolean {
  if (issue.code === "unrecognized_keys") {
    const place = valueAt(root, issue.path) as object;
    return issue.keys.map((key) => Reflect.deleteProperty(place, key)).every((isGone) => isGone);
  }
  if (issue.input === null) return dropEmpty(root, issue);
  if (issue.code !== "invalid_type") return false;
  const replacement = replacementOf(issue, sourceAt(issue.path));
  const place = valueAt(root, issue.path.slice(0, -1));
  if (replacement === undefined || !isObject(place)) return false;
  return Reflect.set(place, issue.path.at(-1)!, replacement);
}

/** An item of a list that has no value stays wrong: leaving it out would move the others. */
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

function replacementOf(
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
