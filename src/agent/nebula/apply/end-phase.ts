/** How a phase ends: what its agent answered and reported, or how it failed, in the record and told. */
import { join } from "node:path";
import type { FabricReport } from "../../../compose/index.ts";
import { didYouMean } from "../../../text/index.ts";
import { attemptFiles, type OutputName } from "../../process/attempt-folder.ts";
import type { AgentEnd } from "../../process/watch-agent.ts";
import type { Phase } from "../files/nebula.ts";
import { type FabricBlocks, parseFabricBlock } from "../record/fabric-block.ts";
import type { NebulaRecord } from "../record/nebula-record.ts";
import type { Application } from "./application.ts";
import { keepAnswer } from "./state/answers.ts";
import { type ChangedRecord, type End, endedRecord } from "./state/record-changes.ts";

export async function completePhase(phase: Phase, end: AgentEnd, application: Application): Promise<void> {
  const { schedule, sources, options, tell } = application;
  await keepAnswer(options.store, { key: sources.key, phase: phase.id }, end.answer);
  const blocks = await parseFabricBlock(end.answer);
  const report = withProblems(blocks, phase.id);
  await recordEnd(phase, { state: "completed", seconds: end.seconds, report }, application);
  schedule.end(phase.id, "completed");
  const notices = [
    ...(end.answer.trim() === "" ? ["its answer is empty: phases that depend on it are told nothing"] : []),
    ...firstOf(blocks.problems),
    ...unknownAffected(blocks.report, sources.nebula.phases),
  ];
  for (const message of notices) tell({ event: "notice", phase: phase.id, message });
}

/** A block that cannot be read is a failure to report, not of the phase: it stands in the fabric, so that nobody waits for it. */
function withProblems({ report, problems: [first, ...more] }: FabricBlocks, id: string): FabricReport {
  if (first === undefined) return report ?? {};
  const how = report === undefined ? "could not be read" : "could be read only in part";
  const others = more.length === 0 ? "" : `, and ${more.length.toLocaleString("en")} more`;
  const text = `what phase ${id} reported ${how}: ${first}${others}`;
  return { ...report, notes: [...(report?.notes ?? []), { kind: "failure", text }] };
}

/** Nobody reads more. */
const mostProblems = 20;

function firstOf(problems: readonly string[]): string[] {
  const more = problems.length - mostProblems;
  return [
    ...problems.slice(0, mostProblems),
    ...(more > 0 ? [`… and ${more.toLocaleString("en")} more`] : []),
  ];
}

function unknownAffected({ discoveries = [] }: FabricReport = {}, phases: readonly Phase[]): string[] {
  const ids = phases.map(({ id }) => id);
  const named = new Set(discoveries.flatMap(({ affects }) => affects ?? []));
  return [...named]
    .filter((id) => !ids.includes(id))
    .slice(0, mostProblems)
    .map((id) => {
      const meant = didYouMean(id, ids);
      return `it reports a discovery that affects "${id}", which is no phase here${meant === undefined ? "" : `. ${meant}`}`;
    });
}

/** Interrupted by us it waits for the next run; anything else is its failure. */
export async function failPhase(phase: Phase, end: AgentEnd, application: Application): Promise<void> {
  const { schedule, tell } = application;
  const { seconds, outcome } = end;
  if (outcome === "interrupted") {
    await recordEnd(phase, { state: "waiting", seconds, error: end.error }, application);
    return schedule.hold(phase.id);
  }
  const blocked = schedule.end(phase.id, "failed");
  const failure = { state: "failed" as const, seconds, blocked, ...describeFailure(end) };
  await recordEnd(phase, failure, application);
  for (const each of blocked) tell({ event: "blocked", phase: each, by: phase.id });
}

const shownLines = 5;
const shownCharacters = 1_000;

/** With its last words: on stderr, else on stdout, where some programs tell of their errors too. */
function describeFailure(end: AgentEnd): { error: string; said?: OutputName } {
  const { error = "The agent failed.", stderr, answer } = end;
  const said = stderr.trim() !== "" ? "stderr" : answer.trim() !== "" ? "stdout" : undefined;
  if (said === undefined) return { error };
  const words = said === "stderr" ? stderr : answer;
  const lines = words.trimEnd().split("\n").slice(-shownLines).join("\n").slice(-shownCharacters);
  return { error: `${error}\n${lines}`, said };
}

type Ended = Pick<End, "seconds" | "error" | "report" | "blocked"> & {
  readonly state: "completed" | "failed" | "waiting";
  /** Where the last words of a failure are from. */
  readonly said?: OutputName | undefined;
};

export async function recordEnd(phase: Phase, end: Ended, application: Application): Promise<void> {
  const date = new Date().toISOString().slice(0, 10);
  const { said, ...ended } = end;
  const after = await changeRecord(phase, application, (current) =>
    endedRecord(current, phase, { ...ended, date }),
  );
  const { state, seconds, error } = end;
  const { promptTokens } = factsOf(after, phase.id);
  const attempt = after.phases[phase.id]?.attempt;
  const file =
    said !== undefined && attempt !== undefined ? { [said]: join(attempt, attemptFiles[said]) } : {};
  application.tell({ event: "ended", phase: phase.id, state, seconds, promptTokens, error, ...file });
}

/** Changes the record in one step, and tells of what the fabric had no room for. */
export async function changeRecord(
  phase: Phase,
  { record, tell }: Application,
  change: (current: NebulaRecord) => ChangedRecord,
): Promise<NebulaRecord> {
  let omitted: string | undefined;
  const after = await record.change((current) => {
    const changed = change(current);
    omitted = changed.omitted;
    return changed.record;
  });
  if (omitted !== undefined) tell({ event: "notice", phase: phase.id, message: omitted });
  return after;
}

export function factsOf(record: NebulaRecord, id: string): { attempt: number; promptTokens: number } {
  const { attempts = 0, promptTokens = 0 } = record.phases[id] ?? {};
  return { attempt: attempts, promptTokens };
}
