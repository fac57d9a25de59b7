import type { ProjectScan } from "../compose/index.ts";
import type { ScanOptions } from "./scan/scan-project.ts";

export type { Config } from "./config/config.ts";
export { keyOf, type LoadedConfig, loadConfig } from "./config/load-config.ts";
export type { ContentProblem } from "./content/content-problem.ts";
export { readEmbeddedContent } from "./content/embedded-content.ts";
export {
  type LayerDirectory,
  loadContent,
} from "./content/load-content.ts";
export { configDirectory, type Environment, homeDirectory, stateDirectory } from "./directories.ts";
export {
  type ChangeOptions,
  changeFile,
  type FileChange,
} from "./files/change-file.ts";
export type { IgnoreRules } from "./files/ignore-rules.ts";
export { listFiles } from "./files/list-files.ts";
export { withLock } from "./files/lock.ts";
export { openDirectory } from "./files/open-directory.ts";
export {
  filesHolding,
  isIgnoredFolder,
  lonelyFolder,
  type ProjectTree,
  readProjectTree,
  readQuietly,
} from "./files/project-tree.ts";
export { readRegularFile, readRegularText } from "./files/read-regular-file.ts";
export {
  readTextFile,
  readTextStream,
  type TextLimit,
  type TextRead,
  type Unread,
} from "./files/read-text.ts";
export { createSecretTest, type SecretRules, type SecretTest } from "./files/secret-files.ts";
export { addNote, clearNotes, readNotes } from "./notes.ts";
export { findProgram } from "./processes/find-program.ts";
export { decodeBytes, hashed, splitRecords } from "./processes/output-records.ts";
export { commandNames, isAlive, ownIdentity, type ProcessIdentity } from "./processes/process-identity.ts";
export {
  type GitProcess,
  type GitRefusal,
  gitReason,
  inspectRepository,
  readGit,
} from "./processes/read-git.ts";
export type { ProcessEnd, StartedProcess } from "./processes/start-process.ts";
export { projectRoot } from "./project-root.ts";
export { detectFacts } from "./scan/project-facts.ts";
export { companyDirectory } from "./sync/company.ts";
export { expandLayers } from "./sync/expanded-texts.ts";
export type { SyncReport } from "./sync/sync.ts";
export type { TextSync } from "./sync/sync-texts.ts";

export { otherOwner, refuseOtherOwner } from "./trust/owner.ts";
export { readProjectFetches, untrustedFetches } from "./trust/project-settings.ts";
export {
  type PowerfulSetting,
  type ProjectPlace,
  powerfulSetting,
  readTrusted,
  revokeTrust,
  trustedProject,
  trustProject,
  untrustedOf,
} from "./trust/trusted.ts";

/** Few commands look at a whole project. */
export async function scanProject(directory: string, options?: ScanOptions): Promise<ProjectScan> {
  const scan = await import("./scan/scan-project.ts");
  return scan.scanProject(directory, options);
}

/** Few commands start a program. */
export function loadProcesses(): Promise<typeof import("./processes/start-process.ts")> {
  return import("./processes/start-process.ts");
}

/** With yaml and zod behind it: only what was written in YAML needs it. */
export function loadYaml(): Promise<typeof import("./yaml/yaml-document.ts")> {
  return import("./yaml/yaml-document.ts");
}

/** With the library behind the rules: only what lists files needs it. */
export function loadIgnoreRules(): Promise<typeof import("./files/ignore-rules.ts")> {
  return import("./files/ignore-rules.ts");
}

/** Only one command goes to the network. */
export function loadSync(): Promise<typeof import("./sync/sync.ts")> {
  return import("./sync/sync.ts");
}
export {
  followLinks,
  isGitInternal,
  isInside,
  outsideReason,
  refuseOutside,
} from "./files/resolve-target.ts";
export { exists, upward } from "./files/upward.ts";
