import { ContextError } from "../../errors.ts";
import { checkTrimmerOptions, type TrimmerOptions } from "../../history/index.ts";
import type { ContextBudgetOptions } from "./context-budget.ts";

type OptionCheck = (name: string, value: unknown) => void;
type Checks = Readonly<Record<string, OptionCheck | undefined>>;

/** Refuses wrong options when an integration is made, not when its first request goes out. `own` are those of one door alone. */
export function checkBudgetOptions(options: ContextBudgetOptions<never>, own: Checks = {}): void {
  checkTrimmerOptions(options, { ...added, ...own });
}

/** The check for an option with few values. */
export function oneOf(values: readonly string[]): OptionCheck {
  return (name, value) => {
    if (values.includes(value as string)) return;
    throw refusal(`unknown ${name} ${JSON.stringify(value)}`, `Use one of ${values.join(", ")}.`);
  };
}

const callback: OptionCheck = (name, value) => {
  if (typeof value !== "function") throw refusal(`${name} is of type ${typeof value}`, "Pass a function.");
};

const tokens: OptionCheck = (name, value) => {
  if (Number.isSafeInteger(value) && (value as number) > 0) return;
  throw refusal(`${name} is ${String(value)}`, "Use a whole number of tokens from 1.");
};

const milliseconds: OptionCheck = (name, value) => {
  if (typeof value === "number" && value >= 0) return;
  throw refusal(`${name} is ${String(value)}`, "Use a number of milliseconds from 0.");
};

type Added = Exclude<keyof ContextBudgetOptions<never>, keyof TrimmerOptions> | "contextWindow";
type LeftOut = Exclude<keyof TrimmerOptions, keyof ContextBudgetOptions<never>>;

// The door knows the format, the session its checkpoint, and what is sent is billed.
const added: Readonly<Record<Added, OptionCheck> & Record<LeftOut, undefined>> = {
  contextWindow: tokens,
  sessionIdOf: callback,
  onOverflow: oneOf(["throw", "pass"]),
  onTrim: callback,
  cacheLifetimeMs: milliseconds,
  now: callback,
  format: undefined,
  checkpoint: undefined,
  sealed: undefined,
};

function refusal(message: string, hint: string): ContextError {
  return new ContextError("invalid_argument", message, { hint });
}
