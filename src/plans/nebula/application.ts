import type { Prices } from "../../core/billing/index.ts";
import type { Store } from "../../core/store/index.ts";
import type { SecretRules } from "../../core/text/index.ts";
import type { Counter } from "../../core/tokens/index.ts";
import type { ConventionsFile, Environment, Machine } from "../../host/index.ts";
import type { AgentLine, AgentUsage } from "../agent/index.ts";
import type { ComposedLayer, ContextShares, PhaseState } from "../compose/index.ts";
import type { Activity, Attempts } from "./attempt-folders.ts";
import type { OwnRun } from "./leases.ts";
import type { Gate, Phase } from "./nebula.ts";
import type { AttemptRecord, OpenNebulaRecord } from "./nebula-record.ts";
import type { PromptSources } from "./phase-prompt.ts";
import type { Schedule } from "./schedule.ts";
import type { WatchedRun } from "./watch-run.ts";
import type { Worktrees } from "./worktrees.ts";

/** What all phases share while a nebula is applied. */
export interface Application {
  readonly options: SettledOptions;
  readonly sources: PromptSources;
  /** Returns the sources with the counter of a phase. */
  sourcesOf(phase: Phase): PromptSources;
  readonly record: OpenNebulaRecord;
  readonly attempts: Attempts;
  readonly schedule: Schedule;
  readonly stop: AbortController;
  /** Absent if all phases work in one folder. */
  readonly worktrees?: Worktrees | undefined;
  readonly onEvent: (event: ApplyEvent) => void;
  readonly own: OwnRun;
  readonly watched: WatchedRun;
}

/** Options of `applyNebula`. */
export interface ApplyOptions {
  /** Keeps the record of the run, what phases report and what they answer. */
  readonly store: Store;
  /**
   * The absolute path of the store's file. Agents get it in `PLIMSOLL_STORE`, so that `plimsoll fabric` writes to the
   * same store.
   */
  readonly storeFile: string;
  /**
   * Counts the tokens of prompts, or returns the counter of a phase.
   * @default the counter bytes/4
   */
  readonly counter?: Counter | ((phase: Phase) => Counter) | undefined;
  /**
   * Returns the command line of the agent for a phase. `budgetUsd` is the most that the attempt may cost, if there is a
   * limit. `folder` is where the agent works, and `session` an earlier session of the agent that goes on.
   */
  command(phase: Phase, start: AgentStart): string;
  /**
   * Returns what the agent of a phase may do. A phase whose agent may only read completes by its answer.
   * @default `allow` of the phase
   */
  allow?(phase: Phase): string | undefined;
  /** Returns the command line of the agent that reviews the work of a phase, which may only read. */
  review?(
    phase: Phase,
    start: AgentStart,
  ): { readonly command: string; readonly agent?: string | undefined; readonly model?: string | undefined };
  /**
   * The name of the preset whose command line `command` returns. It says how to read the answer, the cost and denied
   * tools. Without it the output is the answer.
   */
  readonly agent?: string | undefined;
  /**
   * Returns the model of a phase, for the price of what its agent used.
   * @default the model of the phase
   */
  model?(phase: Phase): string | undefined;
  /** Your own prices, for agents that report only how many tokens they used. */
  readonly prices?: Prices | undefined;
  /** Whether agents load a file of the project by themselves. Prompts name such files without their text. */
  loadsItself?(file: ConventionsFile): boolean;
  /** The folder that agents work in and that the project layer describes. */
  readonly cwd: string;
  /**
   * The environment of the agents. It also decides where the state directory is.
   * @default process.env
   */
  readonly env?: Environment | undefined;
  /**
   * How many phases run at the same time.
   * @default `max_workers` of the nebula, or 1
   */
  readonly maxWorkers?: number | undefined;
  /**
   * The most tokens of context before a task. 0 sends the task alone.
   * @default `max_context_tokens` of the nebula, or 10_000
   */
  readonly maxContextTokens?: number | undefined;
  /**
   * The part of the context that each layer can count on.
   * @default { project: 0.4, fabric: 0.4, priorWork: 0.2 }
   */
  readonly shares?: Partial<ContextShares> | undefined;
  /** Corrects which files of the project count as secrets. No prompt contains their texts. */
  readonly secrets?: SecretRules | undefined;
  /**
   * How long one agent may run, in milliseconds.
   * @default 3_600_000
   */
  readonly timeoutMs?: number | undefined;
  /**
   * How many bytes one agent may print.
   * @default 10_000_000
   */
  readonly maxOutputBytes?: number | undefined;
  /**
   * Continues the run before instead of starting again from the beginning.
   * @default false
   */
  readonly resume?: boolean | undefined;
  /**
   * Ids of phases that run again, with all phases that depend on them. Other completed phases stay completed, as with
   * `resume`.
   */
  readonly rerun?: readonly string[] | undefined;
  /** Ids of the only phases that may start. What they depend on must have completed. Continues the run before. */
  readonly only?: readonly string[] | undefined;
  /**
   * Decides about a phase whose gate asks for a person: whether it may start (`approve`), or whether its finished work
   * counts (`review` and `approve`, with `work`). True accepts, and false lets the phase wait. It must also answer when
   * `signal` aborts. If it is absent, such phases wait.
   */
  approve?(phase: Phase, work?: FinishedWork): Promise<boolean | GateAnswer>;
  /**
   * Gives each phase a git worktree and a branch of its own, and merges what it did into the branch `nebula/NAME`.
   * @default false
   */
  readonly worktrees?: boolean | undefined;
  /**
   * Shares the run with other machines that use the same store: the name of a git remote that all of them push to.
   * Needs `worktrees`. Without it, this machine works alone.
   */
  readonly remote?: string | undefined;
  /**
   * How long a lease of this run lasts, in milliseconds. If it is not renewed, other machines take its phases.
   * @default 60_000
   */
  readonly leaseMs?: number | undefined;
  /** Ignored files and folders that each worktree gets a copy of, such as `node_modules`. */
  readonly worktreeCopy?: readonly string[] | undefined;
  /**
   * Commits what a completed phase changed, with its id in the message. Worktrees always do.
   * @default false
   */
  readonly commit?: boolean | undefined;
  /** Ends the agents and the run. The record stays complete. */
  readonly signal?: AbortSignal | undefined;
  /** Receives what happens, as it happens. */
  onEvent?(event: ApplyEvent): void;
}

