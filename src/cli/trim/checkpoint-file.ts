/** The state of a session in a file of the user's choice. */
import { parse, relative, resolve } from "node:path";
import { ContextError } from "../../errors.ts";
import type { Checkpoint } from "../../history/index.ts";
import { fromByteString, toByteString } from "../../text/index.ts";
import { type ChangeOptions, changeFile, type FileChange } from "../../workspace/index.ts";
import type { Call } from "../command.ts";
import { parseJson } from "../parse-json.ts";

export interface CheckpointFile {
  /** As it is shown. */
  readonly file: string;
  /** As it was read, unchecked; undefined where there is no file yet. */
  readonly checkpoint: Checkpoint | undefined;
  /** Refused if the file is no longer what was read: of two runs at once, one would undo what the other decided. */
  write(next: Checkpoint): Promise<void>;
}

/** What could not be written later is refused at once. */
export async function openCheckpoint(
  name: string,
  { cwd, env }: Pick<Call, "cwd" | "env">,
): Promise<CheckpointFile> {
  const path = resolve(cwd, name);
  const file = relative(cwd, path) || ".";
  const change = (options: Pick<ChangeOptions, "change" | "dryRun">): Promise<FileChange> =>
    changeFile(path, { root: parse(path).root, env, ...options }).catch((error: unknown) => {
      throw withFile(error, file);
    });
  const { before } = await change({ dryRun: true, change: (current) => current ?? "" });
  return {
    file,
    checkpoint: before === undefined ? undefined : parseCheckpoint(before, file),
    async write(next) {
      const bytes = toByteString(`${JSON.stringify(next)}\n`);
      await change({
        change: (current) => {
          if (current === before || current === bytes) return bytes;
          throw new ContextError("write_failed", "another run changed it meanwhile", {
            hint: "Run the command again.",
          });
        },
      });
    },
  };
}

/** An object at least: what is in it is checked where it is used. */
function parseCheckpoint(bytes: string, file: string): Checkpoint {
  try {
    const value = parseJson(fromByteString(bytes), { file });
    if (typeof value === "object" && value !== null) return value as Checkpoint;
    throw new ContextError("unreadable_input", "is no checkpoint");
  } catch (error) {
    throw withFile(
      error,
      file,
      "Move it away: the history is trimmed anew, at the price of one cache break.",
    );
  }
}

/** An expected error with the file that it is about. */
export function withFile(error: unknown, file: string, advice?: string): unknown {
  if (!(error instanceof ContextError)) return error;
  const { code, message, hint = advice, line } = error;
  return new ContextError(code, message, { hint, file, line, cause: error });
}
