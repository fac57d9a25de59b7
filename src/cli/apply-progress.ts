/** What `nebula apply` tells and asks a person: a line for each start and end, a summary on a terminal, and questions
 *  before work is lost or accepted. With --json, it tells events. */

import { countNoun, formatNumber, oneLine, printable, printableLines } from "../core/text/index.ts";
import { type Output, renderTable } from "../host/index.ts";
import {
  type ApplyEvent,
  type ApplyOptions,
  type ApplyReport,
  diffWork,
  dollars,
  type GateAnswer,
  type NebulaProblem,
  type PhaseReport,
} from "../plans/nebula/index.ts";
import type { Call } from "./command.ts";
import { layerName, missing } from "./context-notes.ts";
import { describeFailure, duration } from "./nebula-report.ts";
import { type Ask, createQuestions, type QuestionOptions, type Questions } from "./questions.ts";

export interface ApplyTelling {
  readonly output: Output;
  /** Reports a warning of the nebula's files. Absent if warnings are notes. */
  readonly warn?: (problem: NebulaProblem) => void;
  startProgress(options: ProgressOptions): {
    onEvent(event: ApplyEvent): void;
    /** Removes the view of what runs. */
    end(): void;
    /** Returns what to ask a person. The progress line is hidden while the person types an answer. */
    questions(call: QuestionsCall, signal: AbortSignal): ApplyQuestions;
    /** Reports that a person interrupted the run. */
    interrupt(): void;
  };
}

interface ProgressOptions {
  /** How many phases there are. */
  readonly phases: number;
  /** How many of them completed in the last run and are kept. */
  readonly completed: number;
  /** Returns the path to show. */
  shown(path: string): string;
}

/** With --json, turns notes and warnings into events. */
export function tellApply(output: Output, now: () => Date): ApplyTelling {
  // With --json, every message of `nebula apply` is an event: a line of JSON with its time.
  const tellPrograms = (event: object): void => output.event({ time: now().toISOString(), ...event });
  const own: Output = { ...output, note: (message) => tellPrograms({ event: "notice", message }) };
  const told = output.json ? own : output;
  return {
    output: told,
    ...(output.json && { warn: ({ severity: _, ...problem }) => tellPrograms({ event: "warning", ...problem }) }),
    startProgress(options) {
      const standing = createStanding(options, now);
      const isRare = createRareness(now);
      let isPaused = false;
      const show = () => (isPaused ? undefined : told.progress(standing.describe()));
      const onAsking = (isAsking: boolean) => {
        isPaused = isAsking;
        if (isPaused) told.settle();
        else show();
      };
      // The view has a clock for each phase.
      const clock = setInterval(show, 1_000).unref();
      return {
        end() {
          clearInterval(clock);
          told.settle();
        },
        onEvent(event) {
          standing.note(event);
          if (told.json) return tellPrograms(event);
          const isPrinted = event.event !== "doing" || isRare(event, told.watched);
          const [line, isProblem] = describeEvent(event, options.shown);
          if (isPrinted) (isProblem ? told.problem : told.note)(line);
          show();
        },
        questions: (call, signal) => createApplyQuestions(call, { signal, onAsking }),
        interrupt() {
          const message = "the agents were stopped. Use --resume to continue";
          if (told.json) return tellPrograms({ event: "interrupted", message });
          told.settle();
          told.problem(`interrupted: ${message}`);
        },
      };
    },
  };
}

/** Returns a function that says whether an action of an agent is printed. A person who watches a terminal sees actions in
 *  the view, and others get one line for each phase in half a minute. Trouble is printed when it is new. */
function createRareness(now: () => Date): (event: EventOf<"doing">, isWatched: boolean) => boolean {
  const printed = new Map<string, number>();
  return ({ phase, kind, text }, isWatched) => {
    if (isWatched && kind !== "trouble") return false;
    // Tries of one request differ only in their number.
    const key =
      kind === "trouble" ? `${phase} ${text.replace(/,? ?try \d+ of \d+|\d+\/\d+|request id: .*/g, "")}` : phase;
    const ms = now().getTime();
    if (kind === "says" || ms - (printed.get(key) ?? 0) < 30_000) return false;
    printed.set(key, ms);
    return true;
  };
}

