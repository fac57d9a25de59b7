/** Shows what `nebula apply` does: a line for each start and end, and on a terminal a summary. With --json, events. */

import { type ApplyEvent, dollars, type NebulaProblem } from "../nebula/index.ts";
import { formatNumber, printable } from "../text/index.ts";
import { layerName, missing } from "./compose-context.ts";
import { describeFailure, duration } from "./nebula-report.ts";
import type { Output } from "./output.ts";

export interface ApplyProgress {
  onEvent(event: ApplyEvent): void;
  /** Hides the progress line while a person types an answer. */
  pause(isPaused: boolean): void;
  /** Reports that a person interrupted the run. */
  interrupt(): void;
}

export interface ProgressOptions {
  readonly output: Pick<Output, "json" | "note" | "problem" | "event" | "progress" | "settle">;
  /** How many phases there are. */
  readonly phases: number;
  /** How many of them completed in the last run and are kept. */
  readonly completed: number;
  /** Returns the path to show. */
  shown(path: string): string;
  now(): Date;
}

export function createApplyProgress(options: ProgressOptions): ApplyProgress {
  const { output } = options;
  const standing = createStanding(options);
  const tellPrograms = createEvents(output, options.now);
  let isPaused = false;
  return {
    onEvent(event) {
      standing.note(event);
      if (output.json) return tellPrograms(event);
      const [line, isProblem] = describeEvent(event, options.shown);
      (isProblem ? output.problem : output.note)(line);
      if (!isPaused) output.progress(standing.describe());
    },
    pause(pausing) {
      isPaused = pausing;
      if (isPaused) output.settle();
      else output.progress(standing.describe());
    },
    interrupt() {
      const message = "the agents were stopped. Use --resume to continue";
      if (output.json) return tellPrograms({ event: "interrupted", message });
      output.settle();
      output.problem(`interrupted: ${message}`);
    },
  };
}

/** Returns the line for people, and whether --quiet must not hide it. */
function describeEvent(event: ApplyEvent, shown: (path: string) => string): [line: string, isProblem: boolean] {
  const of = event.phase === undefined ? "" : `${printable(event.phase)}: `;
  switch (event.event) {
    case "started":
      return [`${of}waiting → running${startFacts(event)}`, false];
    case "ended":
      return event.state === "failed"
        ? [
            `${of}running → ${event.outcome ?? "failed"} after ${endFacts(event)}. ${describeFailure(event, shown)}`,
            true,
          ]
        : [`${of}running → ${event.state}, ${endFacts(event)}, ${prompt(event)}`, false];
    case "blocked":
      return [`${of}blocked: ${printable(event.by)} did not complete`, false];
    case "held":
      return [`${of}waits for your approval (gate "${event.gate}"). ${howToGoOn}`, true];
    case "shown":
      return [`${of}done, and the run continues (gate "watch")`, false];
    case "elsewhere":
      return [`${of}${event.state} on ${printable(event.machine)}`, false];
    case "notice":
      return [`${of}${printable(event.message)}`, false];
  }
}

const howToGoOn = "Run again with --resume on a terminal and answer yes, or with --resume --yes.";

type Started = Extract<ApplyEvent, { event: "started" }>;

function startFacts({ attempt, adopted, promptTokens, truncated = [], overflow = 0 }: Started): string {
  const facts = [prompt({ promptTokens })];
  if (truncated.length > 0) facts.push(`${truncated.map(layerName).join(" and ")} truncated`);
  if (overflow > 0) facts.push(missing(overflow));
  if (adopted) facts.push("started by the last run");
  else if (attempt > 1) facts.push(`attempt ${attempt}`);
  return `, ${facts.join(", ")}`;
}

function endFacts({ seconds, costUsd }: Extract<ApplyEvent, { event: "ended" }>): string {
  return costUsd === undefined ? duration(seconds) : `${duration(seconds)}, ${dollars(costUsd)}`;
}

function prompt({ promptTokens }: { readonly promptTokens: number }): string {
  return `prompt ${formatNumber(promptTokens)} tokens`;
}

interface Standing {
  note(event: ApplyEvent): void;
  describe(): string;
}

/** Summarises all phases in one line. */
function createStanding({ phases, completed }: Pick<ProgressOptions, "phases" | "completed">): Standing {
  const running = new Set<string>();
  const ended = { completed, failed: 0, blocked: 0 };
  let tokens = 0;
  return {
    note(event) {
      if (event.event === "started") {
        running.add(event.phase);
        tokens += event.promptTokens;
      }
      if (event.event === "ended") running.delete(event.phase);
      if (event.event === "ended" && event.state !== "waiting") ended[event.state]++;
      if (event.event === "blocked") ended.blocked++;
      if (event.event === "elsewhere" && event.state !== "running") ended[event.state]++;
    },
    describe() {
      const waiting = phases - ended.completed - ended.failed - ended.blocked - running.size;
      const parts = [
        `${ended.completed} of ${phases} completed`,
        ...(running.size > 0 ? [`running ${[...running].map(printable).join(", ")}`] : []),
        ...(waiting > 0 ? [`${waiting} waiting`] : []),
        ...(ended.failed > 0 ? [`${ended.failed} failed`] : []),
        ...(ended.blocked > 0 ? [`${ended.blocked} blocked`] : []),
        `${formatNumber(tokens)} prompt tokens`,
      ];
      return parts.join(" · ");
    },
  };
}

/** With --json, every message of `nebula apply` is an event: a line of JSON with its time. */
function createEvents(output: Pick<Output, "event">, now: () => Date): (event: object) => void {
  return (event) => output.event({ time: now().toISOString(), ...event });
}

interface Telling {
  readonly output: Output;
  /** Reports a warning of the nebula's files. Absent if warnings are notes. */
  readonly warn?: (problem: NebulaProblem) => void;
}

/** With --json, turns notes and warnings into events. */
export function tellAsEvents(output: Output, now: () => Date): Telling {
  if (!output.json) return { output };
  const tell = createEvents(output, now);
  return {
    output: { ...output, note: (message) => tell({ event: "notice", message }) },
    warn: ({ severity: _, ...problem }) => tell({ event: "warning", ...problem }),
  };
}
