/** Decides whether the work of an agent that has ended counts: its checks pass, it stays in its scope, and its reviewer
 *  has no findings. What is wrong becomes a text that the agent can work with. */
import { join, relative } from "node:path";
import { createIntake } from "../../conversation/intake/index.ts";
import { countNoun, cutText, isPlainObject, oneLine, readJson, shorten } from "../../core/text/index.ts";
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

/** The end of an attempt, after checks, scope and review. `feedback` is what the agent is told if its work does not
 *  count and another attempt may help. */
export interface VerifiedEnd extends JudgedEnd {
  readonly checks?: AttemptRecord["checks"];
  readonly feedback?: string | undefined;
  /** How the attempt ended, if `outcome` has no word for it. */
  readonly verdict?: string | undefined;
}

/** Returns the end of a phase with the verdict on its work. */
export async function verifyWork(phase: Phase, work: Work, application: Application): Promise<VerifiedEnd> {
  const { end } = work;
  if (end.outcome !== "completed" && end.outcome !== "denied") return end;
  const results = await runChecks(phase, work, application);
  if (work.signal.aborted) return { ...end, ...interrupted };
  const verdict = results.some(isFailed) ? "failed" : "passed";
  const checks: AttemptRecord["checks"] = results.length === 0 ? undefined : verdict;
  const { error: _, hint: __, ...rest } = end;
  const completed = { ...rest, outcome: "completed" as const, ...(checks !== undefined && { checks }) };
  if (checks === "failed") return { ...completed, ...refused("check_failed", ...describeChecks(results)) };
  if (end.outcome === "denied" && !isExcused(phase, { end, checks }, application)) return end;
  const refusal = await findWrong(phase, { ...work, checks }, application);
  if (refusal !== undefined) return { ...completed, ...refusal };
  if (phase.reviewer === undefined) return completed;
  const { costUsd, ...review } = await reviewWork(phase, { ...work, results }, application);
  const spent = costUsd === undefined ? {} : { costUsd: (end.costUsd ?? 0) + costUsd };
  return work.signal.aborted ? { ...end, ...interrupted, ...spent } : { ...completed, ...review, ...spent };
}

const interrupted = { outcome: "interrupted", error: "The run was interrupted." } as const;

/** Work that does not count, in a sentence for people and a text for the agent. Without the latter, another attempt would
 *  not help. */
type Refusal = Pick<VerifiedEnd, "outcome" | "verdict" | "error" | "hint" | "feedback">;

function refused(verdict: string, error: string, feedback?: string): Refusal {
  return { outcome: "failed", verdict, error, feedback };
}

/** Whether it does not matter that the agent was denied a tool. */
function isExcused(
  phase: Phase,
  { end, checks }: { readonly end: JudgedEnd; readonly checks: AttemptRecord["checks"] },
  { options, onEvent }: Application,
): boolean {
  const hasAnswered = options.allow(phase) === "read" && end.answer.trim() !== "";
  if (checks === undefined && !hasAnswered) return false;
  const why = checks === undefined ? "it has answered" : "its checks pass";
  onEvent({ event: "notice", phase: phase.id, message: `${end.error} That does not matter: ${why}` });
  return true;
}

