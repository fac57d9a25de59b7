/** The options that the frame itself has, and how an option is spelled. The one place for both. */
import type { OptionSpec, OptionSpecs } from "./command.ts";
import { versionOption } from "./version.ts";

/** What every command takes. */
const globalOptions: OptionSpecs = {
  json: { summary: "print one JSON value on stdout, also on failure" },
  quiet: { short: "q", summary: "no notes and no progress, only errors" },
  help: { short: "h", summary: "show this help" },
};

/** What the program takes without a command. */
const programOptions: OptionSpecs = { ...globalOptions, version: versionOption };

/** All options of a command. */
export function optionsOf({ options }: { readonly options: OptionSpecs }): OptionSpecs {
  return { ...options, ...globalOptions };
}

/** The options of a place in the command table that is no command. */
export function groupOptions(path: readonly string[]): OptionSpecs {
  return path.length === 0 ? programOptions : globalOptions;
}

/** The flags that stand for an option: `--quiet` and `-q`. */
export function flagsOf(name: string, { short }: Pick<OptionSpec, "short">): string[] {
  return short === undefined ? [`--${name}`] : [`--${name}`, `-${short}`];
}

/** Every flag of these options. */
export function allFlags(options: OptionSpecs): string[] {
  return Object.entries(options).flatMap(([name, spec]) => flagsOf(name, spec));
}

/** What stands before `--`, with -qh taken apart. */
export function switchesOf(args: readonly string[]): string[] {
  const before = args.slice(0, args.includes("--") ? args.indexOf("--") : undefined);
  return before.flatMap((each) =>
    /^-[a-z]+$/i.test(each) ? [...each.slice(1)].map((letter) => `-${letter}`) : each,
  );
}

/** Whether one of the program's own options is switched on, wherever it stands. */
export function isSwitchedOn(name: "json" | "quiet" | "help" | "version", args: readonly string[]): boolean {
  const switches = switchesOf(args);
  return flagsOf(name, programOptions[name]!).some((flag) => switches.includes(flag));
}
