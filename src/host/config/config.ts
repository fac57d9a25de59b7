import type { PolicyName } from "../../conversation/history/index.ts";
import type { LedgerTiers } from "../../core/budget/index.ts";
import type { Verbosity } from "../../core/text/index.ts";

/** The configuration. The project's `.plimsoll/config.yaml` overrides the user's file, which overrides these defaults,
 *  key by key. The schema in config-file.ts describes each key. */
export interface Config {
  readonly counter?: string | undefined;
  readonly model?: string | undefined;
  readonly title: string;
  readonly profile: string;
  readonly language: string;
  readonly tools?: readonly string[] | undefined;
  readonly own_files: readonly string[];
  readonly packs: {
    readonly include?: readonly string[] | undefined;
    readonly exclude?: readonly string[] | undefined;
    readonly built_in?: readonly string[] | undefined;
  };
  readonly verbosity: Readonly<Record<string, Verbosity>>;
  readonly budgets: Readonly<Record<string, ToolBudget>>;
  readonly on_overflow: OnOverflow;
  readonly on_drop: OnDrop;
  readonly company?: { readonly source: string; readonly revision?: string | undefined } | undefined;
  /** Skills of git repositories. `sync` pins them, `inject` installs the pinned copies. */
  readonly skills: readonly SkillSource[];
  readonly context: {
    readonly max_tokens: number;
    readonly shares: { readonly project: number; readonly fabric: number; readonly prior_work: number };
  };
  readonly nebula: { readonly worktrees: boolean; readonly worktree_copy: readonly string[] };
  readonly session: {
    readonly total: number;
    readonly per_tool_call: number;
    readonly history_max: number;
    readonly warning_threshold: number;
    readonly tools: Readonly<Record<string, number>>;
    readonly tiers: Partial<LedgerTiers>;
    readonly hints: "schema" | "note" | "off";
  };
  readonly history: {
    readonly policy: PolicyName | "none";
    readonly threshold: number;
    readonly keep: number;
    readonly reserve: number;
  };
  readonly deny: readonly string[];
  readonly allow: readonly string[];
  readonly run: {
    readonly agent?: string | undefined;
    readonly model?: string | undefined;
    readonly allow: Allow;
    readonly args: readonly string[];
  };
  readonly guard: {
    readonly session_usd?: number | undefined;
    readonly day_usd?: number | undefined;
    readonly on_limit: "ask" | "deny";
  };
  readonly store: string;
  readonly retention?: string | undefined;
  readonly prices: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

/** The most that one AI tool gets. A number counts tokens. */
export type ToolBudget = number | { readonly max_tokens: number } | { readonly max_bytes: number };

/** A folder of skills in a git repository. */
export interface SkillSource {
  readonly source: string;
  readonly revision?: string | undefined;
  /** The folder with one folder for each skill. @default "skills" */
  readonly path?: string | undefined;
  /** Names of the skills to take. Absent: all. */
  readonly only?: readonly string[] | undefined;
}

/** What a company sets for all of its projects, in `config.yaml` beside its packs. */
export interface CompanyConfig {
  readonly tools?: readonly string[] | undefined;
  readonly budgets?: Readonly<Record<string, ToolBudget>> | undefined;
  /** Ids of packs that a project cannot leave out. */
  readonly required?: readonly string[] | undefined;
}

/** Any part of a `Config`, from one file. */
export type ConfigPart = { readonly [Key in keyof Config]?: DeepPart<Config[Key]> };
type DeepPart<Value> = Value extends readonly unknown[] | undefined
  ? Value
  : Value extends object | undefined
    ? { readonly [Key in keyof Value]?: DeepPart<Value[Key]> | undefined }
    : Value | undefined;

export const onOverflows = ["drop", "thin"] as const;
export type OnOverflow = (typeof onOverflows)[number];

/** Whether `inject --check` fails if packs were dropped for a budget. */
export type OnDrop = "fail" | "warn";

/** What an agent may do without a question: read files; also change files; also run any command. */
export const allowLevels = ["read", "edit", "all"] as const;
export type Allow = (typeof allowLevels)[number];

/** Keys without a default are listed too, because they can be set and shown. */
export const defaultConfig: Config = {
  counter: undefined,
  model: undefined,
  title: "Developer Context",
  profile: "all",
  language: "en",
  tools: undefined,
  own_files: [],
  packs: {},
  verbosity: {},
  budgets: {},
  on_overflow: "drop",
  on_drop: "fail",
  company: undefined,
  skills: [],
  context: { max_tokens: 10_000, shares: { project: 0.4, fabric: 0.4, prior_work: 0.2 } },
  nebula: { worktrees: false, worktree_copy: [] },
  session: {
    total: 100_000,
    per_tool_call: 8_000,
    history_max: 12_000,
    warning_threshold: 20_000,
    tools: {},
    tiers: {},
    hints: "note",
  },
  history: { policy: "economic", threshold: 0.8, keep: 10, reserve: 16_000 },
  deny: [],
  allow: [],
  run: { agent: undefined, model: undefined, allow: "edit", args: [] },
  guard: { session_usd: undefined, day_usd: undefined, on_limit: "ask" },
  store: "default",
  retention: undefined,
  prices: {},
};
