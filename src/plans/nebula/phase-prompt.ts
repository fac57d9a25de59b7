/** Builds the prompt of a phase, and reads the fabric blocks of its answer. */

import type { Store } from "../../core/store/index.ts";
import {
  closes,
  cutText,
  fenceAt,
  formatNumber,
  type Line,
  oneLine,
  printable,
  scanLines,
} from "../../core/text/index.ts";
import type { Counter } from "../../core/tokens/index.ts";
import {
  type Claim,
  type ComposedContext,
  type FabricReport,
  type PriorAnswer,
  type PromptComposer,
  renderFabric,
  withTask,
} from "../compose/index.ts";
import type { Nebula, Phase } from "./nebula.ts";
import { fabricOf, type NebulaRecord, readAnswer, runOf } from "./nebula-record.ts";
import type { ReportProblem } from "./read-report.ts";

/** The fenced `fabric` blocks of an answer. */
export interface FabricBlocks {
  /** The reports of all blocks together; absent if no block can be read. */
  readonly report?: FabricReport;
  /** Sentences with the line in the answer. */
  readonly problems: readonly string[];
  /** The answer without the blocks. Unreadable blocks stay, so that their text is not lost. */
  readonly rest: string;
}

/** Reads the blocks of an answer. Never throws: a mistake is a problem. Ignores the example of the task, which an
 *  agent may repeat. Loads YAML only if there is a block. */
export async function parseFabricBlock(answer: string): Promise<FabricBlocks> {
  const { blocks, open } = findBlocks(answer);
  const unclosed = "the fabric block has no closing fence and may be cut off, so it is ignored";
  const tooLong = `fabric blocks longer than ${formatNumber(maxBlockLength)} characters are ignored`;
  const problems: ReportProblem[] = open.map((line) => ({ line, message: unclosed }));
  if (blocks.length === 0) return { problems: describeProblems(problems), rest: answer };
  const { createReportReader } = await import("./read-report.ts");
  const read = await createReportReader();
  const taken: Block[] = [];
  const reports: FabricReport[] = [];
  let length = 0;
  for (const block of blocks) {
    if (block.text === fabricExample) {
      taken.push(block);
      continue;
    }
    length += block.text.length;
    if (length > maxBlockLength) {
      problems.push({ line: block.line, message: tooLong });
      continue;
    }
    const { report, problems: found } = read(block.text);
    problems.push(...found.map(({ line, message }) => ({ line: block.line + line, message })));
    if (report === undefined) continue;
    taken.push(block);
    reports.push(report);
  }
  const starts = [0, ...taken.map(({ end }) => end)];
  const rest = starts.map((start, index) => answer.slice(start, taken[index]?.start)).join("");
  const facts = { problems: describeProblems(problems), rest: taken.length === 0 ? answer : rest.trimEnd() };
  if (reports.length === 0) return facts;
  const report = {
    entanglements: reports.flatMap(({ entanglements = [] }) => entanglements),
    claims: reports.flatMap(({ claims = [] }) => claims),
    discoveries: reports.flatMap(({ discoveries = [] }) => discoveries),
    notes: reports.flatMap(({ notes = [] }) => notes),
    resolved: reports.flatMap(({ resolved = [] }) => resolved),
  };
  return { report, ...facts };
}

/** All blocks of an answer may have this many characters together, so that reading them takes no time. */
const maxBlockLength = 100_000;

interface Block {
  /** From its opening fence to after its closing fence. */
  readonly start: number;
  readonly end: number;
  /** Number of its first line. */
  readonly line: number;
  readonly text: string;
}

/** Finds fabric blocks. Ignores blocks nested in another fence or a quote: those are examples. In a list item, an
 *  unindented line ends the block. Markdown then takes the closing fence for an opening one. The author meant that
 *  fence as a closing one, so the text after it is taken for prose. */
