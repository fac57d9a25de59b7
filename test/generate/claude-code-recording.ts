/** Writes sessions as Claude Code 2.1.325 records them: a line for each block, attachments, and the requests
 *  themselves. Knows what was sent, so that a test can compare it with what a reader returns. */

import { createHash } from "node:crypto";

type Block = Readonly<Record<string, unknown>>;
interface Message {
  readonly role: "user" | "assistant";
  readonly content: readonly Block[];
}

export interface ClaudeCodeRecorder {
  readonly lines: readonly object[];
  /** The messages of each request, in order. */
  readonly sent: readonly (readonly Message[])[];
  /** What the provider billed for each answer. */
  readonly billed: readonly Usage[];
  /** The id of the last line of the conversation. */
  readonly leaf: string | undefined;
  says(text: string): void;
  answers(text: string, ...callIds: string[]): void;
  results(...callIds: string[]): void;
  /** Keeps the last answer after the summary. */
  compacts(summary: string): void;
  /** The next line continues an earlier one. */
  rewinds(leaf: string | undefined): void;
  /** Copies the session, as `--fork-session` does: the requests so far are not copied. */
  fork(sessionId: string): ClaudeCodeRecorder;
}

interface Usage {
  readonly input_tokens: number;
  readonly cache_read_input_tokens: number;
  readonly cache_creation_input_tokens: number;
  readonly output_tokens: number;
}

export interface RecorderOptions {
  readonly sessionId: string;
  /** Whether requests are recorded. Older versions do not. */
  readonly hasRequests?: boolean;
  readonly isSubAgent?: boolean;
}

export function createClaudeCodeRecorder(options: RecorderOptions): ClaudeCodeRecorder {
  const state = { lines: [], leaf: undefined, history: [], histories: new Map(), calls: new Map() };
  return recorderOf(options, { ...state, sent: [], billed: [], next: 1 });
}

interface State {
  lines: Block[];
  leaf: string | undefined;
  /** The conversation up to the leaf. */
  history: readonly Message[];
  /** The conversation up to each line. */
  readonly histories: Map<string | undefined, readonly Message[]>;
  /** The line of each call. */
  readonly calls: Map<string, string>;
  sent: (readonly Message[])[];
  billed: Usage[];
  next: number;
}

function recorderOf(options: RecorderOptions, state: State): ClaudeCodeRecorder {
  const { sessionId, hasRequests = true, isSubAgent = false } = options;
  let requests = createRequestRecorder(sessionId);
  const common = () => ({
    ...{ isSidechain: isSubAgent, sessionId, version: "2.1.325", userType: "external" },
    timestamp: new Date(Date.UTC(2026, 10, 16, 12, 0, state.next)).toISOString(),
  });
  const add = (fields: Block, parent = state.leaf): string => {
    const uuid = `${sessionId}-${state.next++}`;
    state.lines.push({ parentUuid: parent ?? null, ...common(), uuid, ...fields });
    state.leaf = uuid;
    return uuid;
  };
  const hear = (role: Message["role"], ...content: Block[]): void => {
    const last = state.history.at(-1);
    const isMore = last?.role === role;
    const message = { role, content: isMore ? [...last.content, ...content] : content };
    state.history = [...(isMore ? state.history.slice(0, -1) : state.history), message];
    state.histories.set(state.leaf, state.history);
  };
  const remind = (): void => {
    const text = `<system-reminder>\nReminder ${state.next}.\n</system-reminder>`;
    add({
      type: "attachment",
      attachment: { type: "reminder" },
      rendered: [{ content: text }],
      renderedRole: "system",
    });
    hear("user", { type: "text", text });
  };
  return {
    get lines() {
      return state.lines;
    },
    get sent() {
      return state.sent;
    },
    get billed() {
      return state.billed;
    },
    get leaf() {
      return state.leaf;
    },
    says(text) {
      state.lines.push({ type: "queue-operation", operation: "enqueue", ...common(), content: text });
      add({ type: "user", message: { role: "user", content: text } });
      hear("user", { type: "text", text });
      remind();
    },
    answers(text, ...callIds) {
      const messages = state.history;
      state.sent.push(messages);
      const usage = usageOf(JSON.stringify(messages).length, state.billed.at(-1));
      state.billed.push(usage);
      const request = hasRequests ? requests.record(messages, state.next) : undefined;
      for (const line of request?.lines ?? []) state.lines.push({ ...common(), ...line });
      const id = `msg_${sessionId}_${state.next}`;
      const blocks: Block[] = [
        { type: "thinking", thinking: `about ${text}`, signature: "c2lnbmVk" },
        { type: "text", text },
        ...callIds.map((call) => ({ type: "tool_use", id: call, name: "Read", input: { file_path: `${call}.ts` } })),
      ];
      for (const [index, block] of blocks.entries()) {
        // While it is streamed, an answer has not all of its output yet.
        const output_tokens = index < blocks.length - 1 ? 1 : usage.output_tokens;
        const message = { id, role: "assistant", model: "claude-sonnet-4-5", content: [block] };
        const fields = { message: { ...message, usage: { ...usage, output_tokens } }, requestRef: request?.id };
        state.calls.set(String(block.id), add({ type: "assistant", ...fields }));
      }
      hear("assistant", ...blocks);
      state.lines.push({ type: "last-prompt", lastPrompt: text, leafUuid: state.leaf, sessionId });
    },
    results(...callIds) {
      // Each result follows the line of its own call, in the order in which the tools finish.
      for (const call of callIds.toReversed()) {
        const block = { type: "tool_result", tool_use_id: call, content: `text of ${call}` };
        add({ type: "user", message: { role: "user", content: [block] } }, state.calls.get(call));
        hear("user", block);
      }
      remind();
    },
    compacts(summary) {
      const kept = state.lines.filter((line) => line.type === "assistant").at(-1);
      const answer = state.history.at(-1) as Message;
      const uuids = state.lines.filter((line) => isSameAnswer(line, kept)).map(({ uuid }) => uuid);
      const logicalParentUuid = state.leaf;
      state.leaf = undefined;
      const compactMetadata = { trigger: "auto", preservedMessages: { uuids } };
      add({ type: "system", subtype: "compact_boundary", logicalParentUuid, compactMetadata });
      add({ type: "user", isCompactSummary: true, message: { role: "user", content: summary } });
      state.history = [{ role: "user", content: [{ type: "text", text: summary }] }, answer];
      requests = createRequestRecorder(sessionId);
    },
    rewinds(leaf) {
      state.leaf = leaf;
      state.history = state.histories.get(leaf) ?? [];
      requests = createRequestRecorder(sessionId);
    },
    fork(forkId) {
      const lines = state.lines.filter(({ type }) => !String(type).startsWith("api-request"));
      const copied = { ...state, lines: lines.map((line) => ({ ...line, sessionId: forkId })), sent: [], billed: [] };
      return recorderOf({ ...options, sessionId: forkId }, copied);
    },
  };
}

