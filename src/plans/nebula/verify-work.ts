/** Decides whether the work of an agent that has ended counts: its checks pass, it stays in its scope, and its reviewer
 *  has no findings. What is wrong becomes a text that the agent can work with. */
import { join } from "node:path";
import { createIntake } from "../../conversation/intake/index.ts";
import { countNoun, isPlainObject, oneLine, readJson, shorten } from "../../core/text/index.ts";
import { plainCounter } from "../../core/tokens/index.ts";
import { type Environment, readForeignText } from "../../host/index.ts";
import { agentPresets, createScopeTest, type JudgedEnd, judgeEnd, startAgent } from "../agent/index.ts";
import type { Application } from "./application.ts";
import type { Phase } from "./nebula.ts";
import { type AttemptRecord, type PhaseRun, readAnswer, writeAnswer } from "./nebula-record.ts";
import { changedFiles, diffWork } from "./open-git.ts";

/** How a check of a phase ended. */
export interface CheckResult {
  readonly command: string;
  /** `exit code 0`, or why it has none. */
  readonly end: string;
  /** Shortened as `run_command` does it. */
  readonly output: string;
}

/** Where the work of a phase is, and what is known of its attempt. */
export interface Work {
  readonly end: JudgedEnd;
  readonly run: PhaseRun | undefined;
  readonly folder: string;
  /** Whether no file in the scope has changed. */
  readonly isUnchanged: boolean;
  readonly signal: AbortSignal;
}

/** An end after everything was looked at. `feedback` is what the agent is told if its work does not count and another
 *  attempt may help. */
export interface VerifiedEnd extends JudgedEnd {
  readonly checks?: AttemptRecord["checks"];
  readonly feedback?: string | undefined;
  /** How the attempt ended, if `outcome` has no word for it. */
  readonly verdict?: string | undefined;
}

/** Returns the end of a phase with the verdict on its work. */
export async function verifyWork(phase: Phase, work: Work, application: Application): Promise<VerifiedEnd> {
  const { end } = work;
  const endedItself = end.outcome === "completed" || end.outcome === "denied" || end.outcome === "unchanged";
  if (!endedItself) return end;
  const notice = (message: string) => application.onEvent({ event: "notice", phase: phase.id, message });
  const results = await runChecks(phase, work, application);
  const verdict = results.some(isFailed) ? "failed" : "passed";
  const checks: AttemptRecord["checks"] = results.length === 0 ? undefined : verdict;
  if (work.signal.aborted) return { ...end, outcome: "interrupted", error: "The run was interrupted." };
  const marked = findConflictMarks(work);
  const reads = application.options.allow(phase) === "read";
  const isExcused = end.outcome === "denied" && (checks === "passed" || (reads && end.answer.trim() !== ""));
  if (isExcused) notice(`${end.error} That does not matter: ${reads ? "it has answered" : "its checks pass"}`);
  const { error: _, hint: __, ...rest } = end;
  const completed = { ...rest, outcome: "completed" as const, ...(checks !== undefined && { checks }) };
  const refuse = (verdict: string, [error, feedback]: readonly [string, string]): VerifiedEnd => {
    return { ...completed, outcome: "failed", verdict, error, feedback };
  };
  if (checks === "failed") return refuse("check_failed", describeChecks(results));
  if (marked.length > 0) {
    const text = `These files still have the marks of a conflict: ${marked.join(", ")}.`;
    return refuse("conflict", [text, `${text} Decide what each place should say, and remove the marks.`]);
  }
  if (end.outcome === "denied" && !isExcused) return end;
  const outside = await findOutside(phase, work, application);
  if (outside.length > 0) {
    const named = listPaths(outside);
    const text = `It changed ${named}, outside of its scope, ${phase.scope.join(", ")}.`;
    if (phase.scopePolicy === "fail")
      return refuse("outside_scope", [text, `${text} Undo these changes, and do the task within the scope.`]);
    notice(`${text[0]!.toLowerCase()}${text.slice(1)}`);
  }
  if (work.isUnchanged && !reads) {
    const text = `The agent changed no file in its scope, ${phase.scope.join(", ")}.`;
    const hint = "Its answer may say why. Agents that may only read need --allow edit.";
    if (checks === undefined && phase.reviewer === undefined)
      return { ...completed, outcome: "unchanged", error: text, hint };
    return { ...refuse("unchanged", [text, `${text} The task asks for a change.`]), outcome: "unchanged", hint };
  }
  if (phase.reviewer === undefined) return completed;
  const review = await reviewWork(phase, { ...work, results }, application);
  const cost = review.costUsd === undefined ? {} : { costUsd: (end.costUsd ?? 0) + review.costUsd };
  if (review.findings === undefined) return { ...completed, ...cost };
  return {
    ...refuse(review.verdict, review.findings),
    ...cost,
    ...(review.verdict === "review_failed" && { feedback: undefined }),
  };
}

