/** The packs that a `packs` command looks at, as inject would see them from here. */
import { join, resolve } from "node:path";
import type { Call, OptionSpec } from "../../cli/command.ts";
import { ContextError } from "../../core/errors.ts";
import { printable, type Tier, tiers, type UnknownName, unknownName } from "../../core/text/index.ts";
import type { Counter } from "../../core/tokens/index.ts";
import { homeDirectory, type LoadedConfig, loadConfig, placeOf, projectRoot, shownPath } from "../../host/index.ts";
import { noteLeftOut, trustOption } from "../../host/trust/require-trust.ts";
import type { ContentProblem } from "../index.ts";
import { type LoadedPacks, loadPacks, type PackChoice, type PackSelection } from "../index.ts";
import type { Profile } from "../packs/index.ts";

/** Options of every `packs` command. */
export const contentOptions: ContentOptions = {
  lang: { value: "LANGUAGE", summary: "language of the packs" },
  global: { summary: "use the user's packs instead of the project's" },
  content: {
    value: "DIR",
    summary: "use packs, profiles and adapters of this directory instead of the built-in ones",
  },
  ...trustOption,
};

interface ContentOptions {
  readonly lang: OptionSpec & { readonly value: string };
  readonly global: OptionSpec;
  readonly content: OptionSpec & { readonly value: string };
  readonly trust: OptionSpec & { readonly value?: never };
}

export type ContentCall = Call<{
  readonly profile?: string | undefined;
  readonly lang?: string | undefined;
  readonly global?: boolean | undefined;
  readonly content?: string | undefined;
}>;

export interface PacksContent extends LoadedPacks {
  readonly language: string;
}

/** Loads packs as inject would see them from here, or every pack. Leaves out settings that are not trusted, with a
 *  note. */
export async function loadPacksContent(call: ContentCall, isEvery = false): Promise<PacksContent> {
  const { cwd, env, options } = call;
  const { values: config, leftOut, sources } = await loadConfig({ cwd, env });
  const language = options.lang ?? config.language;
  const loaded = await loadPacks({
    ...{ config, sources, env, language: options.lang, profile: options.profile },
    scope: options.global === true ? "global" : "project",
    root: projectRoot(cwd, homeDirectory(env)),
    selection: isEvery ? undefined : selectionOf({ values: config, sources }, {}),
    contentDirectory: options.content === undefined ? undefined : resolve(cwd, options.content),
  }).catch((error: unknown) => {
    noteLeftOut(leftOut, call);
    throw error;
  });
  noteLeftOut(leftOut, call);
  const isBroken = loaded.problems.some(({ severity }) => severity === "error");
  if (isBroken) return { ...loaded, language };
  try {
    refuseUnknownPacks({ values: config, sources }, loaded.choices);
    return { ...loaded, language };
  } catch (error) {
    // In content of its own, the packs of the project's configuration may be missing.
    if (!isEvery || !(error instanceof ContextError)) throw error;
    const problems = options.content === undefined ? [configProblem(error, call)] : [];
    return { ...loaded, language, problems: [...loaded.problems, ...problems] };
  }
}

function configProblem(
  { message, hint, file = "", line = 1 }: ContextError,
  { cwd, env }: ContentCall,
): ContentProblem {
  const path = file.startsWith("~") ? join(homeDirectory(env), file.slice(1)) : resolve(cwd, file);
  const text = hint === undefined ? message : `${message}. ${hint}`;
  return { file: path, line, severity: "error", rule: "unknown-pack", message: text };
}

/** Throws on an id of the flags or of the configuration that no pack has. */
export function refuseUnknownPacks(
  { values, sources, flags = {} }: Pick<LoadedConfig, "values" | "sources"> & { readonly flags?: PackFlags },
  choices: readonly PackChoice[],
): void {
  const known = choices.map(({ pack }) => pack.id);
  const refuse = (ids: readonly string[] = [], place?: UnknownName["place"]) => {
    for (const id of ids) if (!known.includes(id)) throw unknownName(id, { kind: "pack", known, place });
  };
  refuse(flags.pack);
  refuse(flags["no-pack"]);
  for (const key of ["include", "exclude"] as const) refuse(values.packs[key], placeOf(["packs", key], sources));
}

interface PackFlags {
  readonly pack?: readonly string[] | undefined;
  readonly "no-pack"?: readonly string[] | undefined;
}

/** Returns the packs that the flags and the configuration name. A flag replaces its list of the configuration, and
 *  `--pack` names its packs whatever the configuration leaves out. */
export function selectionOf(
  { values, sources }: Pick<LoadedConfig, "values" | "sources">,
  { pack: asked, "no-pack": left }: PackFlags,
): PackSelection {
  const configured = (key: "include" | "exclude") => {
    const ids = values.packs[key]?.filter((id) => key === "include" || asked?.includes(id) !== true);
    // `project .plimsoll/config.yaml:2` without the first word.
    const place = sources[`packs.${key}`]?.replace(/^\w+ /, "") ?? "the configuration";
    return ids === undefined ? undefined : { ids, from: `packs.${key} in ${place}` };
  };
  return {
    asked: asked === undefined ? undefined : { ids: asked, from: "--pack" },
    include: configured("include"),
    exclude: left === undefined ? configured("exclude") : { ids: left, from: "--no-pack" },
  };
}

/** Prints problems of the content. Returns whether some content cannot be used. */
export function reportProblems(
  problems: readonly ContentProblem[],
  { cwd, env, output }: Pick<ContentCall, "cwd" | "env" | "output">,
): boolean {
  for (const { file, line, severity, message } of problems) {
    const text = `${printable(shownPath(file, cwd, env))}:${line}: ${printable(message)}`;
    if (severity === "error") output.problem(text);
    else output.note(text);
  }
  return problems.some(({ severity }) => severity === "error");
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
  /** Names of the skills that it brings. */
  readonly skills: readonly string[];
  readonly tokens: TierTokens;
  /** Whether inject writes it, before any budget. */
  readonly used: boolean;
  readonly why: string;
}

export function describePack(
  { pack, used, why }: PackChoice,
  { counter, profile }: { readonly counter: Counter; readonly profile: Profile },
): ListedPack {
  const { id, name, layer, base, overlaps, globs, nested } = pack;
  const skills = pack.skills.map((skill) => skill.name);
  const weight = profile.packs.find((each) => each.id === id)?.weight || pack.weight;
  const tokens = tierTokens(pack, counter);
  return { id, name, layer, weight, base, overlaps, globs, nested, skills, tokens, used, why };
}

export type TierTokens = Readonly<Record<Tier, number>>;

/** Counts the tokens of a pack's own texts. A preamble is core. Lists that inject renders (patterns, errors,
 *  courses) are not counted. */
function tierTokens({ preamble, constraints, context }: PackChoice["pack"], counter: Counter): TierTokens {
  const count = (tier: Tier) => {
    const texts = [...constraints, ...context].filter((segment) => segment.tier === tier);
    return counter.count([...(tier === "core" ? [preamble] : []), ...texts.map(({ text }) => text)].join(""));
  };
  return Object.fromEntries(tiers.map((tier) => [tier, count(tier)])) as unknown as TierTokens;
}
