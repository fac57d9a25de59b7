/** Checks of arguments: a wrong one is reported at once and by name. */
import { invalidArgument } from "../../core/errors.ts";
import { didYouMean } from "../../core/text/index.ts";

/** Throws unless the value is an object with known keys, so that a misspelt key is never ignored. */
export function checkKeys(name: string, value: unknown, known: readonly string[]): void {
  const all = `Known keys are ${known.join(", ")}.`;
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw invalidArgument(`${name} is ${describeValue(value)}`, `Use an object. ${all}`);
  }
  const unknown = Object.keys(value).find((key) => !known.includes(key));
  if (unknown === undefined) return;
  const meant = didYouMean(unknown, known);
  throw invalidArgument(`unknown key "${unknown}" in ${name}`, meant === undefined ? all : `${meant} ${all}`);
}

export function checkCounter(counter: unknown): void {
  if (typeof Object(counter).count === "function") return;
  throw invalidArgument(
    `counter is ${describeValue(counter)}`,
    'Pass a counter, such as await createCounter("bytes/4").',
  );
}

export function checkMaxTokens(maxTokens: unknown): void {
  if (Number.isSafeInteger(maxTokens) && (maxTokens as number) >= 0) return;
  throw invalidArgument(
    `maxTokens is ${describeValue(maxTokens)}`,
    "Use a whole number of tokens, or 0 for an empty text.",
  );
}

/** Shows a wrong value in an error. */
export function describeValue(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "function") return "a function";
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" && value !== null ? "an object" : String(value);
}