function isSameAnswer(line: Block, other: Block | undefined): boolean {
  const idOf = (each: Block | undefined) => (Object(each?.message) as { id?: unknown }).id;
  return line.type === "assistant" && idOf(line) === idOf(other);
}

/** Records requests: each names the previous one, and what follows the messages that they share. */
function createRequestRecorder(sessionId: string) {
  const known = new Set<string>();
  let last: { readonly id: string; readonly messages: readonly Message[] } | undefined;
  return {
    record(messages: readonly Message[], number: number): { readonly id: string; readonly lines: readonly Block[] } {
      const id = `request-${sessionId}-${number}`;
      const before = last?.messages ?? [];
      const changed = before.findIndex((message, at) => message !== messages[at]);
      const keep = changed < 0 ? before.length : changed;
      const tail = messages.slice(keep);
      // An answer is found by its own lines.
      const blobs = tail.filter((message) => message.role === "user" && !known.has(hashOf(message)));
      const isFirst = last === undefined;
      const base = isFirst ? {} : { base: last?.id };
      for (const message of blobs) known.add(hashOf(message));
      last = { id, messages };
      return {
        id,
        lines: [
          ...(isFirst ? [{ type: "api-request-shape", shapeHash: "shape", shape: { system, tools } }] : []),
          ...blobs.map((message) => ({ type: "api-request-blob", hash: hashOf(message), message })),
          { type: "api-request", id, shapeHash: "shape", ...base, keep, tail: tail.map(hashOf) },
        ],
      };
    },
  };
}

const system = [{ type: "text", text: "You are an agent that edits code." }];
const tools = [{ name: "Read", description: "Reads a file.", input_schema: { type: "object", properties: {} } }];

/** The first call writes everything. Each later one reads what the previous one left, and writes what is new. */
function usageOf(size: number, before: Usage | undefined): Usage {
  const left = before === undefined ? 0 : before.cache_read_input_tokens + before.cache_creation_input_tokens;
  const read = Math.min(left, size);
  return {
    input_tokens: 3,
    cache_read_input_tokens: read,
    cache_creation_input_tokens: size - read,
    output_tokens: 20,
  };
}

function hashOf(message: Message): string {
  return createHash("sha256").update(sorted(message)).digest("hex");
}

function sorted(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(sorted).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const entries = Object.entries(value).toSorted(([first], [second]) => (first < second ? -1 : 1));
  return `{${entries.map(([name, each]) => `${JSON.stringify(name)}:${sorted(each)}`).join(",")}}`;
}
