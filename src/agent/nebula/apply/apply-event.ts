import type { ComposedLayer, PhaseState } from "../../../compose/index.ts";
import type { Gate } from "../files/nebula.ts";

/** What happens while a nebula is applied, as it happens. */
export type ApplyEvent = PhaseStarted | PhaseEnded | PhaseBlocked | PhaseHeld | Notice;

export interface PhaseStarted {
  readonly event: "started";
  readonly phase: string;
  readonly attempt: number;
  readonly promptTokens: number;
  /** An earlier run had started it, and it goes on. */
  readonly adopted: boolean;
  /** The layers of its context that were truncated. Absent where the earlier run composed it. */
  readonly truncated?: readonly ComposedLayer["name"][] | undefined;
  /** Tokens by which the discoveries of the fabric did not fit. Absent where the earlier run composed it. */
  readonly overflow?: number | undefined;
}

export interface PhaseEnded {
  readonly event: "ended";
  readonly phase: string;
  readonly state: "completed" | "failed" | "waiting";
  readonly seconds: number;
  readonly promptTokens: number;
  /** Where it did not complete: how it ended, and the last that it said. */
  readonly error?: string | undefined;
  /** Where it failed and said something on stderr: the file with all of that. */
  readonly stderr?: string | undefined;
  /** Where it failed and said something only on stdout: the file with all of that. */
  readonly stdout?: string | undefined;
}

export interface PhaseBlocked {
  readonly event: "blocked";
  readonly phase: string;
  /** The phase that failed. */
  readonly by: string;
}

/** It waits for a person who did not say yes, or could not be asked. */
export interface PhaseHeld {
  readonly event: "held";
  readonly phase: string;
  readonly gate: Gate;
}

/** Something that people should know and that stops nothing. */
export interface Notice {
  readonly event: "notice";
  readonly phase?: string | undefined;
  readonly message: string;
}

export interface ApplyReport {
  /** In the order in which they would start. */
  readonly phases: readonly PhaseReport[];
}

export interface PhaseReport {
  readonly id: string;
  readonly state: PhaseState;
  readonly attempts: number;
  readonly promptTokens: number;
  readonly seconds: number;
  readonly error?: string | undefined;
}
