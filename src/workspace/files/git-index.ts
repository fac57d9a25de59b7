/** Reads the list of files that git tracks straight from its index: a millisecond, where starting git takes twenty.
 *  The format: git's Documentation/gitformat-index.adoc. */

export interface IndexEntry {
  /** From the root of the repository, with slashes. */
  readonly path: string;
  /** When git looked last; 0 where it does not know. */
  readonly bytes: number;
}

/** The regular files of an index, or nothing where it is not of a kind that is known here: then git must be asked. */
export function parseGitIndex(index: Buffer): IndexEntry[] | undefined {
  if (index.length < 12 || index.toString("latin1", 0, 4) !== "DIRC") return undefined;
  const version = index.readUInt32BE(4);
  if (version < 2 || version > 4) return undefined;
  // Nothing in the file names the hash. With the wrong size the first name does not have the length that its entry states.
  return parseEntries(index, version, 20) ?? parseEntries(index, version, 32);
}

/** Times, device, inode, mode, owner and size come before the hash, two bytes of flags after it. */
const beforeHash = 40;
const modeAt = 24;
const sizeAt = 36;
const regularFile = 0o100_000;

function parseEntries(index: Buffer, version: number, hashBytes: number): IndexEntry[] | undefined {
  const end = index.length - hashBytes;
  const entries: IndexEntry[] = [];
  let at = 12;
  let before: Buffer = Buffer.alloc(0);
  for (let left = index.readUInt32BE(8); left > 0; left--) {
    const name = nameOf(index, at, { version, hashBytes, before });
    if (name === undefined || name.next > end) return undefined;
    // A file in conflict has an entry for each of its versions.
    const isFile =
      (index.readUInt32BE(at + modeAt) & 0o170_000) === regularFile && !name.bytes.equals(before);
    const path = isFile ? name.bytes.toString("utf8") : "";
    if (isPlain(path)) entries.push({ path, bytes: index.readUInt32BE(at + sizeAt) });
    before = name.bytes;
    at = name.next;
  }
  return isSplit(index, at, end) ? undefined : entries;
}

interface EntryShape {
  readonly version: number;
  readonly hashBytes: number;
  /** The name of the entry before. */
  readonly before: Buffer;
}

function nameOf(
  index: Buffer,
  entryAt: number,
  { version, hashBytes, before }: EntryShape,
): Name | undefined {
  const flagsAt = entryAt + beforeHash + hashBytes;
  if (flagsAt + 4 > index.length) return undefined;
  const flags = index.readUInt16BE(flagsAt);
  const nameAt = flagsAt + ((flags & extended) === 0 ? 2 : 4);
  const name = version === 4 ? compressedName(index, nameAt, before) : paddedName(index, nameAt, entryAt);
  return name !== undefined && hasLength(name.bytes, flags) ? name : undefined;
}

const extended = 0x4000;
/** Longer names are stated with this length. */
const longestStated = 0xfff;

interface Name {
  readonly bytes: Buffer;
  readonly next: number;
}

/** Ends with one to eight NUL bytes, so that the next entry begins at a multiple of eight. */
function paddedName(index: Buffer, nameAt: number, entryAt: number): Name | undefined {
  const nul = index.indexOf(0, nameAt);
  if (nul === -1) return undefined;
  return { bytes: index.subarray(nameAt, nul), next: entryAt + ((nul - entryAt + 8) & ~7) };
}

/** How many bytes to take off the end of the name before, then what to add. */
function compressedName(index: Buffer, nameAt: number, before: Buffer): Name | undefined {
  let at = nameAt;
  let byte = index[at++] ?? 0;
  let removed = byte & 0x7f;
  while ((byte & 0x80) !== 0 && at < index.length) {
    byte = index[at++]!;
    removed = (removed + 1) * 128 + (byte & 0x7f);
  }
  const nul = index.indexOf(0, at);
  if (nul === -1 || removed > before.length) return undefined;
  const kept = before.subarray(0, before.length - removed);
  return { bytes: Buffer.concat([kept, index.subarray(at, nul)]), next: nul + 1 };
}

function hasLength({ length }: Buffer, flags: number): boolean {
  const stated = flags & longestStated;
  return length > 0 && (stated === longestStated ? length >= longestStated : length === stated);
}

/** A name that git itself would not write, or that is not UTF-8, names no file for us. */
function isPlain(path: string): boolean {
  return !path.includes("\uFFFD") && !/(?:^|\/)(?:\.{0,2}|\.git)(?:\/|$)/.test(path);
}

/** The extension `link` names a second file that holds the other entries. */
function isSplit(index: Buffer, from: number, end: number): boolean {
  for (let at = from; at + 8 <= end; at += 8 + index.readUInt32BE(at + 4)) {
    if (index.toString("latin1", at, at + 4) === "link") return true;
  }
  return false;
}
