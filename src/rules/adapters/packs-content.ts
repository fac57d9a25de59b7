/** The packs that inject would see from here, and which of them it would use. */
import { join, resolve } from "node:path";
import { ContextError } from "../../core/errors.ts";
import { type Tier, tiers, type UnknownName, unknownName } from "../../core/text/index.ts";
import type { Counter } from "../../core/tokens/index.ts";
import {
  type Caller,
  findSource,
  homeDirectory,
  type LoadedConfig,
  loadConfig,
  noteLeftOut,
  projectRoot,
} from "../../host/index.ts";
import type { ContentProblem } from "../content/load-content.ts";
import type { Profile } from "../packs/index.ts";
import type { Scope } from "./adapter.ts";
import { type LoadedPacks, loadPacks, type PackChoice, type PackSelection } from "./load-packs.ts";

/** Which content a person wants to see. */
export interface ContentChoice {
  readonly profile?: string | undefined;
  readonly language?: string | undefined;
  readonly scope: Scope;
  /** A folder of packs, profiles and adapters instead of the built-in ones. */
  readonly content?: string | undefined;
  /** Whether to load every pack, not only those that inject would use. */
  readonly isEvery?: boolean | undefined;
}

export interface PacksContent extends LoadedPacks {
  readonly language: string;
}

/** Loads packs. Leaves out settings that are not trusted, with a note. */
export async function loadPacksContent(
  { profile, language: asked, scope, content, isEvery = false }: ContentChoice,
  caller: Caller,
): Promise<PacksContent> {
  const { cwd, env } = caller;
  const { values: config, leftOut, sources } = await loadConfig({ cwd, env });
  const language = asked ?? config.language;
  const loaded = await loadPacks({
    config,
    sources,
    env,
    language: asked,
    profile,
    scope,
    root: projectRoot(cwd, homeDirectory(env)),
    selection: isEvery ? undefined : selectPacks({ values: config, sources }, {}),
    contentDirectory: content === undefined ? undefined : resolve(cwd, content),
  }).finally(() => noteLeftOut(leftOut, caller));
  const isBroken = loaded.problems.some(({ severity }) => severity === "error");
  if (isBroken) return { ...loaded, language };
  try {
    refuseUnknownPacks({ values: config, sources }, loaded.choices);
    return { ...loaded, language };
  } catch (error) {
    // In content of its own, the packs of the project's configuration may be missing.
    if (!isEvery || !(error instanceof ContextError)) throw error;
    if (content !== undefined) return { ...loaded, language };
    const { message: what, hint, file = "", line = 1 } = error;
    const path = file.startsWith("~") ? join(homeDirectory(env), file.slice(1)) : resolve(cwd, file);
    const message = hint === undefined ? what : `${what}. ${hint}`;
    const problem: ContentProblem = { file: path, line, severity: "error", rule: "unknown-pack", message };
    return { ...loaded, language, problems: [...loaded.problems, problem] };
  }
}

/** Packs that a person names for one run. */
export interface NamedPacks {
  /** Only these, and base packs, whatever the configuration leaves out. */
  readonly packs?: readonly string[] | undefined;
  /** Instead of the list of the configuration. */
  readonly withoutPacks?: readonly string[] | undefined;
}

/** Throws on an id that no pack has, of a person or of the configuration. */
export function refuseUnknownPacks(
  { values, sources, named = {} }: Pick<LoadedConfig, "values" | "sources"> & { readonly named?: NamedPacks },
  choices: readonly PackChoice[],
): void {
  const known = choices.map(({ pack }) => pack.id);
  const refuse = (ids: readonly string[] = [], place?: UnknownName["place"]) => {
    for (const id of ids) if (!known.includes(id)) throw unknownName(id, { kind: "pack", known, place });
  };
  refuse(named.packs);
  refuse(named.withoutPacks);
  for (const key of ["include", "exclude", "built_in"] as const)
    refuse(values.packs[key], findSource(["packs", key], sources));
}

/** Returns the packs that a person and the configuration name, with the words that reports use for each list. */
export function selectPacks(
  { values, sources }: Pick<LoadedConfig, "values" | "sources">,
  { packs: asked, withoutPacks: left }: NamedPacks,
): PackSelection {
  const configured = (key: "include" | "exclude" | "built_in") => {
    const ids = values.packs[key]?.filter((id) => key !== "exclude" || asked?.includes(id) !== true);
    // `project .plimsoll/config.yaml:2` without the first word.
    const place = sources[`packs.${key}`]?.replace(/^\w+ /, "") ?? "the configuration";
    return ids === undefined ? undefined : { ids, from: `packs.${key} in ${place}` };
  };
  return {
    asked: asked === undefined ? undefined : { ids: asked, from: "--pack" },
    include: configured("include"),
    exclude: left === undefined ? configured("exclude") : { ids: left, from: "--no-pack" },
    builtIn: configured("built_in"),
  };
}

export interface ListedPack {
  readonly id: string;
  readonly name: string;
  readonly layer: string;
  /** Weight in the chosen profile. */
  readonly weight: number;
  readonly base: boolean;
  readonly overlaps: readonly string[];
  /** The files that the pack is about. Empty: all. */
  readonly globs: readonly string[];
  readonly nested: boolean;
  /** The AI tools that get the pack, and those that do not. Absent: all, and none. */
  readonly tools?: readonly string[] | undefined;
  readonly not_tools?: readonly string[] | undefined;
  /** Names of the skills that it brings. */
  readonly skills: readonly string[];
  /** Names of its commands and agents. Absent if it has none. */
  readonly commands?: readonly string[] | undefined;
  readonly agents?: readonly string[] | undefined;
  readonly tokens: TierTokens;
  /** Whether inject writes it, before any budget. */
  readonly used: boolean;
  readonly why: string;
}

export function describePack(
  { pack, used, why }: PackChoice,
  { counter, profile }: { readonly counter: Counter; readonly profile: Profile },
): ListedPack {
  const { id, name, layer, base, overlaps, globs, nested, tools, notTools: not_tools } = pack;
  const skills = pack.skills.map((skill) => skill.name);
  const listPrompts = (kind: string) => {
    const names = pack.prompts?.filter((each) => each.kind === kind).map((each) => each.name) ?? [];
    return names.length === 0 ? undefined : names;
  };
  const [commands, agents] = [listPrompts("command"), listPrompts("agent")];
  const weight = profile.packs.find((each) => each.id === id)?.weight || pack.weight;
  // A preamble is core. Lists that inject renders (patterns, errors, courses) are not counted.
  const count = (tier: Tier) => {
    const texts = [...pack.constraints, ...pack.context].filter((segment) => segment.tier === tier);
    return counter.count([...(tier === "core" ? [pack.preamble] : []), ...texts.map(({ text }) => text)].join(""));
  };
  const tokens = Object.fromEntries(tiers.map((tier) => [tier, count(tier)])) as unknown as TierTokens;
  return {
    id,
    name,
    layer,
    weight,
    base,
    overlaps,
    globs,
    nested,
    tools,
    not_tools,
    skills,
    commands,
    agents,
    tokens,
    used,
    why,
  };
}

export type TierTokens = Readonly<Record<Tier, number>>;
