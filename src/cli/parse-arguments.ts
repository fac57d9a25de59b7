/** Command lines by commander, errors in our own words. */
import { Argument, CommanderError, Option, Command as Parser } from "commander";
import { ContextError } from "../errors.ts";
import { didYouMean } from "../text/index.ts";
import {
  type ArgumentSpec,
  globalOptions,
  type OptionSpec,
  type OptionSpecs,
  type OptionValues,
} from "./command.ts";
import { type CommandTarget, flagsOf } from "./find-command.ts";

export interface ParsedArguments {
  readonly arguments: readonly string[];
  readonly options: OptionValues;
}

/** Throws a usage error, with a suggestion where one is near. */
export function parseArguments(target: CommandTarget): ParsedArguments {
  const parser = createParser(target);
  try {
    parser.parse(target.rest, { from: "user" });
  } catch (error) {
    throw error instanceof CommanderError ? usageError(error, target, parser.args) : error;
  }
  const specs = optionsOf(target);
  const options = Object.fromEntries(
    parser.options.map((option) => [option.name(), parser.getOptionValue(option.attributeName())]),
  );
  for (const [name, spec] of Object.entries(specs)) checkOption(options[name], name, spec);
  for (const [index, spec] of (target.command.arguments ?? []).entries()) {
    const given = spec.repeated ? parser.args.slice(index) : parser.args.slice(index, index + 1);
    if (given.includes("")) throw new ContextError("usage", `${spec.name} is empty`);
    for (const value of given) checkChoice(value, spec.name.toLowerCase(), spec.choices);
  }
  return { arguments: parser.args, options };
}

/** Also the help's source, so that what is shown is what is taken. */
export function createParser({ path, summary, command }: CommandTarget): Parser {
  const parser = new Parser(["plimsoll", ...path].join(" "))
    .description(summary)
    .helpOption(false)
    .allowExcessArguments(false)
    .showSuggestionAfterError(false)
    .configureOutput({ writeErr: () => {} })
    .exitOverride();
  for (const spec of command.arguments ?? []) parser.addArgument(createArgument(spec));
  for (const [name, spec] of Object.entries({ ...command.options, ...globalOptions })) {
    parser.addOption(createOption(name, spec));
  }
  return parser;
}

function optionsOf({ command }: CommandTarget): OptionSpecs {
  return { ...command.options, ...globalOptions };
}

function createArgument({ name, summary, optional, repeated }: ArgumentSpec): Argument {
  const shown = repeated ? `${name}...` : name;
  return new Argument(optional ? `[${shown}]` : `<${shown}>`, summary);
}

function createOption(name: string, { short, value, summary, list, choices }: OptionSpec): Option {
  const flags = `${short === undefined ? "" : `-${short}, `}--${name}${value === undefined ? "" : ` <${value}>`}`;
  const option = new Option(flags, choices === undefined ? summary : `${summary}: ${choices.join(", ")}`);
  if (list)
    option.argParser((text, previous: string[] | undefined) => [...(previous ?? []), ...text.split(",")]);
  return option;
}

function usageError(error: CommanderError, target: CommandTarget, given: readonly string[]): ContextError {
  const extra = given[target.command.arguments?.length ?? 0];
  const message =
    error.code === "commander.excessArguments" ? `unexpected argument "${extra}"` : messageOf(error);
  const flag = error.code === "commander.unknownOption" ? /"([^"=]*)/.exec(message)?.[1] : undefined;
  const known = Object.entries(optionsOf(target)).flatMap(([name, { short }]) => flagsOf(name, short));
  const meant = flag === undefined ? undefined : didYouMean(flag, known);
  return new ContextError("usage", message, {
    hint: meant ?? `See "plimsoll ${[...target.path].join(" ")} --help".`,
    cause: error,
  });
}

function messageOf({ code, message }: CommanderError): string {
  const option = code === "commander.optionMissingArgument" ? /--[\w-]+/.exec(message)?.[0] : undefined;
  return option === undefined
    ? message.replace(/^error: /, "").replaceAll("'", '"')
    : `${option} needs a value`;
}

function checkOption(value: unknown, name: string, { choices, list }: OptionSpec): void {
  const values = Array.isArray(value) ? value.map(String) : typeof value === "string" ? [value] : [];
  for (const each of values) {
    if (each === "")
      throw new ContextError("usage", `--${name} has an empty ${list ? "name in its list" : "value"}`);
    checkChoice(each, name, choices);
  }
}

function checkChoice(value: string, name: string, choices: readonly string[] | undefined): void {
  if (choices === undefined || choices.includes(value)) return;
  const all = `Choose from ${choices.join(", ")}.`;
  throw new ContextError("usage", `unknown ${name} "${value}"`, {
    hint: [didYouMean(value, choices), all].filter(Boolean).join(" "),
  });
}
