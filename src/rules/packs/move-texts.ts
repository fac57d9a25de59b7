/** Turns the instruction files of AI tools into packs that take the place of the files. Each text is in one pack, and
 *  the pack is for the tools that loaded the text before. */
import { type Duplicate, keepBlocks, listBlocks, type TextPart } from "./import-duplicates.ts";
import {
  type EarlierPack,
  type ImportedPack,
  type InstructionFile,
  type ParsedInstructions,
  parseInstructions,
  readMarkdownLines,
  renderParts,
  splitParts,
  uniqueIds,
} from "./import-texts.ts";

export interface LoadedInstructions extends InstructionFile {
  /** Ids of the AI tools that load the file and that Plimsoll writes for. */
  readonly readers: readonly string[];
  /** Set if `readers` is empty: the tool of `tools` whose file the tools that load this one also load. */
  readonly servedBy?: string | undefined;
}

export interface MoveTextsOptions {
  /** Ids that a new pack must not have. */
  readonly takenIds: readonly string[];
  /** Packs that have some of the texts already. */
  readonly earlier: readonly EarlierPack[];
  /** Ids of all AI tools that Plimsoll writes for. */
  readonly tools: readonly string[];
  /** Those of them whose file other tools read too. */
  readonly sharedTools: readonly string[];
  /** The block has no title of its own, so headings keep their level. */
  readonly isBare: boolean;
}

export interface MovedTexts {
  readonly packs: readonly ImportedPack[];
  /** The files whose text is in the packs. */
  readonly moved: readonly { readonly path: string; readonly duplicates: readonly Duplicate[] }[];
  /** Files that stay as they are. */
  readonly kept: readonly { readonly path: string; readonly reason: string }[];
}

export function moveTexts(files: readonly LoadedInstructions[], options: MoveTextsOptions): MovedTexts {
  const paths = new Set(files.map(({ path }) => path));
  const all = files.map((file) => ({ ...file, ...parseInstructions(file, paths) }));
  const kept = all
    .filter(({ isWider }) => isWider)
    .map(({ path, notes }) => ({ path, reason: `stays, because a pack is loaded more often: ${notes[0]}` }));
  const read = markTitles(all.filter(({ isWider }) => !isWider));
  const placed = read.filter(({ readers }) => readers.length > 0);
  const ordered = [
    ...placed.filter(({ globs }) => globs.length === 0),
    ...placed.filter(({ globs }) => globs.length > 0),
  ];
  const ids = uniqueIds(ordered, options.takenIds);
  const known = collectTexts(ordered, options.earlier);
  const takenIds = new Set([...options.takenIds, ...ids]);
  const packs: ImportedPack[] = [];
  const moved = ordered.map((file, index) => {
    const duplicates: Duplicate[] = [];
    const groups = new Map<string, Set<string>>();
    for (const { key, parts } of listBlocks(file.parts)) {
      const { readers, sameAs } = known.find(file, key);
      if (sameAs !== undefined) duplicates.push({ line: parts[0]!.line, sameAs });
      else groups.set(readers.join(), (groups.get(readers.join()) ?? new Set()).add(key));
    }
    packs.push(...createPacks(file, groups, { ...options, id: ids[index]!, takenIds }));
    return { path: file.path, duplicates };
  });
  for (const { path, readers, servedBy, globs, parts } of read) {
    if (readers.length > 0) continue;
    const blocks = listBlocks(parts).map(({ key, parts: [first] }) => {
      const sameAs = known.find({ globs, readers: servedBy === undefined ? [] : [servedBy] }, key).sameAs;
      return { line: first!.line, sameAs };
    });
    const duplicates = blocks.flatMap(({ line, sameAs }) => (sameAs === undefined ? [] : { line, sameAs }));
    const isRepeated = servedBy !== undefined && duplicates.length === blocks.length;
    if (isRepeated) moved.push({ path, duplicates });
    else kept.push({ path, reason: "stays, because inject has no other file for the tools that read it" });
  }
  return { packs, moved, kept };
}

type LoadedParts = ParsedInstructions & LoadedInstructions;

/** Removes what is only about the file: a title such as `# CLAUDE.md`, and the sentence that Claude Code writes under it.
 *  Marks titles that do not change what the text means, so that it is found under another title too. */
