/** Wrong arguments are told at once and by name, and not by a failure somewhere inside. */
import { ContextError } from "../errors.ts";
import { didYouMean } from "../text/index.ts";

/** Refuses what is no object, and keys that mean nothing: what is misspelt would be left out without a word. */
export function checkKeys(name: string, value: unknown, known: readonly string[]): void {
  const all = `Known are ${known.join(", ")}.`;
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw invalid(`${name} is ${shown(value)}`, `Use an object. ${all}`);
  }
  const unknown = Object.keys(value).find((key) => !known.includes(key));
  if (unknown === undefined) return;
  const meant = didYouMean(unknown, known);
  throw invalid(`unknown key "${unknown}" of ${name}`, meant === undefined ? all : `${meant} ${all}`);
}

export function checkCounter(counter: unknown): void {
  if (typeof Object(counter).count === "function") return;
  throw invalid(`counter is ${shown(counter)}`, 'Pass what await createCounter("bytes/4") gives.');
}

export function checkMaxTokens(maxTokens: unknown): void {
  if (Number.isSafeInteger(maxTokens) && (maxTokens as number) >= 0) return;
  throw invalid(`maxTokens is ${shown(maxTokens)}`, "Use a whole number of tokens; 0 for no text at all.");
}

/** Undefined is as good as absent. */
export function checkText(name: string, value: unknown): void {
  if (value === undefined || typeof value === "string") return;
  throw invalid(`${name} is ${shown(value)}`, "Use a string.");
}

export function checkList(name: string, value: unknown): void {
  if (!Array.isArray(value)) throw invalid(`${name} is ${shown(value)}`, "Use a list.");
}

export function invalid(message: string, hint: string): ContextError {
  return new ContextError("invalid_argument", message, { hint });
}

export function shown(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "function") return "a function";
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" && value !== null ? "an object" : String(value);
}
