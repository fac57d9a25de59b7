export type { Config, OnOverflow, Policy, Verbosity } from "./config.ts";
export { cacheDirectory, type Environment, stateDirectory } from "./directories.ts";
export { type FileList, listFiles } from "./list-files.ts";
export { type LoadedConfig, loadConfig, type Surroundings } from "./load-config.ts";
export { readTextFile, readTextStream, type Text, type TextRead, type Unread } from "./read-text.ts";
