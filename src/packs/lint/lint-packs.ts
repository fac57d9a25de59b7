/** What a schema cannot see: how packs, profiles and budgets fit together. Pure; the caller turns keys into lines. */
import type { Verbosity } from "../../text/index.ts";
import type { Pack, PackSource } from "../pack.ts";
import type { Profile } from "../profile.ts";
import { lintOverlaps, lintProfiles } from "./lint-overlaps.ts";
import { lintSimilar } from "./lint-similar.ts";
import { lintSizes } from "./lint-sizes.ts";
import { lintTexts } from "./lint-texts.ts";

export interface LintInput {
  /** Merged, most important first, those of every layer. */
  readonly packs: readonly Pack[];
  /** The packs as they lie in files that people can change, lowest layer first. Only these are found fault with. */
  readonly sources: readonly PackSource[];
  /** Those that lie in such files. */
  readonly profiles: readonly Profile[];
  /** Ids that are no mistake although no such pack is here. */
  readonly knownIds: readonly string[];
  readonly budgets: readonly PackBudget[];
}

/** What one AI tool takes at most. */
export interface PackBudget {
  readonly adapter: string;
  readonly value: number;
  readonly unit: "bytes" | "chars";
  readonly verbosity: Verbosity;
}

export interface LintFinding {
  readonly place: LintPlace;
  readonly severity: "error" | "warning";
  readonly rule: string;
  readonly message: string;
}

export type LintPlace = TextPlace | KeyPlace | ProfilePlace;

/** A line of a pack's text. */
export interface TextPlace {
  readonly directory: string;
  readonly file: string;
  /** 1-based. */
  readonly line: number;
}

/** A key of a pack's pack.yaml. */
export interface KeyPlace {
  readonly directory: string;
  readonly key: readonly (string | number)[];
}

/** A key of a profile's file. */
export interface ProfilePlace {
  readonly profile: string;
  readonly key: readonly (string | number)[];
}

/** All findings, in a fixed order. */
export function lintPacks(input: LintInput): LintFinding[] {
  return [
    ...lintOverlaps(input),
    ...lintProfiles(input),
    ...lintSimilar(input),
    ...input.sources.flatMap(lintTexts),
    ...lintSizes(input),
  ];
}
