import type { PolicyName } from "../../history/index.ts";
import type { Verbosity } from "../../text/index.ts";

/** The configuration: `.plimsoll/config.yaml` of the project over the user's over these defaults, key by key. */
export interface Config {
  readonly counter?: string | undefined;
  readonly title: string;
  readonly profile: string;
  readonly language: string;
  readonly tools?: readonly string[] | undefined;
  readonly own_files: readonly string[];
  readonly verbosity: Readonly<Record<string, Verbosity>>;
  readonly on_overflow: OnOverflow;
  readonly company?: { readonly source: string; readonly revision?: string | undefined } | undefined;
  readonly context: {
    readonly max_tokens: number;
    readonly shares: { readonly project: number; readonly fabric: number; readonly prior_work: number };
  };
  readonly session: {
    readonly total: number;
    readonly per_tool_call: number;
    readonly history_max: number;
    readonly warning_threshold: number;
    readonly tools: Readonly<Record<string, number>>;
  };
  readonly history: {
    readonly policy: PolicyName | "none";
    readonly threshold: number;
    readonly keep: number;
    readonly reserve: number;
  };
  /** Globs of files whose contents are not shown, beside those that usually hold secrets. */
  readonly deny: readonly string[];
  /** Globs of files that are shown although they look like secrets. */
  readonly allow: readonly string[];
  readonly store: string;
  readonly prices: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

/** Keys that can start a program, read outside of the project, or change what things cost. From a project they count only once a person
 *  has trusted them. Some are of later versions: a key is in this list before it is in the schema. */
export const powerfulKeys: readonly string[] = ["company", "prices", "allow", "guard", "run"];

/** One file's share of a `Config`: any part of it. */
export type ConfigPart = { readonly [Key in keyof Config]?: Part<Config[Key]> };
type Part<Value> = Value extends readonly unknown[] | undefined
  ? Value
  : Value extends object | undefined
    ? { readonly [Key in keyof Value]?: Part<Value[Key]> | undefined }
    : Value | undefined;

export const onOverflows = ["drop", "thin"] as const;
export type OnOverflow = (typeof onOverflows)[number];

/** Keys without a default are spelled out: they are part of what can be set and shown. */
export const defaultConfig: Config = {
  counter: undefined,
  title: "Developer Context",
  profile: "all",
  language: "en",
  tools: undefined,
  own_files: [],
  verbosity: {},
  on_overflow: "drop",
  company: undefined,
  context: { max_tokens: 10_000, shares: { project: 0.4, fabric: 0.4, prior_work: 0.2 } },
  session: {
    total: 100_000,
    per_tool_call: 8_000,
    history_max: 12_000,
    warning_threshold: 20_000,
    tools: {},
  },
  history: { policy: "economic", threshold: 0.8, keep: 10, reserve: 16_000 },
  deny: [],
  allow: [],
  store: "default",
  prices: {},
};
