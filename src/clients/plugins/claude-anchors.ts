/** What a summary of a conversation must not lose: the files, the names that the agent used, and the ids for recall.
 *  Only single names pass, so that what a tool printed cannot become an instruction. */
import { subjectOf, textsIn } from "../../core/messages/index.ts";
import { visitNames } from "../../core/text/index.ts";
import type { Counter } from "../../core/tokens/index.ts";
import { notesIn, type TranscriptBlock } from "./claude-transcript.ts";

export interface AnchorOptions {
  /** Whether we wrote the note with this id. A file may contain text that looks like one. */
  readonly isOwn: (id: string) => boolean;
  readonly counter: Counter;
  readonly maxTokens: number;
  readonly maxCharacters: number;
}

/** Returns lines of anchors, newest first in each line, or undefined if there are none. */
export function renderAnchors(blocks: readonly TranscriptBlock[], limits: AnchorOptions): string | undefined {
  const found = collect(blocks, limits);
  const lines: string[] = [];
  let tokens = limits.maxTokens;
  let characters = limits.maxCharacters;
  for (const [title, entries, share] of sectionsOf(found)) {
    const most = { tokens: tokens * share, characters: characters * share };
    const line = fitEntries(title, entries, { ...most, counter: limits.counter });
    if (line === undefined) continue;
    lines.push(line);
    tokens -= limits.counter.count(`${line}\n`);
    characters -= line.length + 1;
  }
  return lines.length === 0 ? undefined : lines.join("\n");
}

interface Anchors {
  readonly edited: ReadonlySet<string>;
  readonly read: ReadonlySet<string>;
  readonly names: ReadonlySet<string>;
  /** With what each result was about. */
  readonly recalls: ReadonlyMap<string, string>;
}

/** The share is of what the sections before it have left. */
function sectionsOf({ edited, read, names, recalls }: Anchors): [title: string, entries: string[], share: number][] {
  const latest = (some: Iterable<string>): string[] => [...some].reverse();
  const ids = [...recalls].reverse().map(([id, about]) => (isEntry(about) ? `${id}=${about}` : id));
  return [
    ["edited", latest(edited), 0.5],
    ["recall", ids, 0.5],
    ["read", latest(read).filter((path) => !edited.has(path)), 0.5],
    ["names", latest(names).filter((name) => !edited.has(name) && !read.has(name)), 1],
  ];
}

const isEntry = (text: string): boolean => /^[\p{L}\p{N}_./\\:#@~+=-]{1,120}$/u.test(text);

function collect(blocks: readonly TranscriptBlock[], { isOwn }: AnchorOptions): Anchors {
  const [edited, read, names] = [new Set<string>(), new Set<string>(), new Set<string>()];
  const recalls = new Map<string, string>();
  const subjects = new Map<unknown, string>();
  const visit: Readonly<Record<string, (block: TranscriptBlock) => void>> = {
    tool_use({ id, name, input }) {
      subjects.set(id, subjectOf(input) ?? "");
      const path: unknown = Object(input).file_path ?? Object(input).notebook_path;
      if (typeof path === "string" && isEntry(path)) addLatest(isEdit(name) ? edited : read, path);
      for (const text of textsIn(input)) addNames(names, text);
    },
    text: ({ text }) => addNames(names, String(text)),
    tool_result(block) {
      for (const { id } of notesIn(block)) if (isOwn(id)) recalls.set(id, subjects.get(block.tool_use_id) ?? "");
    },
  };
  for (const block of blocks) if (Object.hasOwn(visit, String(block.type))) visit[String(block.type)]?.(block);
  return { edited, read, names, recalls };
}

function isEdit(tool: unknown): boolean {
  return /edit|write/i.test(String(tool));
}

function addLatest(names: Set<string>, name: string): void {
  names.delete(name);
  names.add(name);
}

/** Longer texts are data. */
const mostCharacters = 20_000;

function addNames(names: Set<string>, text: string): void {
  const start = text.slice(0, mostCharacters);
  visitNames(start, (from, to) => {
    const name = start.slice(from, to);
    if (isEntry(name)) addLatest(names, name);
  });
}

function fitEntries(
  title: string,
  entries: readonly string[],
  most: { readonly tokens: number; readonly characters: number; readonly counter: Counter },
): string | undefined {
  let line = `${title}:`;
  let tokens = most.counter.count(line);
  for (const entry of entries) {
    const added = most.counter.count(` ${entry}`);
    if (tokens + added > most.tokens || line.length + entry.length + 1 > most.characters) break;
    line += ` ${entry}`;
    tokens += added;
  }
  return line === `${title}:` ? undefined : line;
}
