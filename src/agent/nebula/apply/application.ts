import type { OpenNebulaRecord } from "../record/nebula-record.ts";
import type { ApplyEvent } from "./apply-event.ts";
import type { SettledOptions } from "./apply-options.ts";
import type { PromptSources } from "./phase-prompt.ts";
import type { Schedule } from "./pool/schedule.ts";

/** A nebula while it is applied: what its phases share. */
export interface Application {
  readonly options: SettledOptions;
  readonly sources: PromptSources;
  readonly record: OpenNebulaRecord;
  /** The folder of the agents' attempts. */
  readonly attemptsFolder: string;
  readonly schedule: Schedule;
  readonly stop: AbortController;
  readonly tell: (event: ApplyEvent) => void;
}
