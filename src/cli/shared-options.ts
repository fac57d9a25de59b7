/** Options that several commands declare. Those for agents are in agent-options.ts, which loads more. */
import { counterNames } from "../core/tokens/index.ts";
import type { ContentChoice } from "../rules/index.ts";
import type { OptionSpec, OptionValues } from "./command.ts";

export type ValueOption = OptionSpec & { readonly value: string; readonly list?: never };
export type ListOption = OptionSpec & { readonly value: string; readonly list: true };
export type SwitchOption = OptionSpec & { readonly value?: never };

export const counterOptions: Readonly<Record<"counter" | "model", ValueOption>> = {
  counter: { value: "NAME", choices: counterNames, summary: "how tokens are counted" },
  model: { value: "ID", summary: "use the counter of this model's family" },
};

/** It sets PLIMSOLL_TRUST=1. */
export const trustOption: Readonly<Record<"trust", SwitchOption>> = {
  trust: { summary: 'trust the project\'s settings in this run (see "plimsoll trust")' },
};

export const storeOptions: Readonly<Record<"store", ValueOption>> = {
  store: {
    value: "PLACE",
    summary: "file of the store, or postgres://… (default: PLIMSOLL_STORE, or else from the configuration)",
  },
};

export const dryRunOption: Readonly<Record<"dry-run", SwitchOption>> = {
  "dry-run": { summary: "show the changes; write nothing" },
};

/** Which packs a command looks at. */
export const contentOptions: Readonly<
  Record<"lang" | "content", ValueOption> & Record<"global" | "trust", SwitchOption>
> = {
  lang: { value: "LANGUAGE", summary: "language of the packs" },
  global: { summary: "use the user's packs instead of the project's" },
  content: {
    value: "DIR",
    summary: "use packs, profiles and adapters of this directory instead of the built-in ones",
  },
  ...trustOption,
};

/** Returns the content that the options of a `packs` command choose. */
export function contentChoice({
  profile,
  lang,
  global,
  content,
}: OptionValues<typeof contentOptions> & { readonly profile?: string | undefined }): ContentChoice {
  return { profile, language: lang, scope: global === true ? "global" : "project", content };
}

/** Layers of a prompt that are files. */
export const layerOptions: Readonly<Record<"fabric" | "prior", ValueOption>> = {
  fabric: { value: "FILE", summary: "the fabric: what other phases reported, as Markdown" },
  prior: { value: "FILE", summary: "the answers of earlier work" },
};

/** How a history is trimmed. */
export const historyOptions: Readonly<Record<"reserve" | "keep", ValueOption>> = {
  reserve: {
    value: "N",
    summary: "tokens kept free for the answer (default: from the configuration, 16000, at most half of the window)",
  },
  keep: {
    value: "N",
    summary: "assistant turns that are trimmed last (default: from the configuration, 10)",
  },
};