function markTitles(files: readonly LoadedParts[]): readonly LoadedParts[] {
  const about =
    /^This file (?:provides|contains|gives) (?:guidance|instructions|guidelines) (?:to|for) [^.]{1,60}(?:\.ai\/code\))?(?: when| for| on)? work(?:ing)? (?:with code )?(?:in|on|with) this (?:repository|project|repo|codebase)\.?$/i;
  const isFileName = ({ level, text }: TextPart) => level === 1 && /^\.?[\w-]+\.mdc?$/i.test(text);
  const isAbout = ({ level, text }: TextPart) => level === undefined && about.test(text.replace(/\s+/g, " ").trim());
  const cleaned = files.map((file) => {
    const parts = file.parts.filter((part) => !isFileName(part) && !isAbout(part));
    const [first, ...rest] = parts;
    const isTitle = first?.level === 1 && rest.every(({ level }) => level !== 1);
    return { file, parts, title: isTitle ? first.text : undefined };
  });
  // The first file with a title names the project.
  const project = cleaned.find(
    ({ file, title }) => file.globs.length === 0 && title && !generalTitle.test(title),
  )?.title;
  return cleaned.map(({ file, parts, title }) => {
    // A text for the whole project says the same about a folder.
    const isNameless = title !== undefined && (title === project || file.nested || generalTitle.test(title));
    return { ...file, parts: isNameless ? [{ ...parts[0]!, isTitle: true as const }, ...parts.slice(1)] : parts };
  });
}

/** `Copilot instructions`, `Project guidelines`. */
const generalTitle =
  /^(?:(?:ai|agents?|claude|cursor|copilot|github|gemini|cli|windsurf|cline|codex|code|coding|project|repository|general|the|for|and|assistants?|instructions?|guidelines?|guide|guidance|rules?|conventions?|overview)(?:[\s:&-]+|$))+$/i;

/** Knows which tools load each text, and which file has it first. */
function collectTexts(files: readonly LoadedParts[], earlier: readonly EarlierPack[]) {
  interface Known {
    readonly readers: Set<string>;
    /** Absent for a pack of an earlier import, which is for every tool. */
    readonly first: LoadedParts | undefined;
    readonly sameAs: Duplicate["sameAs"];
  }
  const texts = new Map<string, Known>();
  const keyIn = (globs: readonly string[], key: string) => `${globs.join()}\n${key}`;
  const add = (parts: readonly TextPart[], globs: readonly string[], path: string, first?: LoadedParts) => {
    for (const block of listBlocks(parts)) {
      const key = keyIn(globs, block.key);
      const found = texts.get(key) ?? { readers: new Set(), first, sameAs: { path, line: block.parts[0]!.line } };
      for (const reader of first?.readers ?? []) found.readers.add(reader);
      texts.set(key, found);
    }
  };
  for (const { text, globs, path } of earlier) add(splitParts(readMarkdownLines(text)), globs, path);
  for (const file of files) add(file.parts, file.globs, file.path, file);
  return {
    /** `sameAs` is where the text is, if this file's copy is not needed. */
    find(
      file: Pick<LoadedParts, "globs" | "readers">,
      key: string,
    ): { readonly readers: readonly string[]; readonly sameAs?: Duplicate["sameAs"] | undefined } {
      const [own, always] = [texts.get(keyIn(file.globs, key)), texts.get(keyIn([], key))];
      const isFor = ({ readers, first }: Known) =>
        first === undefined || file.readers.every((each) => readers.has(each));
      const other = [always, own].find((each) => each !== undefined && each.first !== file && isFor(each));
      return { readers: [...(own?.readers ?? [])].sort(), sameAs: other?.sameAs };
    },
  };
}

/** Returns a pack for each group of tools. `groups` maps their ids, with commas, to the keys of the texts. */
function createPacks(
  { path, title, description, globs, nested, notes, parts }: LoadedParts,
  groups: ReadonlyMap<string, ReadonlySet<string>>,
  {
    id,
    takenIds,
    ...options
  }: Omit<MoveTextsOptions, "takenIds"> & { readonly id: string; readonly takenIds: Set<string> },
): ImportedPack[] {
  // Texts that more tools load come first.
  const sorted = [...groups].sort(([a], [b]) => b.split(",").length - a.split(",").length);
  return sorted.map(([group, keys], index) => {
    const own = keepBlocks(parts, ({ key }) => keys.has(key));
    // The title is not repeated.
    const text = index === 0 ? own : own.filter(({ level }) => level !== 1);
    let name = id;
    for (let count = 2; index > 0 && takenIds.has(name); count++) name = `${id}-${count}`;
    takenIds.add(name);
    return {
      id: name,
      name: title ?? name,
      description,
      globs,
      nested,
      from: path,
      text: renderParts(text, { keepLevels: options.isBare }),
      isEmpty: false,
      duplicates: [],
      notes: index === 0 ? notes : [],
      ...chooseTools(group.split(","), options),
    };
  });
}

/** Tools that share their file with others are named by exclusion, because the others get the pack too. */
function chooseTools(
  reached: readonly string[],
  { tools, sharedTools }: Pick<MoveTextsOptions, "tools" | "sharedTools">,
): Pick<ImportedPack, "tools" | "notTools"> {
  const others = tools.filter((each) => !reached.includes(each));
  if (others.length === 0) return {};
  return reached.some((each) => sharedTools.includes(each)) ? { notTools: others } : { tools: reached };
}