/** Returns the line for people, and whether --quiet must not hide it. */
function describeEvent(event: ApplyEvent, shown: (path: string) => string): [line: string, isProblem: boolean] {
  const of = event.phase === undefined ? "" : `${printable(event.phase)}: `;
  const howToGoOn = "Run again with --resume on a terminal and answer yes, or with --resume --yes.";
  switch (event.event) {
    case "started":
      return [`${of}waiting → running${startFacts(event)}`, false];
    case "ended":
      if (event.isContinued)
        return [
          `${of}${event.outcome ?? "failed"} after ${endFacts(event)}, another attempt follows. ${printableLines(event.error ?? "")}`,
          false,
        ];
      return event.state === "failed"
        ? [
            `${of}running → ${event.outcome ?? "failed"} after ${endFacts(event)}. ${describeFailure(event, shown)}`,
            true,
          ]
        : [`${of}running → ${event.state}, ${endFacts(event)}, ${prompt(event)}${describeChecks(event)}`, false];
    case "blocked":
      return [`${of}blocked: ${printable(event.by)} did not complete`, false];
    case "held":
      return [`${of}waits for your approval (gate "${event.gate}"). ${howToGoOn}`, true];
    case "shown":
      return [`${of}done, and the run continues (gate "watch")`, false];
    case "elsewhere":
      return [`${of}${event.state} on ${printable(event.machine)}`, false];
    case "doing":
      return [`${of}${printable(oneLine(event.text))}`, event.kind === "trouble"];
    case "notice":
      return [`${of}${printable(event.message)}`, false];
  }
}

type EventOf<Kind extends ApplyEvent["event"]> = Extract<ApplyEvent, { event: Kind }>;

function startFacts({ attempt, adopted, promptTokens, truncated = [], overflow = 0 }: EventOf<"started">): string {
  const facts = [prompt({ promptTokens })];
  if (truncated.length > 0) facts.push(`${truncated.map(layerName).join(" and ")} truncated`);
  if (overflow > 0) facts.push(missing(overflow));
  if (adopted) facts.push("started by the last run");
  else if (attempt > 1) facts.push(`attempt ${attempt}`);
  return `, ${facts.join(", ")}`;
}

function endFacts({ seconds, costUsd }: EventOf<"ended">): string {
  return costUsd === undefined ? duration(seconds) : `${duration(seconds)}, ${dollars(costUsd)}`;
}

function describeChecks({ state, checks }: EventOf<"ended">): string {
  if (state !== "completed") return "";
  return checks === undefined ? ", not checked" : `, checks ${checks}`;
}

function prompt({ promptTokens }: { readonly promptTokens: number }): string {
  return `prompt ${formatNumber(promptTokens)} tokens`;
}

/** What is known of a phase that runs. */
interface RunningPhase {
  readonly started: number;
  attempt: number;
  text: string;
  since: number;
  tokens: number;
  costUsd: number;
}

/** Summarises all phases in one line, and each running phase in a line of its own. */
function createStanding({ phases, completed }: ProgressOptions, now: () => Date) {
  const running = new Map<string, RunningPhase>();
  const ended = { completed, failed: 0, blocked: 0 };
  let tokens = 0;
  const noteDoing = ({ phase, text, usage, costUsd }: EventOf<"doing">) => {
    const known = running.get(phase);
    if (known === undefined) return;
    if (known.text !== text) known.since = now().getTime();
    known.text = text;
    known.tokens = usage === undefined ? known.tokens : usage.inputTokens + usage.outputTokens;
    known.costUsd = costUsd ?? known.costUsd;
  };
  const noteEnd = ({ phase, state, isContinued }: EventOf<"ended">) => {
    if (!isContinued) running.delete(phase);
    if (state !== "waiting") ended[state]++;
  };
  const describePhase = ([id, phase]: readonly [string, RunningPhase]): string[] => {
    const seconds = (from: number) =>
      duration(Math.max(0, Math.round((now().getTime() - from) / 1000))).replace(".0 ", " ");
    return [
      `  ${printable(id)}`,
      seconds(phase.started),
      phase.attempt > 1 ? `attempt ${phase.attempt}` : "",
      phase.tokens > 0 ? `${formatNumber(phase.tokens)} tokens` : "",
      phase.costUsd > 0 ? dollars(phase.costUsd) : "",
      `${printable(oneLine(phase.text))} (${seconds(phase.since)})`,
    ];
  };
  return {
    note(event: ApplyEvent) {
      if (event.event === "doing") noteDoing(event);
      if (event.event === "started") {
        const ms = now().getTime();
        const started = running.get(event.phase)?.started ?? ms;
        running.set(event.phase, { started, attempt: event.attempt, text: "starts", since: ms, tokens: 0, costUsd: 0 });
        tokens += event.promptTokens;
      }
      if (event.event === "ended") noteEnd(event);
      if (event.event === "blocked") ended.blocked++;
      if (event.event === "elsewhere" && event.state !== "running") ended[event.state]++;
    },
    describe() {
      const waiting = phases - ended.completed - ended.failed - ended.blocked - running.size;
      const parts = [
        `${ended.completed} of ${phases} completed`,
        ...(running.size > 0 ? [`running ${[...running.keys()].map(printable).join(", ")}`] : []),
        ...(waiting > 0 ? [`${waiting} waiting`] : []),
        ...(ended.failed > 0 ? [`${ended.failed} failed`] : []),
        ...(ended.blocked > 0 ? [`${ended.blocked} blocked`] : []),
        `${formatNumber(tokens)} prompt tokens`,
      ];
      const [left, right] = ["left" as const, "right" as const];
      const rows = renderTable([...running].map(describePhase), [left, right, left, right, right, left]);
      return [parts.join(" · "), ...rows].join("\n");
    },
  };
}

