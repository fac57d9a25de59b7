/** The shapes of content: a pack as it is stored, and a pack in one language, ready to render. Both are plain data that
 *  JSON can hold. */
import { compareText, expandBraces, type Segment } from "../../core/text/index.ts";

/** The sources of content, lowest first. A later layer replaces an earlier one by id. */
export const contentLayers = ["embedded", "company", "user", "project"] as const;
export type ContentLayer = (typeof contentLayers)[number];

/** A pack as it is stored: its metadata is valid, its texts are unparsed, and every language is included. An absent key
 *  has the empty value. */
export interface PackSource {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly weight: number;
  readonly base: boolean;
  readonly additive: boolean;
  readonly additivePosition: AdditivePosition;
  /** The pack is used only where a person or a profile names it. */
  readonly optional: boolean;
  /** Ids of packs that include this one: it is dropped if one of them is used. */
  readonly overlaps: readonly string[];
  /** Names of files, such as `*.py`. The pack is used in projects that hold one of them. Empty: in every project. */
  readonly detect: readonly string[];
  /** Patterns of the files that the pack is about. Empty: all files. */
  readonly globs: readonly string[];
  /** The pack goes into the AGENTS.md of the folders that its globs name. */
  readonly nested: boolean;
  /** Ids of the AI tools that get the pack. Absent or empty: all. */
  readonly tools?: readonly string[] | undefined;
  /** Ids of the AI tools that do not get the pack. */
  readonly notTools?: readonly string[] | undefined;
  /** For people only: a profile lists its packs itself. */
  readonly profiles: readonly string[];
  readonly locales: Readonly<Record<string, Locale>>;
  readonly versions: Readonly<Record<string, string>>;
  /** Newest first. */
  readonly changelog: readonly string[];
  /** File name, such as `context.de.md`, to text with LF line ends. */
  readonly texts: Readonly<Record<string, string>>;
  /** The texts cut into tiers. The build does this for the embedded packs, so that a run need not. */
  readonly segments?: Readonly<Record<string, readonly Segment[]>> | undefined;
  readonly samples: readonly Sample[];
  readonly knownErrors: readonly KnownError[];
  readonly learning: readonly Learning[];
  readonly skills: readonly Skill[];
  readonly prompts?: readonly Prompt[] | undefined;
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
  /** An entry without a title is not shown. */
  readonly title: string;
  readonly url: string;
  readonly level?: string | undefined;
  readonly hours?: number | undefined;
  readonly featured: boolean;
}

/** A folder of text files about one task. Tools always load its description, and the rest when the task comes. */
export interface Skill {
  readonly name: string;
  readonly description: string;
  /** Path in the folder, such as `SKILL.md`, to text with LF line ends. */
  readonly files: Readonly<Record<string, string>>;
  /** The SKILL.md in the project's own packs. Absent for packs of other layers, which are not in the project. */
  readonly path?: string | undefined;
}

