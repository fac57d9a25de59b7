/** A nebula as it is read from its folder: what is to be done, in phases, and what holds for all of them. */
export interface Nebula {
  /** Absolute. */
  readonly directory: string;
  readonly name: string;
  readonly description: string;
  readonly goals: readonly string[];
  readonly constraints: readonly string[];
  /** As written: relative to where the command runs. */
  readonly workingDirectory?: string | undefined;
  readonly execution: Execution;
  /** In the order of their files' names. */
  readonly phases: readonly Phase[];
}

export interface Execution {
  readonly maxWorkers?: number | undefined;
  /** 0 injects no context at all. */
  readonly maxContextTokens?: number | undefined;
  readonly gate?: Gate | undefined;
  readonly model?: string | undefined;
}

export interface Phase {
  readonly id: string;
  readonly title: string;
  /** Absolute. */
  readonly file: string;
  /** What stands below the front matter, without the space around it. */
  readonly body: string;
  /** Each once, those that other phases name in `blocks` included. */
  readonly dependsOn: readonly string[];
  /** Glob patterns, as written. */
  readonly scope: readonly string[];
  /** Its own, else that of the nebula, else `trust`. */
  readonly gate: Gate;
  /** Its own, else that of the nebula. */
  readonly model?: string | undefined;
  readonly type?: string | undefined;
  /** Smaller comes first among phases that could run at the same time. */
  readonly priority: number;
  readonly labels: readonly string[];
  readonly assignee?: string | undefined;
}

/** Whether a phase waits for a person. */
export type Gate = (typeof gates)[number];

export const gates = ["trust", "review", "approve", "watch"] as const;