function isFailed({ end }: CheckResult): boolean {
  return end !== "exit code 0";
}

/** A check may run this long unless the phase says otherwise, in milliseconds. */
const defaultCheckMs = 600_000;

/** Runs the checks one after the other until one fails, and stores how they ended. */
async function runChecks(
  phase: Phase,
  { folder, run, signal }: Work,
  { options, attempts, onEvent, sources }: Application,
): Promise<CheckResult[]> {
  const { check = [], id } = phase;
  if (check.length === 0) return [];
  // Loaded here, because most plans have no checks.
  const { runProgram } = await import("../../results/mcp/run-command.ts");
  const env: Environment = { ...options.env, ...(run?.attemptFolder && attempts.environment(run.attemptFolder)) };
  const maxResultTokens = 2_000;
  const intake = await createIntake({
    sessionId: `${sources.key}/${id}`,
    counter: plainCounter,
    store: options.store,
    deltas: false,
    maxResultTokens,
    pageTokens: maxResultTokens,
  });
  const timeoutMs = phase.checkTimeoutMs ?? defaultCheckMs;
  const results: CheckResult[] = [];
  for (const command of check) {
    onEvent({ event: "doing", phase: id, kind: "does", text: `check: ${command}` });
    const { output, end } = await runProgram(["/bin/sh", "-c", command], { root: folder, env, timeoutMs, signal });
    const text = `${output}${output === "" || output.endsWith("\n") ? "" : "\n"}[${end}]`;
    const admitted = await intake.admit({ tool: "run_command", input: { command }, text });
    results.push({ command, end, output: admitted.text });
    if (end !== "exit code 0") break;
  }
  await writeAnswer(options.store, checksPlace(sources.key, id), JSON.stringify(results));
  return results;
}

/** No id of a phase has this sign. */
function checksPlace(key: string, phase: string): { readonly key: string; readonly phase: string } {
  return { key, phase: `${phase}#checks` };
}

/** Returns how the checks of a phase ended last. */
export async function readChecks(
  store: Parameters<typeof readAnswer>[0],
  { key, phase }: { readonly key: string; readonly phase: string },
): Promise<readonly CheckResult[]> {
  const text = await readAnswer(store, checksPlace(key, phase));
  return text === undefined
    ? []
    : (readJson<CheckResult[]>(text, (value): value is CheckResult[] => {
        return Array.isArray(value) && value.every((each) => isPlainObject(each) && typeof each.output === "string");
      }) ?? []);
}

/** One sentence for people, and the text for the agent. */
function describeChecks(results: readonly CheckResult[]): readonly [string, string] {
  const failed = results.find(isFailed)!;
  const lines = failed.output.trimEnd().split("\n");
  const error = `The check \`${failed.command}\` failed: ${failed.end}.\n${lines.slice(0, -1).slice(-5).join("\n").slice(-1_000)}`;
  const text = `After your work the check \`${failed.command}\` failed (${failed.end}). Its output:\n\n${fenced(failed.output)}\n\nFind the cause and fix it, within the scope of the task.`;
  return [error.trimEnd(), text];
}

