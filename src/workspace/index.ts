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
export { listFiles } from "./files/list-files.ts";
export { readRegularFile } from "./files/read-regular-file.ts";
export {
  readTextFile,
  readTextStream,
  type TextLimit,
  type TextRead,
  type Unread,
} from "./files/read-text.ts";
export { addNote, clearNotes, readNotes } from "./notes.ts";
export { detectFacts } from "./project-facts.ts";
export { projectRoot } from "./project-root.ts";
export { companyDirectory } from "./sync/company.ts";
export { expandLayers } from "./sync/expanded-texts.ts";
export type { SyncReport } from "./sync/sync.ts";
export type { TextSync } from "./sync/sync-texts.ts";

/** Only one command goes to the network. */
export function loadSync(): Promise<typeof import("./sync/sync.ts")> {
  return import("./sync/sync.ts");
}
export { followLinks } from "./files/resolve-target.ts";
export { exists, upward } from "./files/upward.ts";
