/** Adapters without a file in the project. They copy a text to the clipboard; `file-export` adapters also write the
 *  whole text to a file. */

import type { ContextError } from "../../core/errors.ts";
import { type AttemptedChange, type Environment, type FileChange, findProgram } from "../../host/index.ts";
import type { Adapter } from "../adapters/adapter.ts";
import {
  type DraftOptions,
  draftBody,
  emptyDraft,
  type FileDraft,
  type Settings,
  settingsOf,
} from "../adapters/draft-file.ts";
import {
  changeTarget,
  exportTarget,
  type FileTarget,
  type Placed,
  type Places,
  placeBody,
  refusalOf,
  targetFileOf,
} from "../adapters/targets.ts";
import { renderContext } from "../packs/index.ts";

/** `text` is the text for the clipboard. */
export interface ClipResult extends Settings, Omit<FileDraft, "file" | "state"> {
  readonly adapter: Adapter;
  /** The change of the file with the whole text. */
  readonly change?: FileChange;
  readonly exported?: ExportFacts | undefined;
  readonly problem?: ContextError;
}

/** The state of the file with the whole text, and the size that it would have now. */
type ExportFacts = Pick<FileDraft, "state" | "bytes">;

export interface ClipOptions extends DraftOptions {
  readonly places: Places;
  readonly env: Environment;
  readonly dryRun: boolean;
}

export async function draftClip(adapter: Adapter, options: ClipOptions): Promise<ClipResult> {
  const settings = settingsOf([adapter], options);
  const place = (body: string): Placed => {
    const text = withInstructions(body, adapter);
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
  const { change, facts: exported, problem } = await writeWhole(whole, options);
  if (problem !== undefined) return { ...result, ...emptyDraft, exported, problem };
  return { ...result, exported, change };
}

/** A file-export summary ends with the instructions, which say where the whole text is. Other instructions are for the
 *  person who pastes. */
function withInstructions(body: string, { type, instructions }: Adapter): string {
  return type === "file-export" && instructions ? `${body}\n${instructions.trim()}\n` : body;
}

/** Writes all packs at full verbosity, without a budget. */
async function writeWhole(
  whole: FileTarget,
  { packs, content, places, env, force, dryRun }: ClipOptions,
): Promise<AttemptedChange<ExportFacts>> {
  const { target } = whole;
  const body = renderContext(packs, { ...content, verbosity: "full" });
  return changeTarget(whole.path, {
    ...{ root: places.root, dryRun, env, force, targets: [target] },
    plan: (current) => {
      const state = targetFileOf(current, target);
      const after = placeBody(current, body, target).bytes();
      const facts = { state, bytes: after.length };
      const problem = refusalOf(state, { current, target, force });
      return problem === undefined ? { after, facts } : { problem, facts };
    },
  });
}

/** Programs that copy their standard input to the clipboard, in the order in which they are tried. */
const programs: readonly (readonly [command: string, ...args: string[]])[] = [
  ["pbcopy"],
  ["wl-copy"],
  ["xclip", "-selection", "clipboard"],
  ["xsel", "--clipboard", "--input"],
  ["clip.exe"],
];

/** A program without a display may wait forever. */
const TIMEOUT_MS = 5_000;

/** Copies a text to the clipboard. Returns the name of the program that copied it, or `undefined` if no program
 *  works. */
export async function copyToClipboard(text: string, env: Environment): Promise<string | undefined> {
  for (const [command, ...args] of programs) {
    const program = await findProgram(command, env);
    if (program !== undefined && (await feed(program, args, { text, env }))) return command;
  }
  return undefined;
}

async function feed(
  program: string,
  args: readonly string[],
  { text, env }: { text: string; env: Environment },
): Promise<boolean> {
  // Loaded only here: most runs write files only.
  const { spawn } = await import("node:child_process");
  return new Promise((done) => {
    const child = spawn(program, args, { env, stdio: ["pipe", "ignore", "ignore"], timeout: TIMEOUT_MS });
    child.on("error", () => done(false));
    child.on("close", (code) => done(code === 0));
    // The program may exit before it has read everything.
    child.stdin.on("error", () => undefined);
    child.stdin.end(text);
  });
}
