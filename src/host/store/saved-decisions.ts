/** Where `trim` keeps the decisions of a conversation between two runs: in a file, or in a session of the store. */
import { parse, relative, resolve } from "node:path";
import {
  type Checkpoint,
  type ContextMetadata,
  createTrimmer,
  type Trimmer,
  type TrimmerOptions,
} from "../../conversation/history/index.ts";
import { ContextError } from "../../core/errors.ts";
import { fromByteString, toByteString } from "../../core/text/index.ts";
import { type ChangeOptions, changeFile, type FileChange } from "../files/change-file.ts";
import { parseJson } from "../files/messages-file.ts";
import type { Caller } from "../print/output.ts";
import { shownStore, storePath, withStore } from "../store-file.ts";

/** The decisions of one conversation. */
export interface SavedDecisions {
  /** Where they are, as shown to people. */
  readonly place: string;
  /** What a trimmer continues from. A checkpoint is as read, unchecked. Programs with the RFC store only metadata. */
  readonly options: Pick<TrimmerOptions, "checkpoint" | "metadata" | "store" | "sessionId">;
  /** Creates a trimmer that continues from them. The caller has checked its options, so an error is about the saved
   *  decisions. */
  open(options: TrimmerOptions): Promise<Trimmer>;
  /** Saves what the trimmer has decided. Throws if another run has decided something else meanwhile. */
  save(trimmer: Pick<Trimmer, "checkpoint">): Promise<void>;
}

/** Where decisions are: in a checkpoint file, or in a session of a store. */
export type DecisionsPlace =
  | { readonly checkpoint: string }
  | { readonly session: string; readonly store?: string | undefined };

/** Opens the decisions at `at` during `work`. */
export async function withDecisions<Result>(
  at: DecisionsPlace,
  caller: Caller,
  work: (saved: SavedDecisions) => Promise<Result>,
): Promise<Result> {
  if ("checkpoint" in at) return work(await openCheckpoint(at.checkpoint, caller));
  const place = await storePath(at.store, caller);
  const shown = shownStore(place, caller.cwd, caller.env);
  return withStore(place, (store) =>
    work({
      ...decisionsAt(shown, { store, sessionId: at.session }),
      async save(trimmer) {
        try {
          await trimmer.checkpoint();
        } catch (error) {
          if (!(error instanceof ContextError) || error.code !== "store_conflict") throw error;
          const hint = "Run the command again: it continues with the stored decisions.";
          throw new ContextError(error.code, error.message, { hint, cause: error });
        }
      },
    }),
  );
}

function decisionsAt(place: string, options: SavedDecisions["options"]): Omit<SavedDecisions, "save"> {
  return {
    place,
    options,
    async open(given) {
      try {
        return await createTrimmer({ ...given, ...options });
      } catch (error) {
        throw withFile(error, place);
      }
    },
  };
}

/** Opens a checkpoint. Throws at once if it could not be written later. */
export async function openCheckpoint(name: string, { cwd, env }: Pick<Caller, "cwd" | "env">): Promise<SavedDecisions> {
  const path = resolve(cwd, name);
  const file = relative(cwd, path) || ".";
  const change = (options: Pick<ChangeOptions, "change" | "dryRun">): Promise<FileChange> =>
    changeFile(path, { root: parse(path).root, env, ...options }).catch((error: unknown) => {
      throw withFile(error, file);
    });
  const { before } = await change({ dryRun: true, change: (current) => current ?? "" });
  return {
    ...decisionsAt(file, before === undefined ? {} : parseState(before, file)),
    async save(trimmer) {
      const bytes = toByteString(`${JSON.stringify(await trimmer.checkpoint())}\n`);
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

/** Parses a checkpoint. Only checks that it is an object; the trimmer checks its content. */
function parseState(bytes: string, file: string): SavedDecisions["options"] {
  try {
    const value = parseJson(fromByteString(bytes), { file });
    if (typeof value === "object" && value !== null) {
      return "trimmed_up_to_message_index" in value
        ? { metadata: value as object as ContextMetadata }
        : { checkpoint: value as Checkpoint };
    }
    throw new ContextError("unreadable_input", "is not a checkpoint");
  } catch (error) {
    throw withFile(error, file, "Move it away: the history is then trimmed again, which costs one cache miss.");
  }
}

/** Adds the file to an expected error. */
function withFile(error: unknown, file: string, advice?: string): unknown {
  if (!(error instanceof ContextError)) return error;
  const { code, message, hint = advice, line } = error;
  return new ContextError(code, message, { hint, file, line, cause: error });
}
