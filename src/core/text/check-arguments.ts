/** Checks the arguments of public functions. A wrong one throws at once, with its name and what to pass instead.
 *
 *  Schemas check what people write in files: src/host/config/yaml-document.ts. Three kinds of checks are written by hand. Those
 *  of messages (src/core/messages/fields.ts) and of stored JSON (json-shape.ts) run for every message and record. Those of a
 *  store (src/core/store/store.ts) run for every read and write, and lie below this folder. */
import { ContextError, invalidArgument } from "../errors.ts";
import { isPlainObject, isWhole } from "./json-shape.ts";
import { didYouMean, shorten } from "./wording.ts";

/** Throws if the value is wrong for the argument with this name. */
export type ArgumentCheck = (name: string, value: unknown) => void;

/** A check for each option. Undefined for an option that is not accepted. */
export type OptionChecks = Readonly<Record<string, ArgumentCheck | undefined>>;

/** The checks, by kind of value. */
export const argumentChecks = {
  whole(name: string, value: unknown): void {
    wrongUnless(isWhole(value), { name, value, hint: "Use a whole number of at least 0." });
  },
  positive(name: string, value: unknown): void {
    wrongUnless(isWhole(value) && value > 0, { name, value, hint: "Use a whole number of at least 1." });
  },
  tokensFrom(least: number): ArgumentCheck {
    const hint = `Use a whole number of tokens from ${least}.`;
    return (name, value) => wrongUnless(isWhole(value) && value >= least, { name, value, hint });
  },
  milliseconds(name: string, value: unknown): void {
    const hint = "Use a number of milliseconds of at least 0.";
    wrongUnless(typeof value === "number" && value >= 0, { name, value, hint });
  },
  share(name: string, value: unknown): void {
    wrongUnless(isAmount(value) && value <= 1, { name, value, hint: "Use a share from 0 to 1." });
  },
  counter(name: string, value: unknown): void {
    const hint = 'Pass a counter, such as await createCounter("bytes/4").';
    wrongUnless(typeof Object(value).count === "function", { name, value, hint });
  },
  flag: (name: string, value: unknown): void => ofType(name, value, "boolean"),
  text: (name: string, value: unknown): void => ofType(name, value, "string"),
  callback: (name: string, value: unknown): void => ofType(name, value, "function"),
  list(name: string, value: unknown): void {
    wrongUnless(Array.isArray(value), { name, value, hint: "Use a list." });
  },
  textList(name: string, value: unknown): void {
    const isRight = Array.isArray(value) && value.every((each) => typeof each === "string");
    wrongUnless(isRight, { name, value, hint: "Use a list of strings." });
  },
  oneOf(names: readonly string[]): ArgumentCheck {
    return (name, value) => {
      if (names.includes(value as string)) return;
      throw invalidArgument(`unknown ${name} ${describeValue(value)}`, `Use one of ${names.join(", ")}.`);
    };
  },
  /** Accepts an object with these methods. */
  having(methods: readonly string[], hint: string): ArgumentCheck {
    return (name, value) => {
      const missing = methods.find((method) => typeof Object(value)[method] !== "function");
      if (missing !== undefined) throw invalidArgument(`${name} is ${describeValue(value)} without ${missing}()`, hint);
    };
  },
} as const;

/** Throws on an option without a check and on a wrong value. Ignores an option that is undefined. */
export function checkOptions(options: unknown, checks: OptionChecks, example: string): void {
  if (!isPlainObject(options)) {
    throw invalidArgument(`options must be an object, not ${describeValue(options)}`, `Pass ${example}.`);
  }
  refuseUnknownOptions(
    options,
    Object.keys(checks).filter((name) => checks[name] !== undefined),
  );
  for (const [name, value] of Object.entries(options)) if (value !== undefined) checks[name]?.(name, value);
}

/** Throws on an option that does not exist. Suggests the closest name, or else lists all of them. */
export function refuseUnknownOptions(
  options: object,
  known: readonly string[],
  { noun = "option", all = "Options are" }: { readonly noun?: string; readonly all?: string } = {},
): void {
  const name = Object.keys(options).find((each) => !known.includes(each));
  if (name === undefined) return;
  throw invalidArgument(`unknown ${noun} "${name}"`, didYouMean(name, known) ?? `${all} ${known.join(", ")}.`);
}

/** Throws unless the value is an object with known keys, so that a misspelt key is never ignored. */
export function checkKeys(name: string, value: unknown, known: readonly string[]): void {
  const all = `Known keys are ${known.join(", ")}.`;
  if (!isPlainObject(value)) throw invalidArgument(`${name} is ${describeValue(value)}`, `Use an object. ${all}`);
  const unknown = Object.keys(value).find((key) => !known.includes(key));
  if (unknown === undefined) return;
  const hint = [didYouMean(unknown, known), all].filter(Boolean).join(" ");
  throw invalidArgument(`unknown key "${unknown}" in ${name}`, hint);
}

/** Throws for a wrong argument of a function without options: the message says what it must be. */
export function refuseValue(name: string, value: unknown, { wanted, hint }: { wanted: string; hint?: string }): never {
  throw new ContextError("invalid_argument", `${name} must be ${wanted}, not ${describeValue(value)}`, { hint });
}

/** Whether a value is a finite number from 0. */
export function isAmount(value: unknown): value is number {
  return Number.isFinite(value) && (value as number) >= 0;
}

/** Shows a wrong value in an error: the start of a long text, and no content of lists and objects. */
function describeValue(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(shorten(value, 60));
  if (typeof value === "function") return "a function";
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" && value !== null ? "an object" : String(value);
}

function ofType(name: string, value: unknown, type: string): void {
  wrongUnless(typeof value === type, { name, value, hint: `Use a ${type}.` });
}

function wrongUnless(
  isRight: boolean,
  { name, value, hint }: { readonly name: string; readonly value: unknown; readonly hint: string },
): void {
  if (!isRight) throw invalidArgument(`${name} is ${describeValue(value)}`, hint);
}
