import { type ContextError, usageError } from "../errors.ts";
import { formatNumber } from "./wording.ts";

/** Reads the value of an option that takes a whole number. */
export function wholeNumber<Value extends string | undefined>(
  value: Value,
  option: string,
  least: number,
): number | Extract<Value, undefined> {
  if (value === undefined) return value as Extract<Value, undefined>;
  const number = /^\d+$/.test(value) ? Number(value) : Number.NaN;
  if (Number.isSafeInteger(number) && number >= least) return number;
  throw usageError(`--${option} is "${value}"`, `Use a whole number of at least ${least}.`);
}

/** Reads an age such as 7d and returns it in milliseconds. `name` is the option or key that has it. */
export function readAge(age: string, name: string): number {
  const [, number = "", unit = ""] = /^(\d{1,6})([mhdw])$/.exec(age) ?? [];
  const units: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };
  if (number !== "") return Number(number) * units[unit]!;
  throw usageError(`${name} ${age} is not an age`, "Use a whole number with m, h, d or w, such as 7d.");
}

/** Returns the error that names what leaves nothing of a window for messages, or undefined if there is room. `reserve` is
 *  kept free for the answer, and `prefixTokens` are system text and tools that no message contains. */
export function problemWithWindow(
  window: number,
  { reserve, prefixTokens }: Readonly<Record<"reserve" | "prefixTokens", number>>,
): ContextError | undefined {
  if (window > reserve + prefixTokens) return undefined;
  const all = [
    { name: "reserve", tokens: reserve, option: "--reserve" },
    { name: "prefix", tokens: prefixTokens, option: "--prefix-tokens" },
  ];
  const alone = all.filter(({ tokens }) => tokens >= window);
  const parts = alone.length > 0 ? alone : all;
  const named = parts.map(({ name, tokens }) => `the ${name} of ${formatNumber(tokens)}`).join(" and ");
  const verb = parts.length === 1 ? "takes" : "take";
  return usageError(
    `${named} ${verb} the whole window of ${formatNumber(window)}`,
    `Lower ${parts.map(({ option }) => option).join(" or ")}.`,
  );
}
