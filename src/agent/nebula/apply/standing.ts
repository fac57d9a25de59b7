import type { Nebula } from "../files/nebula.ts";
import { wavesOf } from "../files/waves.ts";
import { type NebulaRecord, runOf } from "../record/nebula-record.ts";
import type { ApplyReport } from "./apply-event.ts";

/** How every phase of a nebula stands, in the order in which they would start. Without a record nothing has run. */
export function standingOf({ phases }: Nebula, record: NebulaRecord | undefined): ApplyReport {
  return {
    phases: wavesOf(phases)
      .flat()
      .map(({ id }) => {
        const run = record && runOf(record, id);
        const { state = "waiting", attempts = 0, promptTokens = 0, seconds = 0, error } = run ?? {};
        return { id, state, attempts, promptTokens, seconds, ...(error !== undefined && { error }) };
      }),
  };
}
