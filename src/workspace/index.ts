export {
  type ChangeOptions,
  changeFile,
  type FileChange,
} from "./change-file.ts";
export { companyDirectory } from "./company.ts";
export type { Config } from "./config.ts";
export type { ContentLayer } from "./content-layer.ts";
export type { ContentProblem, Severity } from "./content-problem.ts";
export { configDirectory, type Environment, homeDirectory } from "./directories.ts";
export { readEmbeddedContent } from "./embedded-content.ts";
export { type ExpandedLayers, expandLayers } from "./expanded-texts.ts";
export { listFiles } from "./list-files.ts";
export { keyOf, type LoadedConfig, loadConfig } from "./load-config.ts";
export {
  type LayerDirectory,
  type LoadContentOptions,
  type LoadedContent,
  loadContent,
} from "./load-content.ts";
export { addNote, clearNotes, readNotes } from "./notes.ts";
export { detectFacts } from "./project-facts.ts";
export { projectRoot } from "./project-root.ts";
export { readTextFile, readTextStream, type TextLimit, type TextRead, type Unread } from "./read-text.ts";
export type { SyncOptions, SyncReport } from "./sync.ts";
export type { TextSync } from "./sync-texts.ts";

/** Only one command goes to the network. */
export function loadSync(): Promise<typeof import("./sync.ts")> {
  return import("./sync.ts");
}