function findBlocks(answer: string): { blocks: Block[]; open: number[] } {
  const blocks: Block[] = [];
  const open: number[] = [];
  let opener: Line | undefined;
  let isNoCode = false;
  const giveUp = (): void => {
    if (opener !== undefined) open.push(opener.number);
  };
  const begin = (line: Line): void => {
    giveUp();
    const isFence = fenceAt(answer, line)?.canOpen === true;
    // The opening fence of a fabric block, also in a list item.
    const isFabric = /^[^`~>]*[`~]{3,}[ \t]*fabric(?:[ \t]|$)/i.test(answer.slice(line.start, line.end));
    opener = isFence && isFabric ? line : undefined;
  };
  const end = (line: Line): void => {
    if (opener === undefined) return;
    const text = answer.slice(opener.next, line.start);
    blocks.push({ start: opener.start, end: line.next, line: opener.number, text });
    opener = undefined;
  };
  scanLines(answer, (line, kind) => {
    const fences = kind === "opener" && opener !== undefined ? [fenceAt(answer, opener), fenceAt(answer, line)] : [];
    const isMeantToClose = fences[0] !== undefined && fences[1] !== undefined && closes(fences[0], fences[1]);
    if (kind === "closer" || isMeantToClose) end(line);
    else if (kind === "opener" || (kind === "code" && isNoCode && opener === undefined)) begin(line);
    if (kind === "opener" || kind === "closer") isNoCode = isMeantToClose;
  });
  giveUp();
  return { blocks, open };
}

function describeProblems(problems: readonly ReportProblem[]): string[] {
  return problems
    .toSorted((one, two) => one.line - two.line)
    .map(({ line, message }) => `line ${line}: ${cutLongText(printable(message))}`);
}

function cutLongText(message: string): string {
  const { text, omitted } = cutText(message, 240);
  return omitted === 0 ? text : `${text}…`;
}

/** The content of the block that shows an agent how to report. */
const fabricExample = `entanglements:
  - { package: name, kind: function, signature: "what others may call", file: path }
discoveries:
  - { kind: what sort, detail: "what others must know", affects: [phase id] }
resolved: [id of a discovery]
notes:
  - { kind: decision, text: "what was decided, and why" }
`;

export interface PromptSources {
  readonly nebula: Nebula;
  readonly key: string;
  readonly counter: Counter;
  /** Absent if prompts have no context. */
  readonly budget?: PromptComposer | undefined;
  /** Rendered once per run, so that it can be cached. */
  readonly project: string;
  /** Whether it was cut before it became a layer. */
  readonly isProjectTruncated?: boolean | undefined;
  /** Absent if there is no store yet. */
  readonly store?: Pick<Store, "get"> | undefined;
}

export interface PhasePrompt {
  readonly text: string;
  /** Tokens of the whole prompt. */
  readonly tokens: number;
  readonly layers: ComposedContext["layers"];
  /** Tokens by which the discoveries of the fabric did not fit. */
  readonly overflow: number;
}

/** Builds the prompt of an attempt whose agent knows the task and goes on in its session. */
export function followUpPrompt(feedback: string, counter: Counter): PhasePrompt {
  const text = `Your work on this phase is not accepted yet.\n\n${feedback}\n\nEnd with a whole answer again, as the task asks for it.\n`;
  return { text, tokens: counter.count(text), layers: [], overflow: 0 };
}

/** Builds the prompt of a phase: what was wrong with an earlier attempt, context within the budget, then the whole
 *  task. */
export async function phasePrompt(
  phase: Phase,
  record: NebulaRecord,
  sources: PromptSources,
  feedback?: string,
): Promise<PhasePrompt> {
  const prompt = await composePrompt(phase, record, sources);
  if (feedback === undefined) return prompt;
  const text = `# What is wrong so far\n\nAn earlier agent has worked on the task below, and its changes are in the folder. ${feedback}\n\n${prompt.text}`;
  return { ...prompt, text, tokens: sources.counter.count(text) };
}

