export type { LintFinding, LintInput, PackBudget } from "./lint/lint-packs.ts";
export {
  type MergedPacks,
  mergeLayers,
  type PackLayer,
} from "./merge-layers.ts";
export { orderPacks } from "./order-packs.ts";
export {
  type AdditivePosition,
  type KnownError,
  type Layer,
  type Learning,
  type Locale,
  layers,
  type Pack,
  type PackSource,
  type PackWarning,
  type Sample,
} from "./pack.ts";
export { builtInProfiles, type Profile, type ProfilePack } from "./profile.ts";
export { createPackSource, createProfile, type PackFile, type PackFolder } from "./read/pack-file.ts";
export { packTextName, type ReadPack, readPack } from "./read/read-pack.ts";
export { type Fact, maxNoteBytes, type RenderOptions, renderContext } from "./render/render-context.ts";
export { type DroppedPack, type TrimmedPacks, trimPacks } from "./trim-packs.ts";

/** The schemas bring zod along, so they are loaded only where files are read. */
export function loadPackSchemas(): Promise<typeof import("./read/schema.ts")> {
  return import("./read/schema.ts");
}

/** Only one command lints. */
export function loadLint(): Promise<typeof import("./lint/lint-packs.ts")> {
  return import("./lint/lint-packs.ts");
}