function fenced(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${text.trimEnd()}\n${fence}`;
}

/** Returns the files of the scope's other side. In one folder, what other phases may change is not counted. */
async function findOutside(phase: Phase, { folder, run }: Work, application: Application): Promise<string[]> {
  const { options, worktrees, sources } = application;
  if (phase.scope.length === 0) return [];
  const changed = await changedFiles({ folder, base: run?.base }, options.env);
  const isOwn = createScopeTest(phase.scope);
  const others = worktrees === undefined && options.maxWorkers > 1 ? sources.nebula.phases : [];
  const isTheirs = createScopeTest(others.flatMap(({ id, scope }) => (id === phase.id ? [] : scope)));
  return (changed ?? []).filter((path) => !isOwn(path) && !isTheirs(path));
}

function listPaths(paths: readonly string[]): string {
  const most = 5;
  return [...paths.slice(0, most), ...(paths.length > most ? [countNoun(paths.length - most, "more file")] : [])].join(
    ", ",
  );
}

/** Returns the files that an agent had to free from the marks of a conflict and that still have them. */
function findConflictMarks({ folder, run }: Work): string[] {
  const named = /^Conflict in: (.*)$/m.exec(run?.feedback ?? "")?.[1]?.split(", ") ?? [];
  const marked: string[] = [];
  for (const path of named) {
    const read = readForeignText(join(folder, path), { within: folder });
    if ("text" in read && /^<<<<<<< /m.test(read.text)) marked.push(path);
  }
  return marked;
}

interface Review {
  /** Absent if the work is accepted. */
  readonly findings?: readonly [string, string] | undefined;
  readonly verdict: "findings" | "review_failed";
  readonly costUsd?: number | undefined;
}

/** Asks the reviewer, who sees the task, the diff and the checks, and may only read. */
async function reviewWork(
  phase: Phase,
  { folder, run, end, results, signal }: Work & { readonly results: readonly CheckResult[] },
  { options, attempts, onEvent, watched }: Application,
): Promise<Review> {
  const failed = (why: string, costUsd?: number): Review => {
    return { findings: [`The reviewer gave no verdict: ${why}`, ""], verdict: "review_failed", costUsd };
  };
  const left = run?.budgetUsd === undefined ? undefined : run.budgetUsd - (end.costUsd ?? 0);
  if (left !== undefined && left <= 0) return failed("the limit on the cost of the phase is used up.");
  const chosen = options.review?.(phase, { folder, budgetUsd: left });
  if (chosen === undefined) return failed("no agent is chosen for it.");
  onEvent({ event: "doing", phase: phase.id, kind: "does", text: "review" });
  const diff = await diffWork({ folder, base: run?.base }, { env: options.env, maxLines: 2_000 });
  const attemptFolder = attempts.newFolder(`${phase.id}-review`, run?.attempts ?? 1);
  const agent = startAgent({
    command: chosen.command,
    prompt: reviewPrompt(phase, { diff, results, answer: end.answer }),
    folder: attemptFolder,
    cwd: folder,
    env: { ...options.env, ...(run?.attemptFolder && attempts.environment(run.attemptFolder)) },
    repeats: agentPresets[chosen.agent ?? ""]?.repeats,
    timeoutMs: options.timeoutMs,
    maxOutputBytes: options.maxOutputBytes,
    signal: AbortSignal.any([signal, watched.signalOf(phase.id)]),
  });
  const judged = judgeEnd(await agent.end, { agent: chosen.agent, model: chosen.model, prices: options.prices });
  await attempts.remove(attemptFolder);
  const { answer, costUsd, outcome } = judged;
  const verdict = /^[\s*#`]*(ACCEPT|FINDINGS)\b/m.exec(answer)?.[1];
  if (verdict === "ACCEPT") return { verdict: "findings", costUsd };
  if (verdict === undefined) return failed(judged.error ?? `${outcome}, ${shorten(oneLine(answer), 200)}`, costUsd);
  const text = answer
    .slice(answer.indexOf("FINDINGS") + "FINDINGS".length)
    .replace(/^[\s:*#`]+/, "")
    .trim();
  const findings = [
    `The reviewer has findings: ${text}`,
    `A reviewer has read your work and found:\n\n${text}\n\nChange your work accordingly.`,
  ] as const;
  return { findings, verdict: "findings", costUsd };
}

function reviewPrompt(
  { title, body, scope }: Phase,
  {
    diff,
    results,
    answer,
  }: { readonly diff: string; readonly results: readonly CheckResult[]; readonly answer: string },
): string {
  const checks = results.map(({ command, end }) => `- \`${command}\`: ${end}`).join("\n");
  return [
    `# Review: ${oneLine(title)}`,
    "Another agent has done the task below. Decide whether its work counts. You may read files, and change nothing.",
    `## The task\n\n${body}`,
    ...(scope.length === 0 ? [] : [`## Its scope\n\n${scope.join(", ")}`]),
    `## Its answer\n\n${fenced(answer)}`,
    `## What it changed\n\n${diff === "" ? "Git shows no change." : fenced(diff)}`,
    `## Checks\n\n${checks === "" ? "None were run." : checks}`,
    "## Your answer\n\nIf the work does what the task asks, answer with one line: ACCEPT. Otherwise answer with the line FINDINGS, and below it a list of what must change, with files and lines. Name only what is wrong, not what could be nicer.",
  ].join("\n\n");
}
