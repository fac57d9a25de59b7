/** What `nebula apply` tells while it is at work: a line for each start and end, and on a terminal how all stands. With --json, events. */
import type { ApplyEvent } from "../../agent/index.ts";
import { formatNumber, printable, printableLines } from "../../text/index.ts";
import { layerName, missing } from "../compose/describe-context.ts";
import type { Output } from "../output.ts";
import { createEvents } from "./apply-events.ts";

export interface ApplyProgress {
  tell(event: ApplyEvent): void;
  /** No line that changes while a person types an answer. */
  pause(isPaused: boolean): void;
  /** A person has ended the run before it was done. */
  interrupt(): void;
}

export interface ProgressOptions {
  readonly output: Pick<Output, "json" | "note" | "problem" | "event" | "progress" | "settle">;
  /** How many phases there are. */
  readonly phases: number;
  /** How many of them a run before has completed, and this one keeps. */
  readonly completed: number;
  /** A path as it is shown. */
  shown(path: string): string;
  now(): Date;
}

export function createApplyProgress(options: ProgressOptions): ApplyProgress {
  const { output } = options;
  const standing = createStanding(options);
  const tellPrograms = createEvents(output, options.now);
  let isPaused = false;
  return {
    tell(event) {
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
      const message = "the agents were ended, --resume goes on";
      if (output.json) return tellPrograms({ event: "interrupted", message });
      output.settle();
      output.problem(`interrupted: ${message}`);
    },
  };
}

/** The line for people, and whether it is one that nothing hides. */
function describeEvent(
  event: ApplyEvent,
  shown: (path: string) => string,
): [line: string, isProblem: boolean] {
  const of = event.phase === undefined ? "" : `${printable(event.phase)}: `;
  switch (event.event) {
    case "started":
      return [`${of}waiting → running${startFacts(event)}`, false];
    case "ended":
      return event.state === "failed"
        ? [`${of}running → failed after ${duration(event.seconds)}. ${describeFailure(event, shown)}`, true]
        : [`${of}running → ${event.state}, ${duration(event.seconds)}, ${prompt(event)}`, false];
    case "blocked":
      return [`${of}blocked: ${printable(event.by)} did not complete`, false];
    case "held":
      return [`${of}waits for a person (gate ${event.gate}). ${howToGoOn}`, true];
    case "notice":
      return [`${of}${printable(event.message)}`, false];
  }
}

const howToGoOn = "Run it with --resume on a terminal and say yes, or with --resume --yes.";

type Started = Extract<ApplyEvent, { event: "started" }>;
type Ended = Extract<ApplyEvent, { event: "ended" }>;

function startFacts({ attempt, adopted, promptTokens, truncated = [], overflow = 0 }: Started): string {
  const facts = [prompt({ promptTokens })];
  if (truncated.length > 0) facts.push(`${truncated.map(layerName).join(" and ")} truncated`);
  if (overflow > 0) facts.push(missing(overflow));
  if (adopted) facts.push("started by the run before");
  else if (attempt > 1) facts.push(`attempt ${attempt}`);
  return `, ${facts.join(", ")}`;
}

function prompt({ promptTokens }: { readonly promptTokens: number }): string {
  return `prompt ${formatNumber(promptTokens)} tokens`;
}

/** How an agent failed, and where all that it said is. */
export function describeFailure(
  { error = "", stderr, stdout }: Pick<Ended, "error" | "stderr" | "stdout">,
  shown: (path: string) => string,
): string {
  const [stream, file] = stderr === undefined ? ["stdout", stdout] : ["stderr", stderr];
  const place = file === undefined ? "" : `\nAll that it said on ${stream}: ${printable(shown(file))}`;
  return `${printableLines(error)}${place}`;
}

/** `0.4 s`, `12.3 s`, `4 min 10 s`. */
export function duration(seconds: number): string {
  if (seconds < 100) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  return `${formatNumber(Math.floor(whole / 60))} min ${whole % 60} s`;
}

interface Standing {
  note(event: ApplyEvent): void;
  describe(): string;
}

/** How all phases stand, in a line. */
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
