/** Reads a recorded session. Its content shows which program wrote it, not its name. */
import { ContextError } from "../../core/errors.ts";
import { formatOfRequest } from "../../core/messages/index.ts";
import { type Fields, messageOf } from "../../core/text/index.ts";
import { claudeCodeSessions } from "./claude-code-session.ts";
import { clineReader } from "./cline.ts";
import { codexReader } from "./codex.ts";
import { copilotReader } from "./copilot.ts";
import { geminiReader } from "./gemini.ts";
import { isOpencodeExport, type OpencodeExport, readOpencode } from "./opencode.ts";
import { piReader } from "./pi.ts";
import { qwenReader } from "./qwen.ts";
import { createSessionDraft, type JsonLine, type RecordedSession } from "./recorded-session.ts";
import { createFacts, createFactsDraft, type SessionFacts } from "./session-facts.ts";
import { type ClientReader, createSessionScan, parseFields } from "./session-scan.ts";

/** The readers of JSON Lines, in the order in which they are tried. To add a program: a file in this folder and a line
 *  here. */
export const clientReaders: readonly ClientReader[] = [
  geminiReader,
  // Its lines have the ids of Claude Code's.
  qwenReader,
  clineReader,
  copilotReader,
  claudeCodeSessions,
  codexReader,
  piReader,
];

export interface ReadSession {
  readonly recorded: RecordedSession;
  /** What a bill needs to know. Undefined if no known program wrote the file. */
  readonly facts?: SessionFacts | undefined;
}

interface ReadOptions {
  /** The name for errors and reports. The caller reads the file. */
  readonly file: string;
  /** Whether only the requests are asked for. */
  readonly isWithoutFacts?: boolean;
}

/** Returns the facts of a whole file, or undefined if no known program wrote it. */
export function readFacts(text: string): SessionFacts | undefined {
  const whole = parseFields(text);
  if (isOpencodeExport(whole)) return readOpencode(whole);
  const scan = createSessionScan(clientReaders);
  for (const line of whole === undefined ? text.split("\n") : [text]) scan.line(line);
  return scan.finish().facts;
}

/** Reads the requests of a session, without its facts. */
export function readRecording(text: string, options: ReadOptions): RecordedSession {
  return readSession(text, { ...options, isWithoutFacts: true }).recorded;
}

/** Reads a recorded session of any supported program: transcript JSON Lines, Claude Code, Codex, opencode, gemini-cli,
 *  pi, a request, or a list of messages. `notes` report what was left out. Throws with the line of what cannot be read. */
export function readSession(text: string, { file, isWithoutFacts = false }: ReadOptions): ReadSession {
  const content = text.startsWith("\uFEFF") ? text.slice(1) : text;
  if (content.trim() === "") throw unreadable("the file is empty", file);
  const whole = parseWhole(content, file);
  if (whole !== undefined) return readWhole(whole.value, file);
  const { lines, notes } = parseJsonLines(content, file);
  const { recorded, facts } = readLines(lines, { file, isWithoutFacts });
  return { recorded: notes.length === 0 ? recorded : { ...recorded, notes: [...notes, ...recorded.notes] }, facts };
}

/** Parses the file as one JSON value. Returns undefined if its first line is a value by itself: then it is JSON
 *  Lines. */
function parseWhole(content: string, file: string): { value: unknown } | undefined {
  const trimmed = content.trim();
  const stop = trimmed.indexOf("\n");
  const first = (stop < 0 ? trimmed : trimmed.slice(0, stop)).trimEnd();
  let head: unknown;
  try {
    head = JSON.parse(first);
  } catch {
    return { value: parseOrThrow(content, file) };
  }
  // A file of one line can be a session that has just begun.
  const isLine = typeof head === "object" && head !== null && !Array.isArray(head) && findListKey(head) === undefined;
  return first.length === trimmed.length && !isLine ? { value: head } : undefined;
}

