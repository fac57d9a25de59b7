/** Sessions of Codex (`~/.codex/sessions/…/rollout-*.jsonl`): items of OpenAI's responses format, since September 2025 each in an
 *  envelope `{ timestamp, type, payload }`, before that bare after a head line. */
import { ContextError } from "../../errors.ts";
import type { JsonLine } from "./json-lines.ts";
import {
  createSessionDraft,
  lineOfType,
  type RecordedSession,
  type SessionDraft,
  timeOf,
} from "./recorded-session.ts";

type Fields = Readonly<Record<string, unknown>>;

interface CodexReading {
  readonly draft: SessionDraft;
  /** Keys of all items so far: a compaction hands many of them on unchanged. */
  readonly keys: Set<string>;
  model: string | undefined;
  system: string | undefined;
  compactions: number;
}

/** The items in file order. What a compaction summed up or a rollback took back stays: the file holds more than any one request did. */
export function readCodexSession(lines: readonly JsonLine[], file: string): RecordedSession {
  const reading: CodexReading = {
    draft: createSessionDraft(),
    keys: new Set(),
    model: undefined,
    system: undefined,
    compactions: 0,
  };
  for (const { value, line } of lines) {
    if (typeof value !== "object" || value === null) {
      throw new ContextError("invalid_message", "must be an object", { file, line });
    }
    readLine(value as Fields, reading, { file, line });
  }
  const { draft, model, system, compactions } = reading;
  if (compactions > 0)
    draft.note(`compactions: ${compactions}; what each one summed up stays before its summary`);
  const facts = { ...(system && { system }), ...(model && { model }) };
  return draft.finish({ file, source: "codex", format: "responses", ...facts });
}

/** Bare items alone are no sign of Codex: any program may write those. */
export function isCodexLine(value: unknown): boolean {
  const fields = Object(value) as Fields;
  return (typeof fields.payload === "object" && envelopes.has(fields.type)) || isBareHead(fields);
}

const envelopes: ReadonlySet<unknown> = new Set([
  "session_meta",
  "response_item",
  "event_msg",
  "turn_context",
  "compacted",
]);

function isBareHead({ type, role, id, timestamp, record_type: record }: Fields): boolean {
  if (record !== undefined) return true;
  return type === undefined && role === undefined && typeof id === "string" && typeof timestamp === "string";
}

/** A message of the responses format has a type of its own, which no other format's message has. */
function isBareItem({ type, role, call_id: callId, summary }: Fields): boolean {
  if (type === "message") return typeof role === "string";
  return typeof callId === "string" || (type === "reasoning" && Array.isArray(summary));
}

function readLine(fields: Fields, reading: CodexReading, place: { file: string; line: number }): void {
  if (isBareHead(fields)) return;
  const time = timeOf(fields.timestamp);
  const payload = Object(fields.payload) as Fields;
  if (isBareItem(fields)) addItem(fields, reading, time);
  else if (fields.type === "response_item") addItem(checkItem(payload, place), reading, time);
  else if (fields.type === "compacted") addCompaction(payload, reading, time);
  else if (fields.type === "session_meta") reading.system ??= textOf(payload.base_instructions);
  else if (fields.type === "turn_context") reading.model ??= stringOf(payload.model);
  else reading.draft.leaveOut(...lineOfType(fields.type));
}

function checkItem(item: Fields, place: { file: string; line: number }): Fields {
  if (typeof item.type === "string") return item;
  throw new ContextError("invalid_message", "payload.type must be a string", place);
}

function addItem(item: Fields, reading: CodexReading, time: number | undefined): void {
  // The program's own backup of the working tree; no request ever held it.
  if (item.type === "ghost_snapshot") {
    reading.draft.leaveOut("ghost_snapshot item");
    return;
  }
  reading.keys.add(keyOf(item));
  reading.draft.add(item, time);
}

/** The history that a compaction leaves behind holds old items and the summary: what is new in it follows. */
function addCompaction(payload: Fields, reading: CodexReading, time: number | undefined): void {
  reading.compactions++;
  const { message, replacement_history: replacement } = payload;
  const items = Array.isArray(replacement) ? replacement.map((item) => Object(item) as Fields) : [];
  const fresh = items.filter((item) => !reading.keys.has(keyOf(item)));
  for (const item of fresh) addItem(item, reading, time);
  if (fresh.length > 0 || typeof message !== "string" || message === "") return;
  addItem({ type: "message", role: "user", content: [{ type: "input_text", text: message }] }, reading, time);
}

/** Ids and the program's own marks differ between the two writings of an item. */
function keyOf(item: Fields): string {
  const { type, role, content, call_id: callId, output, action, summary, encrypted_content: sealed } = item;
  return JSON.stringify([type, role, content, callId, output, action, summary, sealed]);
}

function textOf(value: unknown): string | undefined {
  return stringOf((Object(value) as Fields).text);
}

function stringOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