/** Returns what is wrong with the files. */
async function findWrong(
  phase: Phase,
  work: Work & { readonly checks: AttemptRecord["checks"] },
  application: Application,
): Promise<Refusal | undefined> {
  const marked = await findConflictMarks(phase, work, application);
  if (marked.length > 0) {
    const text = `These files still have the marks of a conflict: ${marked.join(", ")}.`;
    return refused("conflict", text, `${text} Decide what each place should say, and remove the marks.`);
  }
  const scope = phase.scope.join(", ");
  const outside = await findOutside(phase, work, application);
  if (outside === undefined) {
    const text = "Git cannot show what you changed, because it cannot read all files of the folder.";
    if (phase.scopePolicy === "fail") return refused("outside_scope", text, `${text} Undo what keeps it from that.`);
    application.onEvent({ event: "notice", phase: phase.id, message: "git cannot show what it changed" });
  } else if (outside.length > 0) {
    const text = `t changed ${listPaths(outside)}, outside of its scope, ${scope}.`;
    if (phase.scopePolicy === "fail")
      return refused("outside_scope", `I${text}`, `I${text} Undo these changes, and do the task within the scope.`);
    application.onEvent({ event: "notice", phase: phase.id, message: `i${text}` });
  }
  if (!work.isUnchanged || application.options.allow(phase) === "read") return undefined;
  const error = `The agent changed no file in its scope, ${scope}.`;
  const hint = "Its answer may say why. Agents that may only read need --allow edit.";
  // Without a check or a reviewer nobody can say whether the task needed a change, so the agent is not asked again.
  const isTold = work.checks !== undefined || phase.reviewer !== undefined;
  return { outcome: "unchanged", error, hint, feedback: isTold ? `${error} The task asks for a change.` : undefined };
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
  const longest = (text.match(/`+/g) ?? []).reduce((most, run) => Math.max(most, run.length), 2);
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${text.trimEnd()}\n${fence}`;
}

/** Returns the changed files outside of the scope. In one folder, what other phases may change is not counted. Undefined
 *  if git could show changes before the phase, and cannot any more. */
async function findOutside(
  phase: Phase,
  { folder, run }: Work,
  application: Application,
): Promise<string[] | undefined> {
  const { options, worktrees, sources } = application;
  if (phase.scope.length === 0 || run?.base === undefined) return [];
  // All of a worktree is merged, also what is above the folder in which the agent works.
  const root = worktrees?.rootOf(phase) ?? folder;
  const changed = await changedFiles({ folder: root, base: run.base }, options.env);
  const isOwn = createScopeTest(phase.scope);
  const others = worktrees === undefined && options.maxWorkers > 1 ? sources.nebula.phases : [];
  const isTheirs = createScopeTest(others.flatMap(({ id, scope }) => (id === phase.id ? [] : scope)));
  const paths = changed?.map((path) => relative(folder, join(root, path)));
  return paths?.filter((path) => path.startsWith("../") || (!isOwn(path) && !isTheirs(path)));
}

function listPaths(paths: readonly string[]): string {
  const most = 5;
  return [...paths.slice(0, most), ...(paths.length > most ? [countNoun(paths.length - most, "more file")] : [])].join(
    ", ",
  );
}

/** Returns the files that still have conflict marks which the agent should have removed: also if an attempt failed for
 *  another reason since, or if the agent told git that the conflict is resolved. */
async function findConflictMarks(
  phase: Phase,
  { folder, run }: Work,
  { options, worktrees }: Application,
): Promise<string[]> {
  const hadConflict = run?.history?.some(({ outcome }) => outcome === "conflict") ?? false;
  if (worktrees === undefined || run?.base === undefined || !hadConflict) return [];
  const root = worktrees.rootOf(phase);
  const marked: string[] = [];
  for (const path of (await changedFiles({ folder: root, base: run.base }, options.env)) ?? []) {
    const read = readForeignText(join(root, path), { within: root });
    if ("text" in read && /^<<<<<<< [\s\S]*^>>>>>>> /m.test(read.text)) marked.push(relative(folder, join(root, path)));
  }
  return marked;
}

/** Asks the reviewer, who sees the task, the diff and the checks, and may only read. */
async function reviewWork(
  phase: Phase,
  { folder, run, end, results, signal }: Work & { readonly results: readonly CheckResult[] },
  { options, attempts, onEvent, watched, worktrees }: Application,
): Promise<Partial<Refusal> & { readonly costUsd?: number | undefined }> {
  const failed = (why: string, costUsd?: number) => {
    return { ...refused("review_failed", `The reviewer gave no verdict: ${why}`), costUsd };
  };
  const left = run?.budgetUsd === undefined ? undefined : run.budgetUsd - (end.costUsd ?? 0);
  if (left !== undefined && left <= 0) return failed("the limit on the cost of the phase is used up.");
  const chosen = options.review?.(phase, { folder, budgetUsd: left });
  if (chosen === undefined) return failed("no agent is chosen for it.");
  onEvent({ event: "doing", phase: phase.id, kind: "does", text: "review" });
  const changed = { folder: worktrees?.rootOf(phase) ?? folder, base: run?.base };
  const diff = await diffWork(changed, { env: options.env, maxLines: 2_000 });
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
  const verdict = outcome === "completed" || outcome === "denied" ? readVerdict(answer) : undefined;
  if (verdict === "accepted") return { costUsd };
  if (verdict === undefined) return failed(judged.error ?? `${outcome}, ${shorten(oneLine(answer), 200)}`, costUsd);
  const text = verdict.findings;
  const feedback = `A reviewer has read your work and found:\n\n${cutText(text, 20_000).text}\n\nChange your work accordingly.`;
  return { ...refused("findings", `The reviewer has findings: ${cutText(text, 2_000).text}`, feedback), costUsd };
}

/** A reviewer may quote the other word before its own. Work that is in doubt does not count, so findings decide. */
function readVerdict(answer: string): "accepted" | { readonly findings: string } | undefined {
  const findings = /^[ \t*#`]*FINDINGS\b[\s:*#`]*/m.exec(answer);
  if (findings !== null) return { findings: answer.slice(findings.index + findings[0].length).trim() };
  return /^[ \t*#`]*ACCEPT\b/m.test(answer) ? "accepted" : undefined;
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
