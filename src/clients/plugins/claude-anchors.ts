/** Lists what a summary of a conversation must not lose: files, names that the agent used, and ids for recall. Only single
 *  names are listed, so text that a tool printed cannot become an instruction. */
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
  const { edited, read, names, recalls } = collectAnchors(blocks, limits);
  const ids = [...recalls].map(([id, about]) => (isEntry(about) ? `${id}=${about}` : id));
  // Each section may use this share of what the sections before it left over.
  const sections: readonly [title: string, entries: Iterable<string>, share: number][] = [
    ["edited", edited, 0.5],
    ["recall", ids, 0.5],
    ["read", [...read].filter((path) => !edited.has(path)), 0.5],
    ["names", [...names].filter((name) => !edited.has(name) && !read.has(name)), 1],
  ];
  const lines: string[] = [];
  let tokens = limits.maxTokens;
  let characters = limits.maxCharacters;
  for (const [title, entries, share] of sections) {
    const line = fitEntries(title, [...entries].reverse(), {
      maxTokens: tokens * share,
      maxCharacters: characters * share,
      counter: limits.counter,
    });
    if (line === undefined) continue;
    lines.push(line);
    tokens -= limits.counter.count(`${line}\n`);
    characters -= line.length + 1;
  }
  return lines.length === 0 ? undefined : lines.join("\n");
}

const isEntry = (text: string): boolean => /^[\p{L}\p{N}_./\\:#@~+=-]{1,120}$/u.test(text);

/** Collects files, names, and the ids of recalls with what each result was about. */
function collectAnchors(blocks: readonly TranscriptBlock[], { isOwn }: Pick<AnchorOptions, "isOwn">) {
  const [edited, read, names] = [new Set<string>(), new Set<string>(), new Set<string>()];
  const recalls = new Map<string, string>();
  const subjects = new Map<unknown, string>();
  const visit: Readonly<Record<string, (block: TranscriptBlock) => void>> = {
    tool_use({ id, name, input }) {
      subjects.set(id, subjectOf(input) ?? "");
      const path: unknown = Object(input).file_path ?? Object(input).notebook_path;
      if (typeof path === "string" && isEntry(path)) addLatest(/edit|write/i.test(String(name)) ? edited : read, path);
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

function addLatest(names: Set<string>, name: string): void {
  names.delete(name);
  names.add(name);
}

function addNames(names: Set<string>, text: string): void {
  // Longer texts are file contents or data, and their names would crowd out the others.
  const start = text.slice(0, 20_000);
  visitNames(start, (from, to) => {
    const name = start.slice(from, to);
    if (isEntry(name)) addLatest(names, name);
  });
}

function fitEntries(
  title: string,
  entries: readonly string[],
  { maxTokens, maxCharacters, counter }: Omit<AnchorOptions, "isOwn">,
): string | undefined {
  let line = `${title}:`;
  let tokens = counter.count(line);
  for (const entry of entries) {
    const added = counter.count(` ${entry}`);
    if (tokens + added > maxTokens || line.length + entry.length + 1 > maxCharacters) break;
    line += ` ${entry}`;
    tokens += added;
  }
  return line === `${title}:` ? undefined : line;
}