export interface AgentStart {
  readonly budgetUsd?: number | undefined;
  readonly folder: string;
  readonly session?: string | undefined;
}

/** What a person says about finished work. The agent gets `words` and continues its work. `retry` starts again from the
 *  task, and `skip` gives the phase up. */
export type GateAnswer =
  | { readonly action: "reject"; readonly words: string }
  | { readonly action: "retry" }
  | { readonly action: "skip" };

/** The work of a phase whose agent is done. */
export interface FinishedWork {
  /** Where the agent worked, or its whole worktree. */
  readonly folder: string;
  /** The tree or commit in git from which the phase began; undefined if it is unknown. */
  readonly base?: string | undefined;
  readonly answer: string;
}

/** Options with defaults. Defaults of the context are set with the prompt sources, as in a plan. */
export type SettledOptions = ApplyOptions &
  Required<
    Pick<
      ApplyOptions,
      | "env"
      | "counter"
      | "model"
      | "maxWorkers"
      | "timeoutMs"
      | "maxOutputBytes"
      | "resume"
      | "approve"
      | "allow"
      | "leaseMs"
      | "onEvent"
    >
  >;

/** What happens while a nebula is applied. */
export type ApplyEvent =
  | {
      readonly event: "started";
      readonly phase: string;
      readonly attempt: number;
      readonly promptTokens: number;
      /** Whether an earlier run started it and it continues. */
      readonly adopted: boolean;
      /** Layers of its context that were truncated. Absent if an earlier run composed it. */
      readonly truncated?: readonly ComposedLayer["name"][] | undefined;
      /** Tokens by which the discoveries did not fit. Absent if an earlier run composed the prompt. */
      readonly overflow?: number | undefined;
    }
  | {
      readonly event: "ended";
      readonly phase: string;
      readonly state: "completed" | "failed" | "waiting";
      /** Why the work does not count although the agent ended by itself, such as `check_failed`. */
      readonly outcome?: string | undefined;
      /** Whether another attempt follows. Its prompt says what was wrong. */
      readonly isContinued?: boolean | undefined;
      /** How the checks of the phase ended. Absent if it has none. */
      readonly checks?: AttemptRecord["checks"];
      readonly seconds: number;
      readonly promptTokens: number;
      /** What the attempt used and cost, if its agent reports it. */
      readonly usage?: AgentUsage | undefined;
      readonly costUsd?: number | undefined;
      /** If it did not complete: how it ended, and its last output. */
      readonly error?: string | undefined;
      /** If it failed with output on stderr: the file with all of it. */
      readonly stderr?: string | undefined;
      /** If it failed with output only on stdout: the file with all of it. */
      readonly stdout?: string | undefined;
    }
  /** What the agent of a phase does or says now, or what keeps it from its work, with the tokens and dollars of its
   *  attempt so far. */
  | {
      readonly event: "doing";
      readonly phase: string;
      readonly kind: AgentLine["kind"];
      readonly text: string;
      readonly usage?: AgentUsage | undefined;
      readonly costUsd?: number | undefined;
    }
  /** `by` is the phase that failed. */
  | { readonly event: "blocked"; readonly phase: string; readonly by: string }
  /** A phase that waits because nobody approved it. */
  | { readonly event: "held"; readonly phase: string; readonly gate: Gate }
  /** The finished work of a phase with the gate `watch`. */
  | (Omit<FinishedWork, "answer"> & { readonly event: "shown"; readonly phase: string })
  /** What another machine did. */
  | {
      readonly event: "elsewhere";
      readonly phase: string;
      readonly state: "running" | "completed" | "failed";
      /** The name of the machine. */
      readonly machine: string;
    }
  /** Something that people should know but that stops nothing. */
  | { readonly event: "notice"; readonly phase?: string | undefined; readonly message: string };

/** The state of every phase after a run. */
export interface ApplyReport {
  /** All phases, in the order in which they start. */
  readonly phases: readonly PhaseReport[];
}

export interface PhaseReport {
  readonly id: string;
  readonly state: PhaseState;
  /** Why the work does not count although the agent ended by itself, such as `check_failed`. */
  readonly outcome?: string | undefined;
  /** How the checks of its last attempt ended. Absent if it has none. */
  readonly checks?: AttemptRecord["checks"];
  readonly attempts: number;
  readonly promptTokens: number;
  readonly seconds: number;
  /** What all attempts cost, in dollars; absent if no agent reported it. */
  readonly costUsd?: number | undefined;
  /** Where its last attempt ran or runs. */
  readonly machine?: Machine | undefined;
  /** Set while a run works on the phase: when that run was last known to be alive, by the clock of its machine, and after
   *  how many seconds of silence it counts as lost. */
  readonly lease?: { readonly renewed: string; readonly seconds: number } | undefined;
  /** Tokens, dollars and time of every attempt that has ended, the oldest first. Absent before the first. */
  readonly history?: readonly AttemptRecord[] | undefined;
  readonly error?: string | undefined;
  /** What its agent does now. Only `nebula status` of the machine that runs it knows. */
  readonly doing?: Activity | undefined;
}
