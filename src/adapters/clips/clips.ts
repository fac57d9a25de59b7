/** Adapters without a file in the project: a text for the clipboard and, for `file-export`, the whole text in a file beside it. */
import { ContextError } from "../../errors.ts";
import type { Environment, FileChange } from "../../workspace/index.ts";
import type { Adapter } from "../adapter.ts";
import {
  type Draft,
  type DraftOptions,
  draftBody,
  emptyDraft,
  renderFor,
  type Settings,
  settingsOf,
} from "../fit/draft-file.ts";
import { changeTarget } from "../targets/change-target.ts";
import { type Placed, placeBody, refuseTarget, stateOf } from "../targets/file-target.ts";
import { exportTarget, type FileTarget, type Places } from "../targets/targets.ts";

/** Its `text` is what goes into the clipboard. */
export interface ClipResult extends Settings, Omit<Draft, "file" | "state"> {
  readonly adapter: Adapter;
  /** The file with the whole text. */
  readonly change?: FileChange;
  readonly problem?: ContextError;
}

export interface ClipOptions extends DraftOptions {
  readonly places: Places;
  readonly env: Environment;
  readonly dryRun: boolean;
}

export async function draftClip(adapter: Adapter, options: ClipOptions): Promise<ClipResult> {
  const settings = settingsOf([adapter], options);
  const place = (body: string): Placed => {
    const text = withInstructions(body, adapter);
    return { bytes: text, file: () => text, block: () => text };
  };
  const { limits } = adapter;
  const draft = draftBody(
    { adapters: [adapter], limits, settings, state: "unknown", chains: new Map(), place },
    options,
  );
  const result = { ...settings, ...draft, adapter };
  const whole = exportTarget(adapter, options.places);
  if (whole === undefined || draft.status !== "ok") return result;
  try {
    return { ...result, change: await writeWhole(whole, options) };
  } catch (error) {
    if (!(error instanceof ContextError)) throw error;
    return { ...result, ...emptyDraft, problem: error };
  }
}

/** The summary says where the rest is; of a plain clip the instructions are for the person who pastes it. */
function withInstructions(body: string, { type, instructions }: Adapter): string {
  return type === "file-export" && instructions ? `${body}\n${instructions.trim()}\n` : body;
}

/** Everything at full verbosity, without a budget. */
async function writeWhole(
  whole: FileTarget,
  { packs, content, places, env, force, dryRun }: ClipOptions,
): Promise<FileChange> {
  const { target } = whole;
  const body = renderFor({ format: "markdown" }, content)(packs, () => "full");
  return changeTarget(whole.path, {
    ...{ root: places.root, dryRun, env, force, targets: [target] },
    change: (current) => {
      refuseTarget(stateOf(current, target), { current, target, force });
      return placeBody(current, body, target).bytes;
    },
  });
}
