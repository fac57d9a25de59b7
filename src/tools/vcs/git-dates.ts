/** Dates that a model names. git takes any text for one: what it does not know it leaves out, and "garbage" is now. */
import type { ToolFailure } from "../../session/index.ts";
import { failure, shown } from "../frame/failure.ts";
import type { Run } from "../frame/run.ts";
import { gitText } from "./repository.ts";

export interface GitDates {
  /** For `git log` and `git rev-list`. */
  readonly args: readonly string[];
  /** What was understood, in UTC. */
  readonly fields: { readonly since?: string; readonly until?: string };
}

type Named = Readonly<Partial<Record<"since" | "until", string | undefined>>>;

export async function readDates(run: Run, named: Named): Promise<GitDates | ToolFailure> {
  const args: string[] = [];
  const fields: { since?: string; until?: string } = {};
  for (const name of ["since", "until"] as const) {
    const text = named[name];
    if (text === undefined) continue;
    const option = isDate(text) ? await gitText(run, ["rev-parse", `--${name}=${text}`]) : "";
    if (typeof option !== "string") return option;
    const seconds = Number(/^--m(?:ax|in)-age=(\d+)$/.exec(option.trim())?.[1] ?? Number.NaN);
    if (Number.isNaN(seconds) || !isSameDay(text, seconds)) return noDate(name, text);
    args.push(option.trim());
    fields[name] = `${new Date(seconds * 1000).toISOString().slice(0, 19)}Z`;
  }
  return { args, fields };
}

function noDate(name: string, text: string): ToolFailure {
  const hint = "Such as 2026-01-31, `2026-01-31 14:00`, `yesterday` or `2 weeks ago`.";
  return failure("invalid_argument", `${name} is no date: ${shown(text)}.`, hint);
}

/** Words that mean something to git (its date.c, 2.39), and those between them that people write. */
const words =
  /^((second|minute|hour|day|week|month|year|fortnight)s?|ago|last|zero|one|two|three|four|five|six|seven|eight|nine|ten|now|today|yesterday|noon|midnight|tea|never|am|pm|t|z|utc|gmt|st|nd|rd|th|at|on|of|the|and|[ecmp][sd]t|ces?t|bst|jst|jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sept?(ember)?|oct(ober)?|nov(ember)?|dec(ember)?|(sun|mon|tues?|wed(nes)?|thu(rs?)?|fri|sat(ur)?)(day)?)$/;

function isDate(text: string): boolean {
  const found = text.toLowerCase().match(/[a-z]+/g) ?? [];
  return /^[\w\s:.,/@+-]*\w[\w\s:.,/@+-]*$/.test(text) && found.every((word) => words.test(word));
}

const dayMs = 86_400_000;

/** A year that git does not know, such as 2100, is left out like any other word. The clock's time of day and zone may be added. */
function isSameDay(text: string, seconds: number): boolean {
  const [, year, month, day] = /^\s*(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})/.exec(text) ?? [];
  if (year === undefined) return true;
  const named = Date.UTC(Number(year), Number(month) - 1, Number(day));
  return Number(month) <= 12 && Math.abs(named - seconds * 1000) <= 2 * dayMs;
}
