/** What must not be written, whatever a person asked for. The reasons are for them to read. */
import { access, constants } from "node:fs/promises";
import { ContextError } from "../../errors.ts";
import { maxTextBytes } from "./read-text.ts";
import type { FileState } from "./replace-file.ts";

/** Opening a pipe would wait for ever, and a directory cannot be replaced. */
export function refuseKind(state: FileState): void {
  if (state === undefined) return;
  const kind = state.mode & constants.S_IFMT;
  if (kind === constants.S_IFREG && state.size <= maxTextBytes) return;
  if (kind === constants.S_IFREG) {
    const size = `${Math.ceil(state.size / (1024 * 1024))} MB`;
    throw new ContextError("refused_target", `is too large to be read by any tool (${size})`);
  }
  const what = kind === constants.S_IFDIR ? "a directory" : "a pipe, socket or device";
  throw new ContextError("refused_target", `is ${what}, not a file`, { hint: "Move it out of the way." });
}

/** Our text is UTF-8: in the middle of anything else it would damage the file. Bytes above 127 are no reason: they survive. */
export function refuseContent(bytes: string | undefined): void {
  if (bytes === undefined) return;
  if (bytes.startsWith("\xff\xfe") || bytes.startsWith("\xfe\xff")) {
    throw new ContextError("refused_target", "is UTF-16 text", { hint: "Convert it to UTF-8." });
  }
  if (bytes.slice(0, 8192).includes("\0")) {
    throw new ContextError("refused_target", "is not a text file: it holds NUL bytes");
  }
}

/** A rename would go through whatever the file's own mode says, and root may do anything: so the mode is asked. */
export async function refuseReadOnly(target: string, state: FileState): Promise<void> {
  if (state === undefined) return;
  const isWritable = await access(target, constants.W_OK).then(
    () => (state.mode & constants.S_IWUSR) !== 0,
    () => false,
  );
  if (isWritable) return;
  const mode = (state.mode & 0o777).toString(8).padStart(4, "0");
  throw new ContextError("refused_target", `is read-only (mode ${mode})`, {
    hint: "Allow writing: chmod u+w.",
  });
}
