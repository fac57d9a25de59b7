/** What an intake reads of a call: its name, what it writes, what kind of result it has, and whether the agent insists. */
import { replacedIn, subjectKeys, textsIn } from "../../core/messages/index.ts";
import { oneLine } from "../../core/text/index.ts";
import { plainLine, type ResultLine, splitNumber } from "./result-lines.ts";

/** A call whose result comes in. */
export interface IncomingCall {
  readonly tool: string;
  readonly input?: unknown;
}

/** Returns the number of the first line that a call asked for: 1, unless it names another one. */
export function readFirstLine({ input }: IncomingCall): number | undefined {
  const fields = Object(input) as Readonly<Record<string, unknown>>;
  const values = [...firstLineKeys.map((key) => fields[key]), Object(fields.view_range)[0]].map(Number);
  return values.find((value) => Number.isInteger(value) && value > 1 && value < 10_000_000);
}

/** As pi, Claude Code, Gemini CLI, Cline and OpenHands name it (2026-11). */
const firstLineKeys = ["offset", "start_line", "startLine", "line_start"];

/** Names a call by its result. Numbers that a tool wrote mean the same in every part of a file. If the lines have no
 *  numbers, the name contains the first line that the call asked for. */
export function nameResult(call: IncomingCall, lines: readonly ResultLine[]): string {
  const first = readFirstLine(call);
  const isNumbered = lines.some(({ text, body }) => text !== body && splitNumber(text)[0] !== "");
  return first === undefined || isNumbered ? nameCall(call) : `${nameCall(call)} from ${first}`;
}

/** Returns the names that a call without a result may get. */
export function nameUnfinished(call: IncomingCall): string[] {
  return [nameCall(call), nameResult(call, [])];
}

/** Names a call in a note: the tool and what it was about. Many commands start with the folder in which they run. */
function nameCall({ tool, input }: IncomingCall): string {
  const values = subjectKeys.map((key) => (Object(input) as Readonly<Record<string, unknown>>)[key]);
  const subject = values.find((value) => typeof value === "string" && value !== "") ?? findPatchedFile(input);
  const line = cleanWords(String(subject)).replace(/^cd \S+ && /, "");
  const isLongPath = line.length > maxPath && /^\/\S+$/.test(line);
  const short = line.length > maxSubject ? `${line.slice(0, 30)} ... ${line.slice(-30)}` : line;
  const about = isLongPath ? `.../${line.split("/").slice(-3).join("/")}` : short;
  return `${cleanWords(tool).slice(0, maxToolName)} ${about}`.trim();
}

/** Puts a text on one line, without characters that could end a note or show it in another order: brackets of every
 *  kind that looks like ours, and control and formatting characters. */
export function cleanWords(text: string): string {
  return oneLine(text.slice(0, maxRead))
    .replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Co}]/gu, "")
    .replace(/[[［⁅⟦〚【〔]/g, "(")
    .replace(/[\]］⁆⟧〛】〕]/g, ")");
}

/** A name has at most 65 characters of a subject, but a command may be long. */
const maxRead = 10_000;
const maxToolName = 64;
const maxPath = 40;
const maxSubject = 65;

function findPatchedFile(input: unknown): string {
  for (const text of textsIn(input)) {
    const file = /^\*\*\* (?:Update|Add) File: (.+)$/m.exec(text)?.[1];
    if (file !== undefined) return file;
  }
  return "";
}

/** Whether the call asks for an original. Such a result is never edited. */
export function isRecall({ tool, input }: IncomingCall): boolean {
  return /(?:^|[^a-z])recall$/i.test(tool) || /\bplimsoll\b[^\n;&|]*\brecall\b/.test(textsIn(input).join(" "));
}

/** Whether a program printed the result. The text of a file may have words of failures that mean nothing. */
export function isOutput({ tool, input }: IncomingCall): boolean {
  const fields = Object(input) as Readonly<Record<string, unknown>>;
  return fields.command !== undefined || fields.cmd !== undefined || programs.test(tool);
}

const programs = /bash|shell|exec|command|terminal|(?:^|[^a-z])(?:run|tests?|lint|build)(?:[^a-z]|$)/i;

/** Returns the texts that the agent wrote in the call itself: they are in the context too. What it replaced is gone. */
export function readWrittenTexts({ input }: IncomingCall): ResultLine[][] {
  const replaced = new Set(replacedIn(input));
  const texts = textsIn(input).filter((text) => text.length >= minWritten && !replaced.has(text));
  return texts.flatMap(readWrittenLines);
}

const minWritten = 80;

/** A patch has lines of the file after a sign, in several places. Lines that it removes, and its headings, are not in the
 *  file. */
function readWrittenLines(text: string): ResultLine[][] {
  const lines = text.split("\n").map(plainLine);
  if (!/^(?:\*\*\* Begin Patch|@@ )/m.test(text)) return [lines];
  const hunks: ResultLine[][] = [[]];
  for (const line of lines) {
    if (/^[+ ]/.test(line.body)) hunks.at(-1)?.push({ ...line, body: line.body.slice(1) });
    else hunks.push([]);
  }
  return hunks.filter(({ length }) => length > 0);
}

/** A call whose result was edited. */
export interface EditedCall {
  /** The hash of tool and input. */
  readonly call: string;
  /** The hash of the result. */
  readonly text: string;
  /** The number of the result. */
  readonly sequence: number;
  /** Whether no other result was sent whole since. */
  readonly isLast: boolean;
}

/** Whether an agent insists on the whole result: it repeats a call whose result was edited, and either the result is
 *  the same as before or no other result was sent whole since then. */
export function isRepeatedCall(edited: EditedCall, { call, text }: Pick<EditedCall, "call" | "text">): boolean {
  return edited.call === call && (edited.isLast || edited.text === text);
}

/** Returns the calls that an agent may repeat to get the original: those of the newest results, because it may have made
 *  several calls at once. */
export function nextEdited(
  edited: readonly EditedCall[],
  {
    insisted,
    isEdited,
    call,
  }: {
    readonly insisted: EditedCall | undefined;
    readonly isEdited: boolean;
    readonly call: Omit<EditedCall, "isLast">;
  },
): EditedCall[] {
  const isNew = ({ isLast, sequence }: EditedCall): boolean => isLast || call.sequence - sequence < maxBetween;
  const others = edited.filter((each) => each !== insisted && isNew(each)).slice(-maxEdited);
  if (isEdited) return [...others, { ...call, isLast: true }];
  return insisted === undefined ? others.map((each) => ({ ...each, isLast: false })) : others;
}

const maxBetween = 4;
const maxEdited = 40;
