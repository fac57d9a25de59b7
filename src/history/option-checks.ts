/** Checks of options, one for each kind of value: what is wrong is told by name, at once, and not by a failure some calls later. */
import { ContextError } from "../errors.ts";
import { didYouMean } from "../text/index.ts";

/** Throws when the value is none for the option of this name. */
export type OptionCheck = (name: string, value: unknown) => void;

/** Refuses options that have no check, and values that are none. An option that is undefined is as good as absent. */
export function checkOptions(
  options: unknown,
  checks: Readonly<Record<string, OptionCheck | undefined>>,
): void {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw invalid(`options must be an object, not ${shown(options)}`, "Pass { contextWindow: 200_000 }.");
  }
  for (const [name, value] of Object.entries(options)) {
    const check = Object.hasOwn(checks, name) ? checks[name] : undefined;
    if (check === undefined) throw unknownOption(name, checks);
    if (value !== undefined) check(name, value);
  }
}

function unknownOption(
  name: string,
  checks: Readonly<Record<string, OptionCheck | undefined>>,
): ContextError {
  const names = Object.keys(checks).filter((each) => checks[each] !== undefined);
  return invalid(`unknown option "${name}"`, didYouMean(name, names) ?? `Options are ${names.join(", ")}.`);
}

export function invalid(message: string, hint: string): ContextError {
  return new ContextError("invalid_argument", message, { hint });
}

export const whole: OptionCheck = (name, value) => {
  if (Number.isSafeInteger(value) && (value as number) >= 0) return;
  throw invalid(`${name} is ${shown(value)}`, "Use a whole number of at least 0.");
};

export const share: OptionCheck = (name, value) => {
  if (typeof value === "number" && value >= 0 && value <= 1) return;
  throw invalid(`${name} is ${shown(value)}`, "Use a share from 0 to 1.");
};

export const flag: OptionCheck = (name, value) => ofType(name, value, "boolean");
export const text: OptionCheck = (name, value) => ofType(name, value, "string");
export const callback: OptionCheck = (name, value) => ofType(name, value, "function");

export const textList: OptionCheck = (name, value) => {
  if (Array.isArray(value) && value.every((each) => typeof each === "string")) return;
  throw invalid(`${name} is ${shown(value)}`, "Use a list of strings.");
};

export function oneOf(names: readonly string[]): OptionCheck {
  return (name, value) => {
    if (names.includes(value as string)) return;
    throw invalid(`unknown ${name} ${shown(value)}`, `Use one of ${names.join(", ")}.`);
  };
}

/** Something that has these methods. */
export function having(methods: readonly string[], hint: string): OptionCheck {
  return (name, value) => {
    const missing = methods.find((method) => typeof Object(value)[method] !== "function");
    if (missing !== undefined) throw invalid(`${name} is ${shown(value)} without ${missing}()`, hint);
  };
}

function ofType(name: string, value: unknown, type: string): void {
  if (typeof value !== type) throw invalid(`${name} is ${shown(value)}`, `Use a ${type}.`);
}

function shown(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" && value !== null ? "an object" : String(value);
}
