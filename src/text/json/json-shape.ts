/** JSON that was stored, maybe by another version, or was damaged since: it is checked by its shape before anything relies on it. */

export type Check<Value> = (value: unknown) => value is Value;

/** Undefined for what is no JSON, or has another shape. */
export function readJson<Value>(text: string | undefined, is: Check<Value>): Value | undefined {
  try {
    const value: unknown = text === undefined ? undefined : JSON.parse(text);
    return is(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export const isText: Check<string> = (value) => typeof value === "string";

/** A whole number from 0 that JavaScript does not round. */
export const isWhole: Check<number> = (value): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0;

/** ISO 8601, to the second at least. */
export const isTime: Check<string> = (value): value is string =>
  typeof value === "string" &&
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/.test(value) &&
  !Number.isNaN(Date.parse(value));

export const isNumber: Check<number> = (value): value is number => Number.isFinite(value);

export const isSwitch: Check<boolean> = (value) => typeof value === "boolean";

type Shape = Readonly<Record<string, Check<unknown>>>;

type Shaped<Needed extends Shape, Allowed extends Shape> = {
  readonly [Name in keyof Needed]: Needed[Name] extends Check<infer Value> ? Value : never;
} & {
  readonly [Name in keyof Allowed]?: (Allowed[Name] extends Check<infer Value> ? Value : never) | undefined;
};

/** An object that has the needed members, and each of the others only as it should be. Members that nobody named are let through. */
export function objectOf<Needed extends Shape, Allowed extends Shape = Record<never, never>>(
  needed: Needed,
  allowed?: Allowed,
): Check<Shaped<Needed, Allowed>> {
  const checks = Object.entries(needed);
  const others = Object.entries(allowed ?? {});
  return (value): value is Shaped<Needed, Allowed> => {
    if (!isPlainObject(value)) return false;
    return (
      checks.every(([name, is]) => is(value[name])) &&
      others.every(([name, is]) => value[name] === undefined || is(value[name]))
    );
  };
}

export function listOf<Value>(is: Check<Value>): Check<readonly Value[]> {
  return (value): value is readonly Value[] => Array.isArray(value) && value.every(is);
}

export function pairOf<First, Second>(
  isFirst: Check<First>,
  isSecond: Check<Second>,
): Check<readonly [First, Second]> {
  return (value): value is readonly [First, Second] =>
    Array.isArray(value) && value.length === 2 && isFirst(value[0]) && isSecond(value[1]);
}

export function mapOf<Value>(is: Check<Value>): Check<Readonly<Record<string, Value>>> {
  return (value): value is Readonly<Record<string, Value>> =>
    isPlainObject(value) && Object.values(value).every(is);
}

/** Data of any shape under names, but not so deep that writing it again would fail. */
export const isFields: Check<Readonly<Record<string, unknown>>> = (value): value is Record<string, unknown> =>
  isPlainObject(value) && isShallow(value, mostDepth);

const mostDepth = 200;

function isShallow(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  return depth > 0 && Object.values(value).every((each) => isShallow(each, depth - 1));
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