function parseOrThrow(content: string, file: string): unknown {
  try {
    return JSON.parse(content);
  } catch (cause) {
    const problem = messageOf(cause);
    const position = /position (\d+)/.exec(problem)?.[1];
    const line = position === undefined ? undefined : content.slice(0, Number(position)).split("\n").length;
    throw new ContextError("unreadable_input", `this is not valid JSON: ${problem}`, { file, line, cause });
  }
}

function readWhole(value: unknown, file: string): ReadSession {
  if (isOpencodeExport(value)) return readOpencodeExport(value, { file });
  if (clineReader.isLine(value)) return readClient(clineReader, [{ value, line: 1 }], { file });
  const { messages, ...head } = Object(value) as Fields;
  // Before JSON Lines, gemini-cli wrote its head with the messages in it.
  if (geminiReader.isLine(value) && Array.isArray(messages)) {
    return readClient(
      geminiReader,
      [head, ...messages].map((line) => ({ value: line, line: 1 })),
      { file },
    );
  }
  return { recorded: readRequest(value, file) };
}

export function readOpencodeExport(value: OpencodeExport, { file }: ReadOptions): ReadSession {
  const requests = createSessionDraft();
  const facts = readOpencode(value, requests);
  return { recorded: requests.finish({ file, source: "opencode", format: "anthropic" }), facts };
}

/** Parses every line that is not blank. Programs may leave a byte order mark, blank lines, and a last line that was cut
 *  off when they were killed. Only the last line may be broken; a note then says so. */
function parseJsonLines(text: string, file: string): { lines: readonly JsonLine[]; notes: readonly string[] } {
  const lines: JsonLine[] = [];
  const notes: string[] = [];
  const end = text.trimEnd().length;
  for (let start = 0, line = 1; start < end; line++) {
    const found = text.indexOf("\n", start);
    const stop = found < 0 ? text.length : found;
    const raw = text.slice(start, stop);
    start = stop + 1;
    if (raw.trim() === "") continue;
    try {
      lines.push({ value: JSON.parse(raw), line });
    } catch (cause) {
      if (stop < end || lines.length === 0) {
        const beginning = JSON.stringify(raw.trim().slice(0, 40));
        const hint = "A session file has one JSON object per line; a request is one JSON value.";
        throw new ContextError("unreadable_input", `this is not valid JSON: ${beginning}`, { file, line, cause, hint });
      }
      notes.push(`line ${line} is cut off and was left out`);
    }
  }
  return { lines, notes };
}

function readLines(lines: readonly JsonLine[], options: ReadOptions): ReadSession {
  const { file } = options;
  const values = lines.map(({ value }) => value);
  const reader = isTranscriptHead(values[0]) ? "messages" : findReader(values);
  if (reader === "messages") return { recorded: readTranscript(lines, file) };
  if (reader !== undefined) return readClient(reader, lines, options);
  if (!values.some((value) => findListKey(value) !== undefined)) {
    throw unreadable("this is not a known kind of recorded session", file);
  }
  throw new ContextError("unreadable_input", "the file has several requests, one per line", {
    file,
    hint: "Save the last request of the session in its own file. It holds the whole history.",
  });
}

/** Recognises the program by lines that only it writes. Returns undefined if no line is of a known kind. */
export function recognizeLines(
  values: readonly unknown[],
): ClientReader["agent"] | "messages" | "requests" | undefined {
  const reader = findReader(values);
  if (reader !== undefined) return reader === "messages" ? reader : reader.agent;
  return values.some((value) => findListKey(value) !== undefined) ? "requests" : undefined;
}

function findReader(values: readonly unknown[]): ClientReader | "messages" | undefined {
  const isKnown = (value: unknown): boolean => clientReaders.some(({ isLine }) => isLine(value)) || isMessage(value);
  const first = values.find(isKnown);
  const reader = clientReaders.find(
    ({ isLine, mayStartLater }) => isLine(first) || (mayStartLater === true && values.some(isLine)),
  );
  return reader ?? (isMessage(first) ? "messages" : undefined);
}

