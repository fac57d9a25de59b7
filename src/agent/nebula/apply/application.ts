import type { ContextShares } from "../../../compose/index.ts";
import type { Store } from "../../../store/index.ts";
import type { Counter } from "../../../tokens/index.ts";
import type { Environment } from "../../../workspace/index.ts";
import type { Phase } from "../files/nebula.ts";
import type { OpenNebulaRecord } from "../record/nebula-record.ts";
import type { ApplyEvent } from "./apply-event.ts";
import type { PromptSources } from "./phase-prompt.ts";
import type { Schedule } from "./pool/schedule.ts";

export interface ApplyOptions {
  readonly store: Store;
  /** Absolute: agents are told, so that what they report gets into the same store. */
  readonly storeFile: string;
  readonly counter: Counter;
  /** The command line of the agent for a phase. */
  command(phase: Phase): string;
  /** Where agents work, and what the project layer shows. */
  readonly cwd: string;
  readonly env: Environment;
  readonly maxWorkers: number;
  /** 0: no context is injected. */
  readonly maxContextTokens: number;
  readonly shares?: Partial<ContextShares> | undefined;
  readonly timeoutMs: number;
  readonly maxOutputBytes: number;
  /** Go on where the run before stopped; else all starts anew. */
  readonly resume: boolean;
  /** Whether a phase whose gate asks for a person may start. Comes to an answer when `signal` aborts, too. */
  approve(phase: Phase): Promise<boolean>;
  /** Ends the agents and the run, with a whole record. */
  readonly signal: AbortSignal;
  tell(event: ApplyEvent): void;
}

/** A nebula while it is applied: what its phases share. */
export interface Application {
  readonly options: ApplyOptions;
  readonly sources: PromptSources;
  readonly record: OpenNebulaRecord;
  /** The folder of the agents' attempts. */
  readonly attempts: string;
  readonly schedule: Schedule;
  readonly stop: AbortController;
  readonly tell: (event: ApplyEvent) => void;
}
