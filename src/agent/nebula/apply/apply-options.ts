import type { ContextShares } from "../../../compose/index.ts";
import type { Store } from "../../../store/index.ts";
import type { Counter } from "../../../tokens/index.ts";
import type { Environment, SecretRules } from "../../../workspace/index.ts";
import { defaultAgentLimits } from "../../process/watch-agent.ts";
import type { Nebula, Phase } from "../files/nebula.ts";
import type { ApplyEvent } from "./apply-event.ts";

export interface ApplyOptions {
  readonly store: Store;
  /** Absolute: agents are told, so that what they report gets into the same store. */
  readonly storeFile: string;
  readonly counter: Counter;
  /** The command line of the agent for a phase. */
  command(phase: Phase): string;
  /** Where agents work, and what the project layer shows. */
  readonly cwd: string;
  /** Of the agents, and where the state directory is. Default: that of this process. */
  readonly env?: Environment | undefined;
  /** Phases at a time. Default: the nebula's, else 1. */
  readonly maxWorkers?: number | undefined;
  /** 0: no context is injected. Default: the nebula's, else 10,000. */
  readonly maxContextTokens?: number | undefined;
  readonly shares?: Partial<ContextShares> | undefined;
  /** Corrects which files of the project are taken for secrets, whose texts no prompt holds. */
  readonly secrets?: SecretRules | undefined;
  /** Of one agent. Default: `defaultAgentLimits`. */
  readonly timeoutMs?: number | undefined;
  readonly maxOutputBytes?: number | undefined;
  /** Go on where the run before stopped; else, and by default, all starts anew. */
  readonly resume?: boolean | undefined;
  /** Whether a phase whose gate asks for a person may start. Comes to an answer when `signal` aborts, too. Without it such phases wait. */
  approve?(phase: Phase): Promise<boolean>;
  /** Ends the agents and the run, with a whole record. */
  readonly signal?: AbortSignal | undefined;
  tell?(event: ApplyEvent): void;
}

type Defaulted = "env" | "maxWorkers" | "timeoutMs" | "maxOutputBytes" | "resume" | "approve" | "tell";

/** With defaults in their places; those of the context are found with its sources, as a plan finds them. */
export type SettledOptions = ApplyOptions & Required<Pick<ApplyOptions, Defaulted>>;

export function settleOptions({ execution }: Nebula, options: ApplyOptions): SettledOptions {
  return {
    ...options,
    env: options.env ?? process.env,
    maxWorkers: options.maxWorkers ?? execution.maxWorkers ?? 1,
    timeoutMs: options.timeoutMs ?? defaultAgentLimits.timeoutMs,
    maxOutputBytes: options.maxOutputBytes ?? defaultAgentLimits.maxOutputBytes,
    resume: options.resume ?? false,
    approve: options.approve ?? (async () => false),
    tell: options.tell ?? (() => {}),
  };
}
