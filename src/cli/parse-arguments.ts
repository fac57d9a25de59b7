/** Command lines, by Node's own parser: a library took longer to load than most commands take to run. */
import { parseArgs } from "node:util";
import { ContextError } from "../errors.ts";
import { didYouMean } from "../text/index.ts";
import type { ArgumentSpec, OptionSpec, OptionValues } from "./command.ts";
import type { CommandTarget } from "./find-command.ts";
import { allFlags, optionsOf } from "./options.ts";

export interface ParsedArguments {
  readonly arguments: readonly string[];
  readonly options: OptionValues;
}

/** Throws a usage error, with a suggestion where one is near. */
export function parseArguments(target: CommandTarget): ParsedArguments {
  const specs = optionsOf(target.command);
  const { tokens, positionals } = parseArgs({
    args: [...target.rest],
    options: Object.fromEntries(Object.entries(specs).map(([name, spec]) => [name, parserOption(spec)])),
    allowPositionals: true,
    // Mistakes are told in our own words, with suggestions.
    strict: false,
    tokens: true,
  });
  const options: Record<string, string | boolean | string[] | undefined> = {};
  for (const token of tokens) {
    if (token.kind !== "option") continue;
    const spec = Object.hasOwn(specs, token.name) ? specs[token.name] : undefined;
    if (spec === undefined) throw unknownOption(token.rawName, target);
    const value = readValue(token, spec, target);
    const known = options[token.name];
    options[token.name] = spec.list
      ? [...(Array.isArray(known) ? known : []), ...String(value).split(",")]
      : value;
  }
  for (const [name, spec] of Object.entries(specs)) checkOption(options[name], name, spec);
  checkArguments(positionals, target);
  return { arguments: positionals, options: options as OptionValues };
}

function parserOption({ value, short }: OptionSpec) {
  const type = value === undefined ? ("boolean" as const) : ("string" as const);
  return short === undefined ? { type } : { type, short };
}

interface OptionToken {
  readonly rawName: string;
  readonly value?: string | undefined;
  readonly inlineValue?: boolean | undefined;
}

/** A flag behind an option that needs a value is a forgotten value, not the value. */
function readValue(
  { rawName, value, inlineValue }: OptionToken,
  spec: OptionSpec,
  target: CommandTarget,
): string | boolean {
  if (spec.value === undefined) {
    if (value !== undefined) throw usageError(`${rawName} takes no value`, helpHint(target));
    return true;
  }
  if (value === undefined || (!inlineValue && /^-[^\d]/.test(value)))
    throw usageError(`${rawName} needs a value`, helpHint(target));
  return value;
}

function unknownOption(flag: string, target: CommandTarget): ContextError {
  const meant = didYouMean(flag, allFlags(optionsOf(target.command)));
  return usageError(`unknown option "${flag}"`, meant ?? helpHint(target));
}

function checkOption(value: unknown, name: string, { choices, list }: OptionSpec): void {
  const values = Array.isArray(value) ? value.map(String) : typeof value === "string" ? [value] : [];
  for (const each of values) {
    if (each === "") throw usageError(`--${name} has an empty ${list ? "name in its list" : "value"}`);
    if (list !== true && areChoices(each.split(","), choices))
      throw usageError(`--${name} takes one value, not "${each}"`, "Choose one of them.");
    checkChoice(each, name, choices);
  }
}

/** Several, as other options have them in a list. */
function areChoices(values: readonly string[], choices: readonly string[] = []): boolean {
  return values.length > 1 && values.every((value) => choices.includes(value));
}

function checkArguments(given: readonly string[], target: CommandTarget): void {
  const specs: readonly ArgumentSpec[] = target.command.arguments ?? [];
  const missing = specs.find((spec, index) => spec.optional !== true && given[index] === undefined);
  if (missing !== undefined) throw usageError(`${missing.name} is missing`, helpHint(target));
  given.forEach((value, index) => {
    const spec = specs[index] ?? (specs.at(-1)?.repeated ? specs.at(-1) : undefined);
    if (spec === undefined) throw usageError(`unexpected argument "${value}"`, unexpectedHint(target));
    if (value === "" && !spec.mayBeEmpty) throw usageError(`${spec.name} is empty`);
    checkChoice(value, spec.name.toLowerCase(), spec.choices);
  });
}

function unexpectedHint(target: CommandTarget): string {
  const last = target.command.arguments?.at(-1);
  return last?.isSentence ? `Quote ${last.name} where it has several words.` : helpHint(target);
}

function checkChoice(value: string, name: string, choices: readonly string[] | undefined): void {
  if (choices === undefined || choices.includes(value)) return;
  const all = `Choose from ${choices.join(", ")}.`;
  throw usageError(`unknown ${name} "${value}"`, [didYouMean(value, choices), all].filter(Boolean).join(" "));
}

function helpHint({ path }: CommandTarget): string {
  return `See "plimsoll ${path.join(" ")} --help".`;
}

function usageError(message: string, hint?: string): ContextError {
  return new ContextError("usage", message, { hint });
}
