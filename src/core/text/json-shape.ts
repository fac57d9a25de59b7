/** A parsed object. Its fields may hold anything. */
export type Fields = Readonly<Record<string, unknown>>;

/** Checks the shape of a value. Stored JSON may come from another version or be damaged, so it is checked before it is
 *  used. */

export type ShapeCheck<Value> = (value: unknown) => value is Value;

/** Returns `undefined` if the text is not JSON or has another shape. */
export function readJson<Value>(text: string | undefined, is: ShapeCheck<Value>): Value | undefined {
  try {
    const value: unknown = text === undefined ? undefined : JSON.parse(text);
    return is(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export const isText: ShapeCheck<string> = (value) => typeof value === "string";

/** A whole number from 0 that JavaScript does not round. */
export const isWhole: ShapeCheck<number> = (value): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0;

/** ISO 8601, at least to the second. */
export const isTime: ShapeCheck<string> = (value): value is string =>
  typeof value === "string" &&
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/.test(value) &&
  !Number.isNaN(Date.parse(value));

export const isNumber: ShapeCheck<number> = (value): value is number => Number.isFinite(value);

type Shape = Readonly<Record<string, ShapeCheck<unknown>>>;

type Shaped<Needed extends Shape, Allowed extends Shape> = {
  readonly [Name in keyof Needed]: Needed[Name] extends ShapeCheck<infer Value> ? Value : never;
} & {
  readonly [Name in keyof Allowed]?: (Allowed[Name] extends ShapeCheck<infer Value> ? Value : never) | undefined;
};

/** Accepts an object with all needed members. Members in `allowed` may be absent; other members are ignored. */
export function objectOf<Needed extends Shape, Allowed extends Shape = Record<never, never>>(
  needed: Needed,
  allowed?: Allowed,
): ShapeCheck<Shaped<Needed, Allowed>> {
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

export function listOf<Value>(is: ShapeCheck<Value>): ShapeCheck<readonly Value[]> {
  return (value): value is readonly Value[] => Array.isArray(value) && value.every(is);
}

export function pairOf<First, Second>(
  isFirst: ShapeCheck<First>,
  isSecond: ShapeCheck<Second>,
): ShapeCheck<readonly [First, Second]> {
  return (value): value is readonly [First, Second] =>
    Array.isArray(value) && value.length === 2 && isFirst(value[0]) && isSecond(value[1]);
}

export function mapOf<Value>(is: ShapeCheck<Value>): ShapeCheck<Readonly<Record<string, Value>>> {
  return (value): value is Readonly<Record<string, Value>> => isPlainObject(value) && Object.values(value).every(is);
}

/** Accepts an object with any fields, unless it is nested too deeply to be written as JSON again. */
export const isFields: ShapeCheck<Readonly<Record<string, unknown>>> = (value): value is Record<string, unknown> =>
  isPlainObject(value) && isShallow(value, 200);

function isShallow(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  return depth > 0 && Object.values(value).every((each) => isShallow(each, depth - 1));
}

/** Returns whether a value is an object and not a list. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
