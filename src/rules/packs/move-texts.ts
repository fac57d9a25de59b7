/** Turns the instruction files of AI tools into packs that take the place of the files. Each text is in one pack, and
 *  the pack is for the tools that loaded the text before. */
import { type Duplicate, keepBlocks, listBlocks, type TextPart } from "./import-duplicates.ts";
import {
  type EarlierPack,
  type ImportedPack,
  type InstructionFile,
  type ReadInstructions,
  readInstructions,
  readLines,
  renderParts,
  splitParts,
  uniqueIds,
} from "./import-texts.ts";

export interface LoadedInstructions extends InstructionFile {
  /** Ids of the AI tools that load the file. */
  readonly readers: readonly string[];
}

export interface MoveOptions {
  /** Ids that a new pack must not have. */
  readonly takenIds: readonly string[];
  /** Packs that have some of the texts already. */
  readonly earlier: readonly EarlierPack[];
  /** Ids of all AI tools that Plimsoll writes for. */
  readonly tools: readonly string[];
  /** Those of them whose file other tools read too. */
  readonly sharedTools: readonly string[];
}

export interface MovedTexts {
  readonly packs: readonly ImportedPack[];
  /** The files whose text is in the packs. */
  readonly moved: readonly { readonly path: string; readonly duplicates: readonly Duplicate[] }[];
  /** Files that stay as they are. */
  readonly kept: readonly { readonly path: string; readonly reason: string }[];
}

export function moveTexts(files: readonly LoadedInstructions[], options: MoveOptions): MovedTexts {
  const paths = new Set(files.map(({ path }) => path));
  const all = files.map((file) => ({ ...readInstructions(file, paths), readers: file.readers }));
  const kept = all
    .filter(({ isWider }) => isWider)
    .map(({ file, notes }) => ({ path: file.path, reason: `stays, because a pack is loaded more often: ${notes[0]}` }));
  const read = all
    .filter(({ isWider }) => !isWider)
    .map((each) => ({ ...each, parts: withoutBoilerplate(each.parts) }));
  const ordered = [...read.filter(({ globs }) => globs.length === 0), ...read.filter(({ globs }) => globs.length > 0)];
  const ids = uniqueIds(
    ordered.map(({ file }) => file),
    options.takenIds,
  );
  const known = collectTexts(ordered, options.earlier);
  const packs: ImportedPack[] = [];
  const moved = ordered.map((each, index) => {
    const duplicates: Duplicate[] = [];
    const groups = new Map<string, Set<string>>();
    for (const { key, parts } of listBlocks(each.parts)) {
      const { readers, sameAs } = known.find(each, key);
      if (sameAs !== undefined) duplicates.push({ line: parts[0]!.line, sameAs });
      else groups.set(readers.join(), (groups.get(readers.join()) ?? new Set()).add(key));
    }
    packs.push(...createPacks(each, groups, { ...options, id: ids[index]! }));
    return { path: each.file.path, duplicates };
  });
  return { packs, moved, kept };
}

type LoadedParts = ReadInstructions & { readonly readers: readonly string[] };

/** A title such as `# CLAUDE.md`, and the sentence that Claude Code writes under it, are about the file. */
function withoutBoilerplate(parts: readonly TextPart[]): readonly TextPart[] {
  const about =
    /^This file (?:provides|contains|gives) (?:guidance|instructions|guidelines) (?:to|for) [^.]{1,60}(?:\.ai\/code\))?(?: when| for| on)? work(?:ing)? (?:with code )?(?:in|on|with) this (?:repository|project|repo|codebase)\.?$/i;
  const isTitle = ({ level, text }: TextPart) => level === 1 && /^\.?[\w-]+\.mdc?$/i.test(text);
  const isAbout = ({ level, text }: TextPart) => level === undefined && about.test(text.replace(/\s+/g, " ").trim());
  return parts.filter((part) => !isTitle(part) && !isAbout(part));
}

/** Knows which tools load each text, and which file has it first. */
function collectTexts(files: readonly LoadedParts[], earlier: readonly EarlierPack[]) {
  interface Known {
    readonly readers: Set<string>;
    readonly first: LoadedParts | undefined;
    readonly sameAs: Duplicate["sameAs"];
  }
  const texts = new Map<string, Known>();
  const keyOf = (globs: readonly string[], key: string) => `${globs.join()}\n${key}`;
  const add = (parts: readonly TextPart[], globs: readonly string[], path: string, first?: LoadedParts) => {
    for (const block of listBlocks(parts)) {
      const key = keyOf(globs, block.key);
      const found = texts.get(key) ?? { readers: new Set(), first, sameAs: { path, line: block.parts[0]!.line } };
      for (const reader of first?.readers ?? []) found.readers.add(reader);
      texts.set(key, found);
    }
  };
  // A pack of an earlier import is for every tool.
  for (const { text, globs, path } of earlier) add(splitParts(readLines(text)), globs, path);
  for (const file of files) add(file.parts, file.globs, file.file.path, file);
  return {
    /** `sameAs` is where the text is, if this file's copy is not needed. */
    find(
      file: LoadedParts,
      key: string,
    ): { readonly readers: readonly string[]; readonly sameAs?: Duplicate["sameAs"] } {
      const own = texts.get(keyOf(file.globs, key))!;
      const whole = texts.get(keyOf([], key));
      const isElsewhere =
        file.globs.length > 0 && whole !== undefined && file.readers.every((each) => isReader(whole, each));
      const sameAs = isElsewhere ? whole.sameAs : own.first === file ? undefined : own.sameAs;
      return { readers: [...own.readers].sort(), ...(sameAs && { sameAs }) };
    },
  };
  function isReader({ readers, first }: Known, id: string): boolean {
    return first === undefined || readers.has(id);
  }
}

/** Returns a pack for each group of tools. `groups` maps their ids, with commas, to the keys of the texts. */
function createPacks(
  { file, title, description, globs, nested, notes, parts, readers }: LoadedParts,
  groups: ReadonlyMap<string, ReadonlySet<string>>,
  { id, tools, sharedTools, takenIds }: MoveOptions & { readonly id: string },
): ImportedPack[] {
  const own = readers.toSorted().join();
  // Texts that more tools load come first.
  const sorted = [...groups].sort(([a], [b]) => b.split(",").length - a.split(",").length);
  const isNamed = sorted.length === 1 || !groups.has(own);
  let titled = false;
  return sorted.map(([group, keys], index) => {
    const reached = group.split(",");
    const isShared = reached.some((each) => sharedTools.includes(each));
    const isForAll = tools.every((each) => reached.includes(each));
    const mine = keepBlocks(parts, ({ key }) => keys.has(key));
    // The title is not repeated.
    const text = titled ? mine.filter(({ level }, at) => level !== 1 || mine[at + 1]?.level === undefined) : mine;
    titled = true;
    const suffix = group === own || (isNamed && index === 0) ? "" : `-shared${index === 0 ? "" : `-${index + 1}`}`;
    const name = takenIds.includes(`${id}${suffix}`) ? `${id}${suffix}-2` : `${id}${suffix}`;
    return {
      id: name,
      name: title ?? name,
      description,
      globs,
      nested,
      from: file.path,
      text: renderParts(text),
      isEmpty: parts.length === 0,
      duplicates: [],
      notes: index === 0 ? notes : [],
      ...(isForAll
        ? {}
        : isShared
          ? { notTools: tools.filter((each) => !reached.includes(each)) }
          : { tools: reached }),
    };
  });
}
