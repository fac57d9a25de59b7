import { ContextError } from "../errors.ts";

/** The value of an option that takes a whole number. */
export function wholeNumber(value: string, option: string, least: number): number {
  const number = /^\d+$/.test(value) ? Number(value) : Number.NaN;
  if (Number.isSafeInteger(number) && number >= least) return number;
  throw new ContextError("usage", `--${option} is "${value}"`, {
    hint: `Use a whole number of at least ${least}.`,
  });
}
