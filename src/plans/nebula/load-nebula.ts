import { readdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { ContextError } from "../../core/errors.ts";
import { compareText } from "../../core/text/index.ts";
import { homeDirectory, projectRoot, readForeignText } from "../../host/index.ts";
import type { ContentProblem } from "../../rules/index.ts";
import { explainOption } from "../agent/index.ts";
import { type DependencyGraph, type Execution, type Nebula, type Phase, readDuration } from "./nebula.ts";
import type { AgentSetting, Manifest, PhaseDraft } from "./nebula-files.ts";

/** A nebula as read from its folder, with the problems that were found. */
export interface LoadedNebula {
  /** The absolute path of the nebula's folder. */
  readonly directory: string;
  /** How many phase files there are, with or without problems. */
  readonly phases: number;
  /** Absent if one of the problems is an error. */
  readonly nebula?: Nebula | undefined;
  /** Problems sorted by file and line. */
  readonly problems: readonly NebulaProblem[];
  /** Settings about agents and their folders. A person must trust these settings before they are used. */
  readonly agentSettings: readonly AgentSetting[];
  /** Cost limits. Some agents cannot keep to them. 0 means no limit. */
  readonly limits: readonly AgentSetting[];
}

/** A problem in a file of a nebula. `file` is an absolute path. */
export type NebulaProblem = ContentProblem;

/**
 * Reads nebula.toml and every phase file in its folder. Returns problems in the files as data. Throws only if the
 * folder or nebula.toml cannot be read.
 *
 * @example
 * ```ts
 * import { loadNebula } from "plimsoll/nebula";
 *
 * const { nebula, problems } = await loadNebula("plan");
 * for (const { file, line, message } of problems) console.log(`${file}:${line}: ${message}`);
 * console.log(nebula?.phases.map(({ id, dependsOn }) => `${id} needs ${dependsOn.join(", ")}`));
 * ```
 */
export async function loadNebula(directory: string): Promise<LoadedNebula> {
  const absolute = resolve(directory);
  // Loaded here, because most commands need neither TOML nor schemas.
  const [{ parseManifest }, { checkPhases }] = await Promise.all([
    import("./nebula-files.ts"),
    import("./check-phases.ts"),
  ]);
  const file = join(absolute, "nebula.toml");
  // A nebula must not show files outside of its project.
  const root = projectRoot(absolute, homeDirectory(process.env));
  const manifest = await parseManifest(readManifest(file, root), file);
  const { drafts, problems: unread } = await readPhases(absolute, root);
  const checked = checkPhases(drafts);
  const noPhases: ContentProblem = {
    file,
    line: 1,
    severity: "warning",
    rule: "no-phases",
    message: "the nebula has no phases. Put phase files, *.md, into the folder of this file",
  };
  const agentSettings = [...manifest.agentSettings, ...drafts.flatMap((draft) => draft.agentSettings)];
  const problems = [
    ...manifest.problems,
    ...unread,
    ...(drafts.length + unread.length === 0 ? [noPhases] : []),
    ...drafts.flatMap((draft) => draft.problems),
    ...checked.problems,
    ...agentSettings.flatMap(checkOption),
  ].sort(
    (one, two) =>
      compareText(one.file, two.file) ||
      one.line - two.line ||
      compareText(`${one.rule}\n${one.message}`, `${two.rule}\n${two.message}`),
  );
  const limits = [manifest, ...drafts].flatMap((each) => each.limits).filter(({ value }) => value !== 0);
  const loaded = { directory: absolute, phases: drafts.length, problems, agentSettings, limits };
  if (problems.some(({ severity }) => severity === "error")) return loaded;
  return { ...loaded, nebula: assemble(absolute, { manifest, drafts, ...checked }) };
}

/** Returns the name of a nebula, whatever is wrong with its phases. Empty if its manifest has none. */
export async function readNebulaName(directory: string): Promise<string> {
  const { parseManifest } = await import("./nebula-files.ts");
  const file = join(resolve(directory), "nebula.toml");
  const root = projectRoot(resolve(directory), homeDirectory(process.env));
  return (await parseManifest(readManifest(file, root), file)).name;
}

/** Reports a model or agent name that looks like an option, before anything starts. */
function checkOption({ file, line, key, value }: AgentSetting): ContentProblem[] {
  const reason = /(^|\.)(model|agent)$/.test(key) && typeof value === "string" ? explainOption(value) : undefined;
  if (reason === undefined) return [];
  const message = `"${key}" is "${value}", which ${reason}`;
  return [{ file, line, severity: "error", rule: "invalid-value", message }];
}

function readManifest(file: string, root: string): string {
  const read = readForeignText(file, { within: root });
  if ("text" in read) return read.text;
  throw new ContextError("unreadable_input", read.reason, {
    file,
    hint: "A nebula is a folder with nebula.toml and phase files, *.md.",
  });
}

async function readPhases(
  directory: string,
  root: string,
): Promise<{ readonly drafts: readonly PhaseDraft[]; readonly problems: readonly ContentProblem[] }> {
  const { parsePhaseFile } = await import("./nebula-files.ts");
  const drafts: PhaseDraft[] = [];
  const problems: ContentProblem[] = [];
  const names = await readdir(directory).catch((cause: NodeJS.ErrnoException) => {
    const message = `the folder cannot be listed (${cause.code})`;
    throw new ContextError("unreadable_input", message, { file: directory, cause });
  });
  for (const name of names.sort()) {
    // Files of editors and systems start with a dot.
    if (!name.endsWith(".md") || name.startsWith(".")) continue;
    const file = join(directory, name);
    const read = readForeignText(file, { within: root });
    if (!("text" in read)) {
      // A folder is only a warning, because it cannot be a phase.
      const isFolder = read.reason === "is a directory";
      problems.push({
        file,
        line: 1,
        severity: isFolder ? "warning" : "error",
        rule: "unreadable-file",
        message: isFolder ? "is a directory, so it is left out: phases are files" : `cannot be read: ${read.reason}`,
      });
    }
    // A README.md is a phase only if it has front matter.
    else if (!/^readme\.md$/i.test(name) || read.text.trimStart().startsWith("+++"))
      drafts.push(await parsePhaseFile(read.text, file));
  }
  return { drafts, problems };
}

function assemble(
  directory: string,
  {
    manifest,
    drafts,
    dependencies,
  }: { readonly manifest: Manifest; readonly drafts: readonly PhaseDraft[]; readonly dependencies: DependencyGraph },
): Nebula {
  const { defaults, problems: _, agentSettings: __, limits: ___, ...shared } = manifest;
  const phases = drafts.map(({ file, keys, body }): Phase => {
    const id = keys.id!;
    return {
      id,
      title: keys.title!.trim(),
      file,
      body,
      dependsOn: dependencies.get(id) ?? [],
      scope: keys.scope ?? [],
      ...(keys.allow_scope_overlap === true && { allowScopeOverlap: true }),
      gate: keys.gate ?? shared.execution.gate ?? "trust",
      model: keys.model ?? shared.execution.model,
      allow: keys.allow ?? shared.execution.allow,
      maxBudgetUsd: keys.max_budget_usd || undefined,
      ...readLoop(keys, shared.execution),
      type: keys.type ?? defaults.type,
      priority: keys.priority || defaults.priority,
      labels: keys.labels === undefined || keys.labels.length === 0 ? defaults.labels : keys.labels,
      assignee: keys.assignee ?? defaults.assignee,
    };
  });
  return { directory, ...shared, phases };
}

/** Returns what decides when the work of a phase counts: its own keys, or else those of the nebula. */
function readLoop(
  keys: PhaseDraft["keys"],
  execution: Execution,
): Pick<Phase, "check" | "checkTimeoutMs" | "scopePolicy" | "maxReviewCycles" | "reviewer"> {
  return {
    check: keys.check ?? execution.check,
    checkTimeoutMs: readDuration(keys.check_timeout) ?? execution.checkTimeoutMs,
    scopePolicy: keys.scope_policy ?? execution.scopePolicy,
    maxReviewCycles: keys.max_review_cycles ?? execution.maxReviewCycles,
    reviewer: keys.reviewer ?? execution.reviewer,
  };
}
