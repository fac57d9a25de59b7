/** With --json all that `nebula apply` tells beside its result is an event: a line of JSON with its time. */
import type { NebulaProblem } from "../../agent/index.ts";
import type { Output } from "../output.ts";

export function createEvents(output: Pick<Output, "event">, now: () => Date): (event: object) => void {
  return (event) => output.event({ time: now().toISOString(), ...event });
}

export interface Telling {
  readonly output: Output;
  /** Of the nebula's files. Absent where a warning is a note. */
  readonly warn?: (problem: NebulaProblem) => void;
}

/** Where programs listen, notes and warnings are events too. */
export function tellAsEvents(output: Output, now: () => Date): Telling {
  if (!output.json) return { output };
  const tell = createEvents(output, now);
  return {
    output: { ...output, note: (message) => tell({ event: "notice", message }) },
    warn: ({ severity: _, ...problem }) => tell({ event: "warning", ...problem }),
  };
}