/** A text with a name: a command that a person starts, or an agent that a tool gives a task to. */
export interface Prompt {
  readonly kind: "command" | "agent";
  readonly name: string;
  readonly description: string;
  /** For commands: what a person may add, such as `[branch]`. */
  readonly argumentHint?: string | undefined;
  /** For agents: all that it may use. Absent: everything that the tool allows. */
  readonly tools?: readonly AgentTool[] | undefined;
  /** Maps ids of AI tools to models. */
  readonly models: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What an agent may do, in words that every tool has a name for. */
export const agentTools = ["read", "search", "edit", "execute", "web"] as const;
export type AgentTool = (typeof agentTools)[number];

/** A pack in one language, with its texts cut into tiers. */
export interface Pack {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly weight: number;
  readonly base: boolean;
  /** The pack is used only where a person or a profile names it. */
  readonly optional?: boolean | undefined;
  /** The company requires the pack: it is dropped last, and a file without it fails the check. */
  readonly required?: boolean | undefined;
  readonly overlaps: readonly string[];
  readonly detect: readonly string[];
  /** Patterns of the files that the pack is about. Empty: all files. */
  readonly globs: readonly string[];
  /** The pack goes into the AGENTS.md of the folders that its globs name. */
  readonly nested: boolean;
  /** Ids of the AI tools that get the pack. Absent or empty: all. */
  readonly tools?: readonly string[] | undefined;
  /** Ids of the AI tools that do not get the pack. */
  readonly notTools?: readonly string[] | undefined;
  readonly versions: Readonly<Record<string, string>>;
  readonly changelog: readonly string[];
  /** The highest layer that contributed to it. */
  readonly layer: ContentLayer;
  readonly preamble: string;
  readonly context: readonly Segment[];
  readonly constraints: readonly Segment[];
  readonly samples: readonly Sample[];
  readonly knownErrors: readonly KnownError[];
  readonly learning: readonly Learning[];
  readonly skills: readonly Skill[];
  readonly prompts?: readonly Prompt[] | undefined;
}

/** Returns whether a pack is meant for this AI tool. */
export function mayReach({ tools = [], notTools = [] }: Pick<Pack, "tools" | "notTools">, tool: string): boolean {
  return (tools.length === 0 || tools.includes(tool)) && !notTools.includes(tool);
}

/** Returns the folders that the globs of a nested pack name, such as `services/api` for `services/api/**`. Returns none
 *  if the pack is not nested or if one of its globs names no folder. */
export function nestedFolders({ globs, nested }: Pick<Pack, "globs" | "nested">): readonly string[] {
  const patterns = nested ? globs.flatMap((glob) => expandBraces(glob) ?? [glob]) : [];
  // The folder before the first wildcard. It is empty for `**\/*.ts`.
  const folders = patterns.map((glob) => {
    const parts = glob.split("/").slice(0, -1);
    const wild = parts.findIndex((part) => /[*?[\]{}]/.test(part));
    const plain = wild === -1 ? parts : parts.slice(0, wild);
    return plain.filter((part) => part !== "" && part !== ".").join("/");
  });
  if (folders.includes("")) return [];
  // The file of an outer folder is read in the inner one too.
  const outermost = folders.filter((folder) => !folders.some((other) => folder.startsWith(`${other}/`)));
  return [...new Set(outermost)].sort(compareText);
}

/** A mistake in a text that is used anyway. */
export interface PackWarning {
  readonly pack: string;
  readonly directory: string;
  /** The file's name in the directory. */
  readonly file: string;
  readonly line: number;
  readonly message: string;
}

/** A profile is an order of packs. It changes weights. It leaves packs out only if it has `only`, or is `minimal`. */
export interface Profile {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly packs: readonly ProfilePack[];
  /** Ids of the packs to use. Base packs are used only if they are among them. */
  readonly only?: readonly string[] | undefined;
}

export interface ProfilePack {
  readonly id: string;
  /** Absent or 0 means the pack's own weight. */
  readonly weight?: number | undefined;
}

/** Profiles that always exist. Their ids are reserved. */
export const builtInProfiles: readonly Profile[] = [
  { id: "all", name: "All", description: "Every pack, by its own weight", packs: [] },
  { id: "minimal", name: "Minimal", description: "Base packs only", packs: [] },
];

/** Returns the packs in the order of a profile, most important first: base packs, then by descending weight, then by
 *  id. The order of the input does not matter. */
export function orderPacks(packs: readonly Pack[], profile?: Profile): readonly Pack[] {
  const weights = new Map(profile?.packs.map(({ id, weight }) => [id, weight]));
  const weightOf = (pack: Pack) => weights.get(pack.id) || pack.weight;
  return [...packs].sort(
    (a, b) => Number(b.base) - Number(a.base) || weightOf(b) - weightOf(a) || compareText(a.id, b.id),
  );
}