type QuestionsCall = Pick<Call<{ readonly yes?: boolean | undefined }>, "options" | "stdin" | "output" | "env">;

interface ApplyQuestions {
  mayRunAgain(before: ApplyReport): Promise<boolean>;
  mayRerun(again: readonly string[], named: readonly string[], before: ApplyReport): Promise<boolean>;
  readonly approve: NonNullable<ApplyOptions["approve"]>;
  showDiff(event: EventOf<"shown">): Promise<void>;
}

function createApplyQuestions(
  call: QuestionsCall,
  asking: Pick<QuestionOptions, "signal" | "onAsking">,
): ApplyQuestions {
  const { options, stdin, output } = call;
  const terminal = stdin as NodeJS.ReadStream;
  const isAsked = options.yes !== true && terminal.isTTY === true;
  const ask = isAsked ? createQuestions({ stdin: terminal, output, ...asking }) : undefined;
  return {
    mayRunAgain: (before) => mayRunAgain(before, ask),
    mayRerun: (again, named, before) => mayRerun(again, named, { before, ask, output }),
    async approve({ id, title, gate }, work) {
      if (ask === undefined) return options.yes === true;
      const named = `phase ${printable(id)}, "${printable(title)}",`;
      if (work === undefined) return ask(`${named} needs your approval (gate "${gate}"). Start it?`);
      const diff = await diffWork(work, call);
      output.problem(
        diff === "" ? `${named} is done. Git shows no change.` : `${named} is done. What changed:\n${diff}`,
      );
      return askAboutWork(`${named} is done and needs your review.`, ask);
    },
    async showDiff({ phase, ...work }) {
      const diff = await diffWork(work, call);
      output.note(`${printable(phase)}: ${diff === "" ? "git shows no change" : `what changed:\n${diff}`}`);
    },
  };
}

/** Asks until the answer is clear. Words that are no command say what is wrong. An empty answer decides nothing. */
async function askAboutWork(about: string, ask: Questions): Promise<boolean | GateAnswer> {
  const answer = await ask.words(
    `${about} Accept it? y accepts, retry starts again, skip gives it up; anything else is what the agent should change. [y/N]`,
  );
  if (answer === "" || /^no?$/i.test(answer)) return false;
  if (/^y(es)?$/i.test(answer)) return true;
  if (answer === "retry" || answer === "skip") return { action: answer };
  return { action: "reject", words: answer };
}

/** Asks before a run without --resume discards completed phases. If the last run finished, running it again is
 *  intended. */
export async function mayRunAgain(before: ApplyReport, ask: Ask | undefined): Promise<boolean> {
  const completed = before.phases.filter(({ state }) => state === "completed").length;
  const all = before.phases.length;
  if (ask === undefined || completed === 0 || completed === all) return true;
  const stand = `${completed} of ${countNoun(all, "phase")} completed in the last run`;
  return ask(`${stand}, and --resume would keep them. Run all phases again?`);
}

/** Asks before completed phases that depend on a named one run again. Says so if nobody can be asked. */
async function mayRerun(
  again: readonly string[],
  named: readonly string[],
  { before, ask, output }: { before: ApplyReport; ask: Ask | undefined; output: Pick<Output, "note"> },
): Promise<boolean> {
  const isLost = ({ id, state }: PhaseReport) => state === "completed" && again.includes(id) && !named.includes(id);
  const lost = before.phases.filter(isLost).map(({ id }) => printable(id));
  if (lost.length === 0) return true;
  const sentence = `${lost.join(", ")} completed in the last run and ${lost.length === 1 ? "depends" : "depend"} on ${named.join(", ")}`;
  if (ask !== undefined) return ask(`${sentence}. Run ${lost.length === 1 ? "it" : "them"} again too?`);
  output.note(`${sentence}, so ${lost.length === 1 ? "it runs" : "they run"} again too`);
  return true;
}
