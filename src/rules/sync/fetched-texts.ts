/** The texts for fetch markers and the skills of repositories, pinned beside the packs: `fetched/` holds one file for each
 *  text and one folder for each skill, and `index.json` with source, hash and date. People commit the folder, so every machine injects the same bytes, online or not. */

import { createHash } from "node:crypto";
import { join } from "node:path";
import type { ContextError } from "../../core/errors.ts";
import {
  fitForeignText,
  isText,
  isTime,
  isWhole,
  listOf,
  objectOf,
  readJson,
  toByteString,
} from "../../core/text/index.ts";
import {
  attemptChange,
  configDirectory,
  type Environment,
  exists,
  followLinks,
  readForeignText,
} from "../../host/index.ts";
import type { FetchMarker } from "../packs/index.ts";

/** Where the texts of one scope are pinned. */
export interface PinFolder {
  /** The folder that holds `fetched/`. */
  readonly directory: string;
  /** Nothing outside of this folder is written. */
  readonly root: string;
  readonly env: Environment;
}

/** A project keeps the texts of every layer that it uses. The user's folder keeps those of `inject --global`. */
export function pinFolder(
  scope: "project" | "global",
  { root, env }: { readonly root: string; readonly env: Environment },
): PinFolder {
  const own = configDirectory(env);
  return scope === "project" ? { directory: join(root, ".plimsoll"), root, env } : { directory: own, root: own, env };
}

/** Identifies one fetch. */
export type FetchKey = Pick<FetchMarker, "url" | "format" | "selector">;

/** One entry of the index. */
export interface Pin {
  readonly file: string;
  readonly url: string;
  readonly format: string;
  readonly selector?: string | undefined;
  /** The limit that the text was cut to. Absent if the text is whole. */
  readonly max_lines?: number | undefined;
  readonly max_tokens?: number | undefined;
  /** Of the text with LF line ends: git may check it out with others. */
  readonly sha256: string;
  readonly fetched: string;
}

/** A skill of a repository in the index. */
export interface SkillPin {
  readonly name: string;
  readonly source: string;
  readonly revision: string;
  readonly path: string;
  readonly commit: string;
  /** Of all files, with LF line ends. */
  readonly sha256: string;
}

export interface PinnedText {
  readonly pin: Pin;
  readonly text: string;
}

/** A text, or why there is none: it was never fetched, or the file named is unusable. */
export type FoundPin = PinnedText | { readonly missing: true } | { readonly file: string; readonly reason: string };

/** The longest text. Sync cuts longer ones, so a longer file is not its work. */
const maxPinnedBytes: number = 1024 * 1024;

const indexName = "index.json";

export interface Pins {
  /** Returns the pinned text for a marker, as it was when the pins were opened. */
  find(key: FetchKey): Promise<FoundPin>;
  /** Writes the file of one text. The index does not name it yet. Returns the problem if it fails. */
  write(text: {
    readonly key: FetchKey;
    readonly text: string;
    /** Absent limits keep the whole text. */
    readonly limits: TextLimits;
    /** ISO 8601. */
    readonly fetched: string;
  }): Promise<PinnedText | { readonly problem: string }>;
  /** Adds texts to the index, and removes those that no marker names any more, with their files: `wanted` are the texts
   *  that a marker names, absent if all are kept. Returns the problem if it fails. */
  change(change: {
    readonly added: readonly Pin[];
    readonly wanted?: readonly FetchKey[] | undefined;
    /** Instead of the skills that the index names. */
    readonly skills?: readonly SkillPin[] | undefined;
  }): Promise<string | undefined>;
}

/** Opens the pinned texts of a folder. Reads the index now and each text once. */
export async function openPins(folder: PinFolder): Promise<Pins> {
  const index = await readPinIndex(folder);
  const found = new Map<string, Promise<FoundPin>>();
  return {
    async find(key) {
      if ("reason" in index) return index;
      const name = pinnedName(key);
      const pin = index.pins.find(({ file }) => file === name);
      if (pin === undefined) return { missing: true };
      const reading = found.get(name) ?? readPinned(folder, pin);
      found.set(name, reading);
      return reading;
    },
    async write({ key, text, limits, fetched }) {
      const { url, format, selector } = key;
      const fitted = fitToMarker(text, limits);
      const cut = fitted.truncated ? { max_lines: limits.maxLines, max_tokens: limits.maxTokens } : {};
      const file = pinnedName(key);
      const problem = await writeOwn(folder, file, () => toByteString(fitted.text));
      if (problem !== undefined) return { problem };
      const pin = { file, url, format, selector, ...cut, sha256: hashText(fitted.text), fetched };
      return { pin, text: fitted.text };
    },
    change: (change) => changeIndex(folder, change),
  };
}

async function readPinned(folder: PinFolder, pin: Pin): Promise<FoundPin> {
  const file = join(folder.directory, "fetched", pin.file);
  const read = await readOwn(folder, pin.file);
  if (read === undefined) return { missing: true };
  if ("reason" in read) return { file, reason: read.reason };
  if (hashText(read.text) === pin.sha256) return { pin, text: read.text };
  const reason = "differs from its hash in index.json, because somebody edited it or a sync was interrupted. ";
  return { file, reason: `${reason}Run \`plimsoll sync\` to fetch it again, or restore the file` };
}

/** A missing index is empty. */
export async function readPinIndex(
  folder: PinFolder,
): Promise<
  | { readonly pins: readonly Pin[]; readonly skills: readonly SkillPin[] }
  | { readonly file: string; readonly reason: string }
