/** Parses command lines with Node's parser, because a library took longer to load than most commands run. */
import { parseArgs } from "node:util";
import { usageError } from "../core/errors.ts";
import { didYouMean } from "../core/text/index.ts";
import type { ArgumentSpec, CommandTarget, OptionSpec, OptionSpecs, OptionValues } from "./command.ts";

/** Parses arguments. Throws a usage error, with a suggestion if a known name is similar. */
export function parseArguments(target: CommandTarget): {
  readonly arguments: readonly string[];
  readonly options: OptionValues;
} {
  const specs = withGlobalOptions(target.command);
  const { tokens, positionals } = parseArgs({
    args: [...target.rest],
    options: Object.fromEntries(
      Object.entries(specs).map(([name, { value, short }]) => {
        const type = value === undefined ? ("boolean" as const) : ("string" as const);
        return [name, short === undefined ? { type } : { type, short }];
      }),
    ),
    allowPositionals: true,
    // We report mistakes ourselves, with suggestions.
    strict: false,
    tokens: true,
  });
  const options: Record<string, string | boolean | string[] | undefined> = {};
  for (const token of tokens) {
    if (token.kind !== "option") continue;
    const spec = Object.hasOwn(specs, token.name) ? specs[token.name] : undefined;
    if (spec === undefined) {
      const meant = didYouMean(token.rawName, allFlags(specs));
      throw usageError(`unknown option "${token.rawName}"`, meant ?? helpHint(target));
    }
    const value = readValue(token, spec, target);
    const known = options[token.name];
    options[token.name] = spec.list ? [...(Array.isArray(known) ? known : []), ...String(value).split(",")] : value;
  }
  const ignored = Object.keys(specs).filter((name) => options[specs[name]!.ignoredWith ?? ""] === true);
  for (const name of ignored) delete options[name];
  for (const [name, spec] of Object.entries(specs)) checkOption(options[name], name, spec);
  checkArguments(positionals, target);
  return { arguments: positionals, options: options as OptionValues };
}

/** Reads an option's value. A flag after an option means that the value is missing. */
function readValue(
  { rawName, value, inlineValue }: { rawName: string; value?: string | undefined; inlineValue?: boolean | undefined },
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

function checkOption(value: unknown, name: string, { choices, list }: OptionSpec): void {
  const values = Array.isArray(value) ? value.map(String) : typeof value === "string" ? [value] : [];
  for (const each of values) {
    if (each === "") throw usageError(`--${name} has an empty ${list ? "name in its list" : "value"}`);
    const parts = each.split(",");
    // Several choices, as list options take them.
    if (list !== true && parts.length > 1 && parts.every((part) => choices?.includes(part)))
      throw usageError(`--${name} takes one value, not "${each}"`, "Choose one of them.");
    checkChoice(each, { text: `--${name} is "${each}"`, choices });
  }
}

function checkArguments(given: readonly string[], target: CommandTarget): void {
  const specs: readonly ArgumentSpec[] = target.command.arguments ?? [];
  const missing = specs.find((spec, index) => spec.optional !== true && given[index] === undefined);
  if (missing !== undefined) throw usageError(`${missing.name} is missing`, helpHint(target));
  given.forEach((value, index) => {
    const last = specs.at(-1);
    const spec = specs[index] ?? (last?.repeated ? last : undefined);
    if (spec === undefined) {
      const quotes = last?.isSentence && `Put quotes around ${last.name} if it has several words.`;
      throw usageError(`unexpected argument "${value}"`, quotes || helpHint(target));
    }
    if (value === "" && !spec.mayBeEmpty) throw usageError(`${spec.name} is empty`);
    checkChoice(value, { text: `unknown ${spec.name.toLowerCase()} "${value}"`, choices: spec.choices });
  });
}

/** Throws `text` with a suggestion if the value is not one of the choices. */
function checkChoice(value: string, { text, choices }: { text: string; choices: readonly string[] | undefined }): void {
  if (choices === undefined || choices.includes(value)) return;
  const all = `Choose from ${choices.join(", ")}.`;
  throw usageError(text, [didYouMean(value, choices), all].filter(Boolean).join(" "));
}

function helpHint({ path }: CommandTarget): string {
  return `See "plimsoll ${path.join(" ")} --help".`;
}

// Options of every command, and how flags are written.

/** Options of every command. */
const globalOptions: OptionSpecs = {
  json: { summary: "print one JSON value on stdout, even after a failure" },
  quiet: { short: "q", summary: "print no notes and no progress, only errors" },
  help: { short: "h", summary: "show this help" },
};

/** Options of the program without a command. */
const programOptions: OptionSpecs = { ...globalOptions, version: { short: "V", summary: "show the version" } };

export function withGlobalOptions({ options }: { readonly options: OptionSpecs }): OptionSpecs {
  return { ...options, ...globalOptions };
}

/** Options of a group of commands. */
export function groupOptions(path: readonly string[]): OptionSpecs {
  return path.length === 0 ? programOptions : globalOptions;
}

/** The flags of an option: `--quiet` and `-q`. */
export function listFlags(name: string, { short }: Pick<OptionSpec, "short">): string[] {
  return short === undefined ? [`--${name}`] : [`--${name}`, `-${short}`];
}

function allFlags(options: OptionSpecs): string[] {
  return Object.entries(options).flatMap(([name, spec]) => listFlags(name, spec));
}

/** Returns the first word that is not an option of a group of commands, and the flags of its options. */
export function unknownSwitch(
  args: readonly string[],
  path: readonly string[],
): { readonly flag: string; readonly known: readonly string[] } | undefined {
  const known = allFlags(groupOptions(path));
  const flag = splitSwitches(args).find((each) => !known.includes(each));
  return flag === undefined ? undefined : { flag, known };
}

/** The words before `--`, with -qh split into -q and -h. */
function splitSwitches(args: readonly string[]): string[] {
  const before = args.slice(0, args.includes("--") ? args.indexOf("--") : undefined);
  return before.flatMap((each) => (/^-[a-z]+$/i.test(each) ? [...each.slice(1)].map((letter) => `-${letter}`) : each));
}

/** Whether one of the program's own options is set, anywhere on the command line. */
export function isSwitchedOn(name: "json" | "quiet" | "help" | "version", args: readonly string[]): boolean {
  const switches = splitSwitches(args);
  return listFlags(name, programOptions[name]!).some((flag) => switches.includes(flag));
}
