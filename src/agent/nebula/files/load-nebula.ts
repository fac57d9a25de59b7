import { readdir } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { ContextError } from "../../../errors.ts";
import {
  type ContentProblem,
  homeDirectory,
  outsideReason,
  projectRoot,
  readRegularText,
  refuseOutside,
} from "../../../workspace/index.ts";
import { looksLikeOption, optionReason } from "../../process/presets.ts";
import type { AgentSetting } from "./agent-settings.ts";
import type { Manifest } from "./manifest.ts";
import type { Nebula, Phase } from "./nebula.ts";
import type { PhaseDraft } from "./phase-file.ts";

export interface LoadedNebula {
  /** Absolute. */
  readonly directory: string;
  /** How many phase files there are, good or not. */
  readonly phases: number;
  /** Absent where there is an error among the problems. */
  readonly nebula?: Nebula | undefined;
  /** By file and line. */
  readonly problems: readonly NebulaProblem[];
  /** What it says of agents and of where they work: for whoever must trust that first. */
  readonly agentSettings: readonly AgentSetting[];
}

/** `file` is absolute. */
export type NebulaProblem = ContentProblem;

/** Reads nebula.toml and every phase file beside it. Problems of the content are data; only a folder or a nebula.toml that cannot be read
 *  throws, with the path as its file. */
export async function loadNebula(directory: string): Promise<LoadedNebula> {
  const absolute = resolve(directory);
  // Nothing else that a start pays for needs TOML and schemas.
  const [{ parseManifest }, { checkPhases }] = await Promise.all([
    import("./manifest.ts"),
    import("./checks/check-phases.ts"),
  ]);
  const file = join(absolute, "nebula.toml");
  // What lies outside of the project is not the nebula's to show.
  const root = projectRoot(absolute, homeDirectory(process.env));
  await refuseOutside(file, root);
  const manifest = await parseManifest(await readManifest(file), file);
  const { drafts, problems: unread } = await readPhases(absolute, root);
  const checked = checkPhases(drafts);
  const agentSettings = [...manifest.agentSettings, ...drafts.flatMap((draft) => draft.agentSettings)];
  const problems = [
    ...manifest.problems,
    ...unread,
    ...(drafts.length + unread.length === 0 ? [nothingToDo(file)] : []),
    ...drafts.flatMap((draft) => draft.problems),
    ...checked.problems,
    ...agentSettings.flatMap(optionProblem),
  ].sort(byPlace);
  const loaded = { directory: absolute, phases: drafts.length, problems, agentSettings };
  if (problems.some(({ severity }) => severity === "error")) return loaded;
  return { ...loaded, nebula: assemble(absolute, { manifest, drafts, ...checked }) };
}

/** A name that goes into a command line is refused here, before anything starts. */
function optionProblem({ file, line, key, value }: AgentSetting): ContentProblem[] {
  if (!/(^|\.)(model|agent)$/.test(key) || typeof value !== "string" || !looksLikeOption(value)) return [];
  const message = `"${key}" is "${value}", which ${optionReason}`;
  return [{ file, line, severity: "error", rule: "invalid-value", message }];
}

async function readManifest(file: string): Promise<string> {
  const read = await readRegularText(file);
  if ("text" in read) return read.text;
  throw new ContextError("unreadable_input", read.reason, {
    file,
    hint: "A nebula is a folder with nebula.toml and phase files, *.md.",
  });
}

interface ReadPhases {
  readonly drafts: readonly PhaseDraft[];
  readonly problems: readonly ContentProblem[];
}

async function readPhases(directory: string, root: string): Promise<ReadPhases> {
  const { parsePhaseFile } = await import("./phase-file.ts");
  const drafts: PhaseDraft[] = [];
  const problems: ContentProblem[] = [];
  for (const name of (await namesIn(directory)).sort()) {
    // A leading dot hides what editors and systems leave behind.
    if (!name.endsWith(".md") || name.startsWith(".")) continue;
    const file = join(directory, name);
    const outside = await outsideReason(file, root);
    const read = outside === undefined ? await readRegularText(file) : { reason: outside };
    if (!("text" in read)) problems.push(unreadable(file, read.reason));
    else if (!isReadme(file, read.text)) drafts.push(await parsePhaseFile(read.text, file));
  }
  return { drafts, problems };
}

async function namesIn(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new ContextError("unreadable_input", `the folder cannot be listed (${code})`, {
      file: directory,
      cause: error,
    });
  }
}

/** A folder cannot be a phase that somebody misses. */
function unreadable(file: string, reason: string): ContentProblem {
  const isFolder = reason === "is a directory";
  return {
    file,
    line: 1,
    severity: isFolder ? "warning" : "error",
    rule: "unreadable-file",
    message: isFolder ? "is a directory: phases are files, it is left out" : `is not read: ${reason}`,
  };
}

/** People explain a folder in a file of this name: only with front matter it is a phase. */
function isReadme(file: string, text: string): boolean {
  return /^readme\.md$/i.test(basename(file)) && !text.trimStart().startsWith("+++");
}

function nothingToDo(file: string): ContentProblem {
  const message = "the nebula has no phases: put phase files, *.md, beside this file";
  return { file, line: 1, severity: "warning", rule: "no-phases", message };
}

function byPlace(one: ContentProblem, two: ContentProblem): number {
  if (one.file !== two.file) return one.file < two.file ? -1 : 1;
  if (one.line !== two.line) return one.line - two.line;
  const [a, b] = [one, two].map(({ rule, message }) => `${rule}\n${message}`);
  return a! < b! ? -1 : a! > b! ? 1 : 0;
}

interface Parts {
  readonly manifest: Manifest;
  readonly drafts: readonly PhaseDraft[];
  readonly dependencies: ReadonlyMap<string, readonly string[]>;
}

function assemble(directory: string, { manifest, drafts, dependencies }: Parts): Nebula {
  const { defaults, problems: _, agentSettings: __, ...shared } = manifest;
  const phases = drafts.map(({ file, keys, body }): Phase => {
    const id = keys.id!;
    return {
      id,
      title: keys.title!.trim(),
      file,
      body,
      dependsOn: dependencies.get(id) ?? [],
      scope: keys.scope ?? [],
      gate: keys.gate ?? shared.execution.gate ?? "trust",
      model: keys.model ?? shared.execution.model,
      type: keys.type ?? defaults.type,
      priority: keys.priority || defaults.priority,
      labels: keys.labels === undefined || keys.labels.length === 0 ? defaults.labels : keys.labels,
      assignee: keys.assignee ?? defaults.assignee,
    };
  });
  return { directory, ...shared, phases };
}