async function composePrompt(phase: Phase, record: NebulaRecord, sources: PromptSources): Promise<PhasePrompt> {
  const { nebula, counter, budget, project } = sources;
  // Claims of phases that have not completed, and those of people.
  const isActive = ({ owner }: Claim) => owner !== phase.id && runOf(record, owner)?.state !== "completed";
  const task = renderTask(nebula, phase, record.fabric.claims.filter(isActive));
  if (budget === undefined) return { text: task, tokens: counter.count(task), layers: [], overflow: 0 };
  const fabric = renderFabric(fabricOf(record));
  const { key, store } = sources;
  const priorWork: PriorAnswer[] = [];
  for (const id of phase.dependsOn) {
    if (store === undefined || runOf(record, id)?.state !== "completed") continue;
    const answer = await readAnswer(store, { key, phase: id });
    const { title = id } = nebula.phases.find((each) => each.id === id) ?? {};
    if (answer === undefined) continue;
    const { rest } = await parseFabricBlock(answer);
    priorWork.push({ heading: `${id}: ${title}`, text: rest });
  }
  const composed = budget.compose({ project, fabric, priorWork });
  const text = withTask(composed.text, task);
  const layers = composed.layers.map((layer) =>
    layer.name === "project" && sources.isProjectTruncated ? { ...layer, truncated: true } : layer,
  );
  return { text, tokens: counter.count(text), layers, overflow: composed.overflow };
}

/** Renders the task of a phase, the last part of its prompt. The same files and claims give the same bytes. */
export function renderTask(
  { goals, constraints }: Pick<Nebula, "goals" | "constraints">,
  { id, title, body, scope, check = [] }: Pick<Phase, "id" | "title" | "body" | "scope" | "check">,
  claims: readonly Pick<Claim, "path" | "owner">[] = [],
): string {
  const patterns = scope.map(code).filter((each) => each !== "");
  const own =
    patterns.length === 0
      ? "It has no scope: change only what the task needs"
      : `Change only files of its scope: ${patterns.join(", ")}`;
  const list = (heading: string, items: readonly string[]): string[] => {
    const lines = items.map(oneLine).filter((line) => line !== "");
    return lines.length === 0 ? [] : [`## ${heading}\n\n${lines.map((line) => `- ${line}`).join("\n")}`];
  };
  const parts = [
    `# ${oneLine(title)}`,
    ["## This phase", "", `- Id: ${id}`, `- ${own}`, ...renderChecks(check), ...renderClaims(claims)].join("\n"),
    ...list("Goals of the whole", goals),
    ...list("Constraints", constraints),
    ...(body === "" ? [] : [body]),
    howToReport,
  ];
  return `${parts.join("\n\n")}\n`;
}

/** Returns a prompt or a task without the line about claims, which depends on when the phase starts. */
export function withoutClaims(text: string): string {
  return text.replaceAll(new RegExp(`^- ${claimsLabel}: .*\\n`, "gm"), "");
}

const claimsLabel = "Others are changing";

function renderChecks(commands: readonly string[]): string[] {
  if (commands.length === 0) return [];
  return [
    `- After your work these commands must succeed, and you may run them exactly so: ${commands.map(code).join(", ")}`,
  ];
}

/** Renders the first 20 claims of others. The fabric has all of them. */
function renderClaims(claims: readonly Pick<Claim, "path" | "owner">[]): string[] {
  if (claims.length === 0) return [];
  const first = claims.slice(0, 20).map(({ path, owner }) => `${code(cutLongText(path))} (${oneLine(owner)})`);
  const more = claims.length - first.length;
  return [`- ${claimsLabel}: ${[...first, ...(more > 0 ? [`and ${formatNumber(more)} more`] : [])].join(", ")}`];
}

/** Renders a pattern as inline code on one line. */
function code(text: string): string {
  const line = printable(oneLine(text));
  if (!line.includes("`")) return line === "" ? "" : `\`${line}\``;
  const fence = "`".repeat(Math.max(...[...line.matchAll(/`+/g)].map(([run]) => run.length)) + 1);
  return `${fence} ${line} ${fence}`;
}

const howToReport = `## How to report

End with an answer that says what was done, the result last. What other phases need to know goes into a fenced code block of the
language \`fabric\`, as here, with only the lists that you have something for. \`resolved\` has the ids of discoveries in the fabric
that no longer hold. \`affects\` may name several phases:

\`\`\`fabric
${fabricExample}\`\`\``;
