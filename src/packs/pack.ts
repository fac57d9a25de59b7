/** The shapes of content: a pack as it is stored, and one in one language, ready to render. Plain data, so that both can be JSON. */
import type { Segment } from "../text/index.ts";

/** Where content comes from, lowest first; later wins by id. */
export const layers = ["embedded", "company", "user", "project"] as const;
export type Layer = (typeof layers)[number];

/** A pack as it is stored: its metadata valid, its texts unparsed, every language there. An absent key is the empty value. */
export interface PackSource {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly weight: number;
  readonly base: boolean;
  readonly additive: boolean;
  readonly additivePosition: AdditivePosition;
  /** Ids of packs that subsume this one: it goes when one of them is in. */
  readonly overlaps: readonly string[];
  /** For people only: a profile lists its packs itself. */
  readonly profiles: readonly string[];
  readonly locales: Readonly<Record<string, Locale>>;
  readonly versions: Readonly<Record<string, string>>;
  /** Newest first. */
  readonly changelog: readonly string[];
  /** File name, such as `context.de.md`, to text with LF line ends. */
  readonly texts: Readonly<Record<string, string>>;
  readonly samples: readonly Sample[];
  readonly knownErrors: readonly KnownError[];
  readonly learning: readonly Learning[];
  readonly directory: string;
}

export type AdditivePosition = "before" | "after";

export interface Locale {
  readonly name?: string | undefined;
  readonly description?: string | undefined;
}

export interface Sample {
  readonly id: string;
  readonly label: string;
  readonly url: string;
  readonly description: string;
  readonly tags: readonly string[];
  /** Listed among the canonical patterns. */
  readonly inject: boolean;
}

export interface KnownError {
  readonly id: string;
  readonly pattern: string;
  readonly cause: string;
  readonly fix: string;
  readonly docs?: string | undefined;
  readonly tags: readonly string[];
}

export interface Learning {
  readonly slug: string;
  readonly title: string;
  readonly url: string;
  readonly level?: string | undefined;
  readonly hours?: number | undefined;
  readonly featured: boolean;
}

/** A pack in one language, its texts in tiers. */
export interface Pack {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly weight: number;
  readonly base: boolean;
  readonly overlaps: readonly string[];
  readonly versions: Readonly<Record<string, string>>;
  readonly changelog: readonly string[];
  /** The highest layer that had a part in it. */
  readonly layer: Layer;
  readonly preamble: string;
  readonly context: readonly Segment[];
  readonly constraints: readonly Segment[];
  readonly samples: readonly Sample[];
  readonly knownErrors: readonly KnownError[];
  readonly learning: readonly Learning[];
}

/** Something odd in a text that is used all the same. */
export interface PackWarning {
  readonly pack: string;
  readonly directory: string;
  /** Its name in the directory. */
  readonly file: string;
  readonly line: number;
  readonly message: string;
}
