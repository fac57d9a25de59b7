/** The content that a `packs` command looks at, as inject would see it from here. */
import { resolve } from "node:path";
import { type LoadedPacks, loadPacks } from "../../adapters/index.ts";
import { homeDirectory, loadConfig, projectRoot } from "../../workspace/index.ts";
import type { Call, OptionSpec } from "../command.ts";
import { noteLeftOut, trustOption } from "../trust.ts";

/** The options of every `packs` command. */
export const contentOptions: ContentOptions = {
  lang: { value: "LANGUAGE", summary: "language of the packs" },
  global: { summary: "the user's own packs instead of the project's" },
  content: {
    value: "DIR",
    summary: "packs, profiles and adapters of this directory instead of the embedded ones",
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

/** Settings that nobody has trusted are left out, with a note. */
export async function loadPacksContent(call: ContentCall): Promise<PacksContent> {
  const { cwd, env, options } = call;
  const { values: config, leftOut } = await loadConfig({ cwd, env });
  const language = options.lang ?? config.language;
  const loaded = await loadPacks({
    ...{ config, env, language, profile: options.profile },
    scope: options.global === true ? "global" : "project",
    root: projectRoot(cwd, homeDirectory(env)),
    contentDirectory: options.content === undefined ? undefined : resolve(cwd, options.content),
  }).catch((error: unknown) => {
    noteLeftOut(leftOut, call);
    throw error;
  });
  noteLeftOut([...leftOut, ...loaded.leftOut], call);
  return { ...loaded, language };
}
