/** The two ways to be in a file: as a marked block in somebody's text, or as a whole file of our own. Files are byte strings. */
import { ContextError } from "../../errors.ts";
import {
  findBlock,
  fromByteString,
  putBlock,
  readOwnership,
  removeBlock,
  renderOwnedFile,
  toByteString,
} from "../../text/index.ts";
import type { AdapterTarget } from "../adapter.ts";

/** How a target was found. `orphaned`: a marker without its partner; `foreign`: a file that somebody else wrote. */
export type FileState =
  | "unknown"
  | "not found"
  | "not injected"
  | "injected"
  | "edited"
  | "orphaned"
  | "foreign";

export function stateOf(current: string | undefined, target: AdapterTarget): FileState {
  if (current === undefined) return "not found";
  if (target.mode === "replace-file") {
    const ownership = readOwnership(current);
    return ownership.kind === "foreign" ? "foreign" : ownership.edited ? "edited" : "injected";
  }
  const found = findBlock(current, target.section);
  if (found.kind === "none") return "not injected";
  if (found.kind === "broken") return "orphaned";
  return found.block.edited ? "edited" : "injected";
}

/** A body in its place. Texts are decoded when they are asked for: most limits need only one of them, and packs can be large. */
export interface Placed {
  /** The file, as a byte string. */
  readonly bytes: string;
  /** The file, as text. */
  file(): string;
  /** The block with its markers, or the whole file that is ours. */
  block(): string;
}

/** Puts a body into a file; whether it may is for `refuseTarget` to say. */
export function placeBody(current: string | undefined, body: string, target: AdapterTarget): Placed {
  const byteBody = toByteString(body);
  const whole = target.mode === "replace-file";
  const bytes = whole ? ownFile(current, byteBody, target) : putBlock(current, target.section, byteBody);
  const file = once(() => fromByteString(bytes));
  const isBlock = whole || current === undefined;
  const block = isBlock ? file : once(() => fromByteString(blockIn(bytes, byteBody, target)));
  return { bytes, file, block };
}

/** A checkout that only turned the line ends of our file is no other text. */
function ownFile(current: string | undefined, body: string, { preamble = "" }: AdapterTarget): string {
  const file = renderOwnedFile({ preamble: toByteString(preamble), body });
  return current?.includes("\r\n") && current.replaceAll("\r\n", "\n") === file ? current : file;
}

/** The block as it stands in the file: with CRLF line ends it has more bytes. */
function blockIn(file: string, body: string, { section }: AdapterTarget): string {
  const found = file.includes("\r\n") ? findBlock(file, section) : undefined;
  if (found?.kind !== "block") return putBlock(undefined, section, body);
  const { start, end } = found.block;
  return `${file.slice(start, end)}${file.slice(start, end).includes("\r\n") ? "\r\n" : "\n"}`;
}

function once(make: () => string): () => string {
  let made: string | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/** The file without us: `undefined` when it was ours alone. */
export function removeFrom(current: string, target: AdapterTarget): string | undefined {
  return target.mode === "replace-file" ? undefined : removeBlock(current, target.section).file;
}

/** What a person edited or wrote is refused, unless forced; broken markers always. */
export function refuseTarget(
  state: FileState,
  { current = "", target, force }: { current: string | undefined; target: AdapterTarget; force: boolean },
): void {
  if (state === "orphaned") {
    const found = findBlock(current, target.section);
    const { line, problem } =
      found.kind === "broken" ? found : { line: undefined, problem: "broken markers" };
    throw new ContextError("refused_target", problem, { line });
  }
  if (force) return;
  if (state === "edited") {
    throw new ContextError("refused_target", "the block was edited by hand and stays as it is", {
      hint: "Move the edit into a pack, or overwrite it with --force.",
    });
  }
  if (state === "foreign") {
    throw new ContextError("refused_target", "the file was not written by plimsoll and stays as it is", {
      hint: "Move it away, or replace it with --force; a copy is kept as .bak.",
    });
  }
}
