/** Profiles: an order of packs. They re-weight and never leave a pack out, except `minimal`. */

export interface Profile {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly packs: readonly ProfilePack[];
}

export interface ProfilePack {
  readonly id: string;
  /** Absent or 0: the pack's own weight. */
  readonly weight?: number | undefined;
}

/** Always there; their ids are reserved. */
export const builtInProfiles: readonly Profile[] = [
  { id: "all", name: "All", description: "Every pack, by its own weight", packs: [] },
  { id: "minimal", name: "Minimal", description: "Base packs only", packs: [] },
];
