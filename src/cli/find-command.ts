import { ContextError } from "../errors.ts";
import { didYouMean } from "../text/index.ts";
import type { Command, CommandEntry, CommandGroup } from "./command.ts";
import { allFlags, groupOptions, switchesOf } from "./options.ts";

/** What a command line asks for: a command, or the list of those below a group (`path` is empty for the whole program). */
export type Target = CommandTarget | GroupTarget;

export interface Program extends CommandGroup {
  readonly summary: string;
}

export interface CommandTarget {
  readonly path: readonly string[];
  readonly summary: string;
  readonly command: Command;
  readonly rest: readonly string[];
}

export interface GroupTarget {
  readonly path: readonly string[];
  readonly summary: string;
  readonly group: CommandGroup;
  readonly rest: readonly string[];
}

/** Follows the words of the command line down the table, loading only what lies on the way. Switches may stand before the command. */
export async function findCommand(args: readonly string[], program: Program): Promise<Target> {
  let target: GroupTarget = { path: [], summary: program.summary, group: program, rest: args };
  for (;;) {
    const at = target.rest.findIndex((each) => !each.startsWith("-"));
    refuseUnknownSwitches(target.rest.slice(0, at === -1 ? undefined : at), target.path);
    if (at === -1) return target;
    const entry = findEntry(target, target.rest[at]!);
    const found = await entry.load();
    const path = [...target.path, entry.name];
    const next = { path, summary: entry.summary, rest: target.rest.toSpliced(at, 1) };
    if (!("subcommands" in found)) return { ...next, command: found };
    target = { ...next, group: found };
  }
}

/** For help of a command, where whatever else was given would be ignored. */
export function refuseRest({ path, rest }: CommandTarget): void {
  const known = allFlags(groupOptions(path));
  const extra = switchesOf(rest).find((each) => !known.includes(each));
  if (extra === undefined) return;
  throw new ContextError("usage", `unexpected argument "${extra}"`, {
    hint: `The help of a command is "plimsoll help ${path.join(" ")}".`,
  });
}

function refuseUnknownSwitches(switches: readonly string[], path: readonly string[]): void {
  const known = allFlags(groupOptions(path));
  for (const flag of switchesOf(switches)) {
    if (known.includes(flag)) continue;
    throw new ContextError("usage", `unknown option "${flag}"`, {
      hint: didYouMean(flag, known) ?? "Options of a command come after its name.",
    });
  }
}

function findEntry({ path, group }: GroupTarget, word: string): CommandEntry {
  const entry = group.subcommands.find((each) => each.name === word);
  if (entry !== undefined) return entry;
  const names = group.subcommands.map((each) => each.name);
  throw new ContextError("usage", `unknown command "${[...path, word].join(" ")}"`, {
    hint:
      didYouMean(word, path.length === 0 ? [...names, "help"] : names) ?? `Commands are ${names.join(", ")}.`,
  });
}
