import type { ProjectScan, ScanOptions } from "./scan/scan-project.ts";

export {
  type Allow,
  allowLevels,
  type CompanyConfig,
  type Config,
  defaultConfig,
  type OnDrop,
  type OnOverflow,
  onOverflows,
  type SkillSource,
  type ToolBudget,
} from "./config/config.ts";
export {
  type Company,
  findSource,
  joinKey,
  type LoadedConfig,
  loadConfig,
  readCompanySource,
  type Surroundings,
} from "./config/load-config.ts";
export { cacheDirectory, configDirectory, type Environment, homeDirectory, stateDirectory } from "./directories.ts";
export {
  type AttemptedChange,
  type AttemptOptions,
  attemptChange,
  changeFile,
  type FileChange,
  keepCopy,
  keptCopies,
  type PlannedChange,
} from "./files/change-file.ts";
export {
  listRuns,
  type RecordedRun,
  recordChanges,
  type UndoneFile,
  undoRun,
  withJournal,
} from "./files/change-journal.ts";
export type { CountReport } from "./files/count-files.ts";
export {
  foldersAbove,
  hasRepository,
  isOtherProject,
  projectRoot,
  repositoryAround,
  searchUpward,
} from "./files/find-root.ts";
export { copyTree, removeEmptyFolders, removeTree } from "./files/folder-tree.ts";
export type { IgnoreRules } from "./files/ignore-rules.ts";
export { withLock } from "./files/lock.ts";
export { makeDirectory } from "./files/make-directory.ts";
export {
  type MessagesInput,
  type MessagesKey,
  messagesHint,
  parseMessages,
  rewriteMessages,
} from "./files/messages-file.ts";
export { openFolder } from "./files/open-folder.ts";
export {
  exists,
  foldersDown,
  followLinks,
  isGitInternal,
  isInside,
  outsideReason,
  upward,
} from "./files/paths.ts";
export {
  listForeign,
  openForeign,
  readForeign,
  readForeignBytes,
  readForeignText,
  refuseOpened,
} from "./files/read-foreign.ts";
export {
  decodeText,
  getErrorCode,
  maxTextBytes,
  messagesLimit,
  openDirectory,
  readTextFile,
  readTextStream,
  systemReason,
  type TextLimit,
  textLimit,
} from "./files/read-text.ts";

export { decodeBytes, hashed, splitRecords } from "./processes/byte-records.ts";
export { type GitRefusal, inspectRepository } from "./processes/inspect-repository.ts";
export { isAlive, type Machine, ownIdentity, ownMachine, type ProcessIdentity } from "./processes/process-identity.ts";
export { changeGit, type GitProcess, type GitResult, readGit } from "./processes/read-git.ts";
export {
  collectOutput,
  connecting,
  findProgram,
  gitReason,
  noGitReason,
  startGit,
  withoutPasswords,
} from "./processes/start-git.ts";
export type { ProcessEnd, StartedProcess } from "./processes/start-process.ts";
export { detectFacts } from "./scan/project-facts.ts";
export { type ConventionsFile, listFiles, type ProjectScan, type ScanProblem } from "./scan/scan-project.ts";
export { isStoreAddress, lookInStore, openStore, shownStore, storeFile, storePath, withStore } from "./store-file.ts";
export {
  findUntrusted,
  noteIgnoredStore,
  noteLeftOut,
  otherOwner,
  type PowerfulSetting,
  type ProjectPlace,
  powerfulSetting,
  refuseOtherOwner,
  requireTrust,
  trustRecord,
} from "./trust/trusted.ts";

/**
 * Reads what a project is: facts from its manifests, its file tree, and the texts that its people wrote for agents.
 * Files that git ignores and files with secrets are left out.
 *
 * @example
 * ```ts
 * import { scanProject } from "plimsoll/agent";
 *
 * const { facts, paths, conventions } = await scanProject(".");
 * console.log(facts, paths.length, conventions.map(({ path }) => path));
 * ```
 */
export async function scanProject(directory: string, options?: ScanOptions): Promise<ProjectScan> {
  const scan = await import("./scan/scan-project.ts");
  return scan.scanFolder(directory, options);
}

/** Loads the code that starts programs. Few commands need it. */
export function loadProcesses(): Promise<typeof import("./processes/start-process.ts")> {
  return import("./processes/start-process.ts");
}

/** Loads the YAML reader with yaml and zod. Only YAML files need it. */
export async function loadYaml(): Promise<
  typeof import("./config/read-yaml.ts") & typeof import("./config/yaml-document.ts")
> {
  return { ...(await import("./config/read-yaml.ts")), ...(await import("./config/yaml-document.ts")) };
}

/** Loads the ignore rules with their library. Only listing files needs them. */
export function loadIgnoreRules(): Promise<typeof import("./files/ignore-rules.ts")> {
  return import("./files/ignore-rules.ts");
}

export { type CounterChoice, chooseCounter, chooseCounters, modelForCounter } from "./config/choose-counters.ts";
export { readKnownShape, type ShapeName } from "./config/known-shape.ts";
export type { YamlDocument } from "./config/yaml-document.ts";
export { replaceOwnFile } from "./files/replace-file.ts";
export { createDiff } from "./files/unified-diff.ts";
export { type Caller, createOutput, type Output, type Style, type TextStream } from "./print/output.ts";
export { describeError, type ExitCode, exitCodes, reportError, takeEndSignals } from "./print/report-error.ts";
export { renderTable, shownPath } from "./print/table.ts";
export type { DecisionsPlace, SavedDecisions } from "./store/saved-decisions.ts";
