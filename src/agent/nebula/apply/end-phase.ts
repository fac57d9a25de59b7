/** How a phase ends: what its agent answered and reported, or how it failed, in the record and told. */
import type { FabricReport } from "../../../compose/index.ts";
import { didYouMean, formatNumber } from "../../../text/index.ts";
import { saidOn } from "../../process/attempt-folder.ts";
import type { AgentEnd } from "../../process/watch-agent.ts";
import type { Phase } from "../files/nebula.ts";
import { type NebulaRecord, runOf } from "../record/nebula-record.ts";
import { type ChangedRecord, type End, endedRecord } from "../record/record-changes.ts";
import { type FabricBlocks, parseFabricBlock } from "../report/fabric-block.ts";
import type { Application } from "./application.ts";
import { keepAnswer } from "./state/answers.ts";
import { lastWords } from "./state/attempt-folders.ts";

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
  const others = more.length === 0 ? "" : `, and ${formatNumber(more.length)} more`;
  const text = `what phase ${id} reported ${how}: ${first}${others}`;
  return { ...report, notes: [...(report?.notes ?? []), { kind: "failure", text }] };
}

/** Nobody reads more. */
const mostProblems = 20;

function firstOf(problems: readonly string[]): string[] {
  const more = problems.length - mostProblems;
  return [...problems.slice(0, mostProblems), ...(more > 0 ? [`… and ${formatNumber(more)} more`] : [])];
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
  const failure = { state: "failed" as const, seconds, blocked, error: describeFailure(end) };
  await recordEnd(phase, failure, application);
  for (const each of blocked) tell({ event: "blocked", phase: each, by: phase.id });
}

const shownLines = 5;
const shownCharacters = 1_000;

/** With its last words. */
function describeFailure({ error = "The agent failed.", stderr, answer }: AgentEnd): string {
  const said = { stderr, stdout: answer };
  const stream = saidOn(said);
  if (stream === undefined) return error;
  const lines = said[stream].trimEnd().split("\n").slice(-shownLines).join("\n").slice(-shownCharacters);
  return `${error}\n${lines}`;
}

type Ended = Pick<End, "seconds" | "error" | "report" | "blocked"> & {
  readonly state: "completed" | "failed" | "waiting";
};

export async function recordEnd(phase: Phase, end: Ended, application: Application): Promise<void> {
  const date = new Date().toISOString().slice(0, 10);
  const after = await changeRecord(phase, application, (current) =>
    endedRecord(current, phase, { ...end, date }),
  );
  const { state, seconds, error } = end;
  const { promptTokens } = factsOf(after, phase.id);
  const { options, sources, tell } = application;
  const place = { ...options, directory: sources.nebula.directory };
  const words = state === "failed" ? lastWords(runOf(after, phase.id)?.attemptFolder, place) : {};
  tell({ event: "ended", phase: phase.id, state, seconds, promptTokens, error, ...words });
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
  const { attempts = 0, promptTokens = 0 } = runOf(record, id) ?? {};
  return { attempt: attempts, promptTokens };
}