/** One pass over the lines finds both the facts and the requests. */
function readClient(
  reader: ClientReader,
  lines: readonly JsonLine[],
  { file, isWithoutFacts = false }: ReadOptions,
): ReadSession {
  const draft = createFactsDraft(createFacts(reader.agent));
  draft.isIgnored = isWithoutFacts;
  const requests = createSessionDraft();
  const reading = reader.open(draft, requests);
  for (const { value, line } of lines) reading.read(value, { file, line });
  const format = reader.agent === "codex" ? "responses" : "anthropic";
  const recorded = requests.finish({ file, source: reader.agent, format, ...reading.finish?.() });
  return { recorded, facts: isWithoutFacts ? undefined : draft.facts };
}

/** Returns the messages as they are. With a meta line they are in Anthropic's format. */
function readTranscript(lines: readonly JsonLine[], file: string): RecordedSession {
  const requests = createSessionDraft();
  const head = lines[0]?.value;
  const hasMeta = isTranscriptHead(head);
  for (const { value, line } of hasMeta ? lines.slice(1) : lines) {
    if (!isMessage(value)) {
      const problem = "this is not a message: expected an object with a role, or an item of OpenAI's responses";
      throw new ContextError("invalid_message", problem, { file, line });
    }
    requests.add(value);
  }
  if (!hasMeta) return requests.finish({ file, source: "messages" });
  const { model: names } = head.meta;
  // A session that changed its model names several, in the order of use.
  const model = typeof names === "string" ? names.split(",")[0]?.trim() : undefined;
  return requests.finish({ file, source: "transcript", format: "anthropic", model });
}

function isTranscriptHead(value: unknown): value is { readonly meta: Fields } {
  const { meta, role } = Object(value) as Fields;
  return typeof meta === "object" && meta !== null && role === undefined;
}

/** In OpenAI's responses, calls, results and reasoning are items without a role. */
function isMessage(value: unknown): value is Fields {
  if (typeof value !== "object" || value === null) return false;
  return typeof (value as Fields).role === "string" || formatOfRequest([value]) === "responses";
}

/** Reads a request as it was sent, or the bare list of its messages. The last request of a session holds the whole
 *  history. */
function readRequest(value: unknown, file: string): RecordedSession {
  if (Array.isArray(value)) return { file, source: "messages", messages: checkList(value, file), notes: [] };
  const request = Object(value) as Fields;
  const key = findListKey(value);
  if (key === undefined) {
    throw new ContextError("unreadable_input", "this JSON has no messages", {
      file,
      hint: "Pass a request with messages or input, or a list of messages.",
    });
  }
  const { model, tools } = request;
  const list = request[key];
  const system = request.system ?? request.instructions ?? undefined;
  return {
    file,
    source: "request",
    ...(key !== "messages" && { format: "responses" }),
    messages: checkList(typeof list === "string" ? [{ role: "user", content: list }] : (list as unknown[]), file),
    ...(system !== undefined && { system }),
    ...(Array.isArray(tools) && { tools }),
    ...(typeof model === "string" && { model }),
    notes: [],
  };
}

/** `messages`: Anthropic, OpenAI chat, AI SDK. `input`: OpenAI responses, which may be plain text. `items`: Codex
 *  before rollouts were JSON Lines. */
const listKeys = ["messages", "input", "items"] as const;

/** Returns the name of the field that has the messages of a request. Undefined if the value is no request. */
function findListKey(value: unknown): (typeof listKeys)[number] | undefined {
  const request = Object(value) as Fields;
  return listKeys.find((key) => Array.isArray(request[key]) || (key === "input" && typeof request.input === "string"));
}

function checkList(list: readonly unknown[], file: string): readonly object[] {
  const index = list.findIndex((each) => typeof each !== "object" || each === null || Array.isArray(each));
  if (index < 0) return list as readonly object[];
  throw new ContextError("invalid_message", `messages[${index}] must be an object`, { file });
}

function unreadable(problem: string, file: string): ContextError {
  return new ContextError("unreadable_input", problem, {
    file,
    hint: "Use messages one per line, a session of a known client, a request, or a list of messages.",
  });
}
