/** Adapters without a file in the project. They copy a text to the clipboard; `file-export` adapters also write the
 *  whole text to a file. */

import type { ContextError } from "../../core/errors.ts";
import { type Environment, type FileChange, findProgram } from "../../host/index.ts";
import type { Adapter } from "../adapters/adapter.ts";
import {
  chooseSettings,
  type DraftOptions,
  type DraftSettings,
  draftBody,
  emptyDraft,
  type FileDraft,
} from "../adapters/draft-file.ts";
import {
  changeTarget,
  explainRefusal,
  exportTarget,
  type Placed,
  type Places,
  placeBody,
  readTargetState,
} from "../adapters/targets.ts";
import { mayReach, renderContext } from "../packs/index.ts";

/** `text` is the text for the clipboard. */
export interface ClipResult extends DraftSettings, Omit<FileDraft, "file" | "state"> {
  readonly adapter: Adapter;
  /** The change of the file with the whole text. */
  readonly change?: FileChange;
  /** The state of that file, and the size that it would have now. */
  readonly exported?: Pick<FileDraft, "state" | "bytes"> | undefined;
  readonly problem?: ContextError;
}

export interface ClipOptions extends DraftOptions {
  readonly places: Places;
  readonly env: Environment;
  readonly dryRun: boolean;
}

export async function draftClip(adapter: Adapter, given: ClipOptions): Promise<ClipResult> {
  const options = { ...given, packs: given.packs.filter((pack) => mayReach(pack, adapter.id)) };
  const settings = chooseSettings([adapter], options);
  const { type, instructions } = adapter;
  const place = (body: string): Placed => {
    // A file-export summary ends with the instructions, which say where the whole text is. Other instructions are for
    // the person who pastes.
    const text = type === "file-export" && instructions ? `${body}\n${instructions.trim()}\n` : body;
    return { bytes: () => text, file: () => text, block: () => text };
  };
  const { limits } = adapter;
  const draft = draftBody(
    { adapters: [adapter], limits, settings, state: "unknown", chains: new Map(), place },
    options,
  );
  const result = { ...settings, ...draft, adapter };
  const whole = exportTarget(adapter, options.places);
  // The file does not depend on the clipboard's budget.
  if (whole === undefined) return result;
  const { packs, content, places, env, force, dryRun } = options;
  const { target } = whole;
  // All packs at full verbosity, without a budget.
  const body = renderContext(packs, { ...content, verbosity: "full" });
  const {
    change,
    facts: exported,
    problem,
  } = await changeTarget(whole.path, {
    root: places.root,
    dryRun,
    env,
    force,
    targets: [target],
    plan: (current) => {
      const state = readTargetState(current, target);
      const after = placeBody(current, body, target).bytes();
      const facts = { state, bytes: after.length };
      const refused = explainRefusal(state, { current, target, force });
      return refused === undefined ? { after, facts } : { problem: refused, facts };
    },
  });
  if (problem !== undefined) return { ...result, ...emptyDraft, exported, problem };
  return { ...result, exported, change };
}

/** Programs that copy their standard input to the clipboard, in the order in which they are tried. */
const programs: readonly (readonly [command: string, ...args: string[]])[] = [
  ["pbcopy"],
  ["wl-copy"],
  ["xclip", "-selection", "clipboard"],
  ["xsel", "--clipboard", "--input"],
  ["clip.exe"],
];

/** Copies a text to the clipboard. Returns the name of the program that copied it, or `undefined` if no program
 *  works. */
export async function copyToClipboard(text: string, env: Environment): Promise<string | undefined> {
  // Loaded only here: most runs write files only.
  const { spawn } = await import("node:child_process");
  for (const [command, ...args] of programs) {
    const program = await findProgram(command, env);
    if (program === undefined) continue;
    const isCopied = await new Promise<boolean>((done) => {
      // A program without a display may wait forever.
      const child = spawn(program, args, { env, stdio: ["pipe", "ignore", "ignore"], timeout: 5_000 });
      child.on("error", () => done(false));
      child.on("close", (code) => done(code === 0));
      // The program may exit before it has read everything.
      child.stdin.on("error", () => undefined);
      child.stdin.end(text);
    });
    if (isCopied) return command;
  }
  return undefined;
}