> {
  const file = join(folder.directory, "fetched", indexName);
  const read = await readOwn(folder, indexName);
  if (read === undefined) return { pins: [], skills: [] };
  if ("reason" in read) return { file, reason: read.reason };
  const index = readJson(read.text, isIndex);
  if (index !== undefined) return { pins: index.texts, skills: index.skills ?? [] };
  return { file, reason: "is damaged, so nothing that was fetched can be used. Run `plimsoll sync` to write it again" };
}

/** A name of a branch would let the index choose another text. */
const isCommit = (value: unknown): value is string => isText(value) && /^[\da-f]{40,64}$/.test(value);

const isIndex = objectOf(
  {
    texts: listOf(
      objectOf(
        { file: isText, url: isText, format: isText, sha256: isText, fetched: isTime },
        { selector: isText, max_lines: isWhole, max_tokens: isWhole },
      ),
    ),
  },
  {
    skills: listOf(
      objectOf({ name: isText, source: isText, revision: isText, path: isText, commit: isCommit, sha256: isText }),
    ),
  },
);

/** Reads a file of the folder with LF line ends. Returns `undefined` if there is none. A link is refused: it could show
 *  another file of the machine. */
async function readOwn(
  { directory }: PinFolder,
  name: string,
): Promise<{ readonly text: string } | { readonly reason: string } | undefined> {
  const path = join(directory, "fetched", name);
  const linked = await explainLink(directory, name);
  if (linked !== undefined) return { reason: linked };
  if (!(await exists(path))) return undefined;
  // Line ends of another system may double the size.
  const read = readForeignText(path, { within: directory, refuseLink: true, maxBytes: 2 * maxPinnedBytes });
  return "text" in read ? { text: read.text.replace(/\r\n/g, "\n") } : { reason: read.reason };
}

async function explainLink(directory: string, name: string): Promise<string | undefined> {
  const [real, folder] = await Promise.all([
    followLinks(join(directory, "fetched", name)),
    followLinks(directory),
  ]).catch(() => []);
  const isLink = real === undefined || folder === undefined || real !== join(folder, "fetched", name);
  return isLink ? "leads through a symbolic link. Fetched texts are plain files: remove the link" : undefined;
}

/** Readable, and always a plain name: it depends on the marker alone, never on what the index says. */
export function pinnedName({ url, format, selector }: FetchKey): string {
  // The selector has no effect on a raw text.
  const key = JSON.stringify([url, format, format === "raw" ? "" : (selector ?? "")]);
  const words = url
    .replace(/^\w+:\/\//, "")
    .replace(/[?#].*$/s, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+/, "")
    .slice(0, 60)
    .replace(/-+$/, "");
  return `${words || "text"}-${hashText(key).slice(0, 8)}.md`;
}

export function hashText(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

export interface TextLimits {
  readonly maxLines?: number | undefined;
  readonly maxTokens?: number | undefined;
}

/** Cuts a text to its limits and makes it safe to read. */
export function fitToMarker(text: string, { maxLines, maxTokens }: TextLimits): ReturnType<typeof fitForeignText> {
  // A token is four bytes here, as for every token budget without a counter.
  const maxBytes = maxTokens === undefined ? maxPinnedBytes : Math.min(maxTokens * 4, maxPinnedBytes);
  return fitForeignText(text, { maxLines, maxBytes });
}

async function changeIndex(
  folder: PinFolder,
  { added, wanted, skills }: Parameters<Pins["change"]>[0],
): Promise<string | undefined> {
  const index = await readPinIndex(folder);
  const isDamaged = "reason" in index;
  const names = wanted && new Set(wanted.map(pinnedName));
  const isUnwanted = ({ file }: Pin) => names?.has(file) === false;
  const unwanted = isDamaged ? [] : index.pins.filter(isUnwanted);
  const isSame = skills === undefined || (!isDamaged && JSON.stringify(skills) === JSON.stringify(index.skills));
  if (!isDamaged && added.length === 0 && unwanted.length === 0 && isSame) return undefined;
  const problem = await writeOwn(folder, indexName, (current) => {
    const before = readJson(Buffer.from(current ?? "", "latin1").toString(), isIndex);
    const kept = (before?.texts ?? []).filter(
      (pin) => !isUnwanted(pin) && added.every(({ file }) => file !== pin.file),
    );
    const texts = [...kept, ...added].sort((a, b) => (a.file < b.file ? -1 : 1));
    const pinned = skills ?? before?.skills ?? [];
    // Without texts and skills there is no index.
    if (texts.length + pinned.length === 0) return undefined;
    return toByteString(`${JSON.stringify({ texts, ...(pinned.length > 0 && { skills: pinned }) }, null, 2)}\n`);
  });
  if (problem !== undefined) return problem;
  for (const pin of unwanted) {
    // An index of the repository must not name another file of it.
    if (pin.file === pinnedName(pin as FetchKey)) await writeOwn(folder, pin.file, () => undefined);
  }
  return undefined;
}

/** Changes a file of the folder. Returns the problem if it fails. */
export async function writeOwn(
  { directory, root, env }: PinFolder,
  name: string,
  change: (current: string | undefined) => string | undefined,
): Promise<string | undefined> {
  const path = join(directory, "fetched", name);
  const described = ({ message, hint }: Pick<ContextError, "message" | "hint">) =>
    `${path}: ${message}${hint === undefined ? "" : `. ${hint}`}`;
  const linked = await explainLink(directory, name);
  if (linked !== undefined) return described({ message: linked, hint: undefined });
  const plan = (current: string | undefined) => ({ after: change(current), facts: undefined });
  const { problem } = await attemptChange(path, { root, env, plan });
  return problem === undefined ? undefined : described(problem);
}
