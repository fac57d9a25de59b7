export {
  type FetchFormat,
  type FetchMarker,
  findFetchMarkers,
  headingsBelow,
  type ReplacedMarkers,
  replaceFetchMarkers,
} from "./fetch-markers.ts";
export type { PackBudget } from "./lint-packs.ts";
export { mergeLayers, type PackLayer } from "./merge-packs.ts";
export {
  type AgentTool,
  agentTools,
  builtInProfiles,
  type ContentLayer,
  mayReach,
  nestedFolders,
  orderPacks,
  type Pack,
  type PackSource,
  type PackWarning,
  type Profile,
  type Prompt,
  type Skill,
} from "./pack.ts";

export {
  createPackSource,
  type PackFile,
  packFileNames,
  packTextName,
} from "./read-pack.ts";

export { maxNoteBytes, type RenderOptions, renderContext } from "./render-context.ts";
export { type Fit, type FitOptions, fitPacks, trimPacks } from "./trim-packs.ts";

/** Loads the schemas only where files are read, because they load zod. */
export function loadPackSchemas(): Promise<typeof import("./schema.ts")> {
  return import("./schema.ts");
}

export type { EarlierPack, ImportedPack, InstructionFile } from "./import-texts.ts";
export type { LoadedInstructions, MovedTexts } from "./move-texts.ts";

/** Loads the code that turns files of AI tools into packs. Only one command needs it. */
export function loadImport(): Promise<typeof import("./import-texts.ts")> {
  return import("./import-texts.ts");
}

/** Loads the code that moves texts of files into packs. */
export function loadMove(): Promise<typeof import("./move-texts.ts")> {
  return import("./move-texts.ts");
}

/** Loads the linter. Only one command needs it. */
export function loadLint(): Promise<typeof import("./lint-packs.ts")> {
  return import("./lint-packs.ts");
}
