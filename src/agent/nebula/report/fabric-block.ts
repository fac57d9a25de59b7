/** The fenced `fabric` blocks in which an agent reports, within the answer that it gives anyway. */
import type { FabricReport } from "../../../compose/index.ts";
import {
  closes,
  cutText,
  fenceAt,
  formatNumber,
  type Line,
  printable,
  scanLines,
} from "../../../text/index.ts";
import { fabricExample } from "./fabric-example.ts";
import type { ReportProblem } from "./read-report.ts";

export interface FabricBlocks {
  /** Of all blocks together; absent where there is none that can be read. */
  readonly report?: FabricReport;
  /** In words, with the line in the answer. */
  readonly problems: readonly string[];
  /** The answer without the blocks. One that cannot be read stays: what it says is not lost to whoever reads the answer. */
  readonly rest: string;
}

/** Never throws: whatever an agent wrote is a report, or a problem. The example that every task shows reports nothing: an agent that
 *  repeats what it was asked must not report it. Loads YAML only where there is a block. */
export async function parseFabricBlock(answer: string): Promise<FabricBlocks> {
  const { blocks, open } = findBlocks(answer);
  const problems: ReportProblem[] = open.map((line) => ({ line, message: unclosed }));
  if (blocks.length === 0) return { problems: describe(problems), rest: answer };
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
    const { report, problems: found } = length > maxBlockLength ? tooLong : read(block.text);
    problems.push(...found.map(({ line, message }) => ({ line: block.line + line, message })));
    if (report === undefined) continue;
    taken.push(block);
    reports.push(report);
  }
  const told = { problems: describe(problems), rest: without(answer, taken) };
  return reports.length === 0 ? told : { report: joined(reports), ...told };
}

/** Of all blocks of an answer, in characters: far more than anybody reports, and read in a moment. */
const maxBlockLength = 100_000;
const tooLong = {
  report: undefined,
  problems: [
    {
      line: 0,
      message: `fabric blocks of more than ${formatNumber(maxBlockLength)} characters are not read`,
    },
  ],
};
const unclosed = "the fabric block is never closed and may be cut off, so it is not read";

interface Block {
  /** From the fence that opens it to behind the one that closes it. */
  readonly start: number;
  readonly end: number;
  /** Number of the line that opens it. */
  readonly line: number;
  readonly text: string;
}

/** A block in another fence or in a quote is an example and none. By the rules a block in a list item ends with a line that is not
 *  indented, and its closing fence opens another one; who wrote it meant the fence. Then what follows is no code, up to the next fence. */
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
    opener = isFence && fabricFence.test(answer.slice(line.start, line.end)) ? line : undefined;
  };
  const end = (line: Line): void => {
    if (opener === undefined) return;
    const text = answer.slice(opener.next, line.start);
    blocks.push({ start: opener.start, end: line.next, line: opener.number, text });
    opener = undefined;
  };
  scanLines(answer, (line, kind) => {
    const isMeantToClose = kind === "opener" && opener !== undefined && isCloserOf(answer, opener, line);
    if (kind === "closer" || isMeantToClose) end(line);
    else if (kind === "opener" || (kind === "code" && isNoCode && opener === undefined)) begin(line);
    if (kind === "opener" || kind === "closer") isNoCode = isMeantToClose;
  });
  giveUp();
  return { blocks, open };
}

function isCloserOf(answer: string, opener: Line, line: Line): boolean {
  const [first, second] = [fenceAt(answer, opener), fenceAt(answer, line)];
  return first !== undefined && second !== undefined && closes(first, second);
}

/** Of a line that is a fence: what stands before its marks is a list's. */
const fabricFence = /^[^`~>]*[`~]{3,}[ \t]*fabric(?:[ \t]|$)/i;

const longestProblem = 240;

function describe(problems: readonly ReportProblem[]): string[] {
  return problems
    .toSorted((one, two) => one.line - two.line)
    .map(({ line, message }) => `line ${line}: ${shortened(printable(message))}`);
}

function shortened(message: string): string {
  const { text, omitted } = cutText(message, longestProblem);
  return omitted === 0 ? text : `${text}…`;
}

function without(answer: string, blocks: readonly Block[]): string {
  if (blocks.length === 0) return answer;
  const starts = [0, ...blocks.map(({ end }) => end)];
  return starts
    .map((start, index) => answer.slice(start, blocks[index]?.start))
    .join("")
    .trimEnd();
}

function joined(reports: readonly FabricReport[]): FabricReport {
  return {
    entanglements: reports.flatMap(({ entanglements = [] }) => entanglements),
    claims: reports.flatMap(({ claims = [] }) => claims),
    discoveries: reports.flatMap(({ discoveries = [] }) => discoveries),
    notes: reports.flatMap(({ notes = [] }) => notes),
  };
}
