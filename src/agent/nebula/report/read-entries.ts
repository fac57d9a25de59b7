/** A fabric block that is no YAML, read entry by entry: one that is wrong must not cost the others. */
import { quoteTexts } from "./quote-texts.ts";
import type { ReportProblem } from "./read-report.ts";
import { type Piece, type Section, splitBlock } from "./split-block.ts";

/** As of a whole document of YAML. */
interface Reading {
  readonly input: unknown;
  readonly problems: readonly ReportProblem[];
  lineOf(path: readonly PropertyKey[]): number;
}

export interface ReadEntries extends Reading {
  /** Whether the path leads to an entry that could not be read, as the problems tell: it keeps its place in its list. */
  isUnread(path: readonly PropertyKey[]): boolean;
}

type ReadYaml = (text: string) => Reading;

export function readEntries(block: string, readYaml: ReadYaml): ReadEntries {
  const { sections, strays } = splitBlock(block);
  const problems = strays.map((line) => ({ line, message: "what stands before the first key is not read" }));
  const lists = new Map<string, Slot[]>();
  const others = new Map<string, unknown>();
  for (const section of sections) {
    const list = lists.get(section.key) ?? [];
    lists.set(section.key, list);
    const head = readHead(section, readYaml);
    if (head.other !== undefined) others.set(section.key, head.other);
    for (const slot of [...head.slots, ...section.entries.map((entry) => readEntry(entry, readYaml))])
      list.push(slot);
    problems.push(...head.problems);
  }
  problems.push(...[...lists.values()].flat().flatMap(({ problem }) => problem ?? []));
  const slotAt = ([key, index]: readonly PropertyKey[]) => lists.get(String(key))?.[Number(index)];
  const values = [...lists].map(([key, slots]) => [key, slots.map(({ value }) => value)]);
  return {
    input: Object.fromEntries([...values, ...others]),
    problems,
    lineOf: (path) =>
      slotAt(path)?.lineOf(path.slice(2)) ?? sections.find(({ key }) => key === path[0])?.head.line ?? 1,
    isUnread: (path) => slotAt(path)?.problem !== undefined,
  };
}

/** An entry's place in its list. */
interface Slot {
  readonly value: unknown;
  readonly problem?: ReportProblem | undefined;
  /** In the block; the path is the one within the entry. */
  lineOf(path: readonly PropertyKey[]): number;
}

interface ReadHead {
  readonly slots: readonly Slot[];
  /** A value that is no list. */
  readonly other?: unknown;
  readonly problems: readonly ReportProblem[];
}

/** What stands right behind a key: a list in brackets, or a mistake. */
function readHead({ key, head }: Section, readYaml: ReadYaml): ReadHead {
  const { input, problems, lineOf } = readYaml(head.lines.join("\n"));
  const [problem] = problems;
  if (problem !== undefined) return { slots: [], problems: [inBlock(problem, head)] };
  const value = Object.values(input as object)[0] ?? [];
  if (!Array.isArray(value)) return { slots: [], other: value, problems: [] };
  const slots = value.map((each, index) => ({
    value: each,
    lineOf: (path: readonly PropertyKey[]) => head.line - 1 + lineOf([key, index, ...path]),
  }));
  return { slots, problems: [] };
}

/** As it is written, so that YAML keeps its meaning; where it is none, with its texts in quotes. */
function readEntry(entry: Piece, readYaml: ReadYaml): Slot {
  const text = entry.lines.join("\n");
  const asWritten = readYaml(text);
  const [problem] = asWritten.problems;
  const read = problem === undefined ? asWritten : readYaml(quoteTexts(text));
  if (problem !== undefined && read.problems.length > 0)
    return { value: undefined, problem: inBlock(problem, entry), lineOf: () => entry.line };
  return {
    value: (read.input as readonly unknown[])[0],
    lineOf: (path) => entry.line - 1 + read.lineOf([0, ...path]),
  };
}

function inBlock({ line, message }: ReportProblem, piece: Piece): ReportProblem {
  return { line: piece.line - 1 + line, message };
}
