/** What a bill needs to know about a recorded session: its calls, what came before each, and the sizes of tool results.
 *  No texts. Facts and the state of a scan are plain JSON, so that a caller can keep them and continue when the file has
 *  grown. */

import { stepsOfUsage, type Tariff, tariffOfUsage, type UsageStep } from "../../core/billing/index.ts";
import type { UsageRecord } from "./recorded-usage.ts";

/** A program whose sessions are read. */
export type Agent = "claude-code" | "codex" | "opencode" | "gemini-cli" | "pi" | "copilot-cli" | "cline" | "qwen-code";

export interface SessionFacts {
  readonly agent: Agent;
  /** The program's id of the session. */
  session: string;
  /** The folder in which the program worked. */
  project: string;
  /** The kind of sub-agent, if the file is of one. */
  subAgent?: string | undefined;
  /** In the order of the file. */
  readonly calls: CallFact[];
  readonly results: ResultFact[];
  /** The program's own sums over the session, by model. */
  sums?: Readonly<Record<string, object>> | undefined;
  /** Lines that are not JSON. */
  damaged: number;
  /** What the program offered to the model, as far as it is recorded. */
  offer?: Offer | undefined;
}

/** Names that the model could use, and those that it used. */
export interface Offer {
  /** The characters of each part of the first request that is recorded. */
  readonly chars: Record<string, number>;
  /** Tools whose definitions are loaded when they are searched for. */
  readonly tools: string[];
  readonly skills: string[];
  readonly agents: string[];
  readonly servers: string[];
  /** Skills and agents. The results name the tools. */
  readonly used: string[];
}

/** One request and what its answer reports. */
export interface CallFact extends UsageStep {
  /** Copies of a session have the same ids. */
  readonly id: string;
  readonly model: string;
  /** When the answer came, in milliseconds since 1970. */
  readonly time: number;
  /** When the request was sent, as far as the recording shows it. */
  readonly start: number;
  /** The conversation of the session: 0 is the main one, others are sub-agents. */
  readonly chain: number;
  /** The index of the call before it in the same conversation, or -1. */
  readonly previous: number;
  /** What happened since the previous call. */
  readonly marks: readonly Mark[];
  /** The last call whose history this one continues, if it does not continue all of it. -1: none of it. */
  readonly back?: number | undefined;
  /** The tool whose results are the largest part of what is new. Absent if a person asked. */
  readonly tool?: string | undefined;
  /** The characters of everything that is new since the previous call. */
  readonly added: number;
  /** Tokens of compactions that the provider made during the call. */
  readonly extra?: readonly UsageStep[] | undefined;
  /** What made the call cost more than the list price. */
  readonly tariff?: Tariff | undefined;
  /** Why the provider says that it found no cache entry. */
  readonly diagnosis?: string | undefined;
  /** The characters of the answer that can be read, if the reported output is too small for them. */
  readonly unreported?: number | undefined;
}

/** `edited`: the request does not start with the previous one. `shape`: tools, system text or settings changed.
 *  `restart`: the program was started again. `thinking`, `effort`: that setting changed. `tool search`: deferred tools
 *  were looked up. `blocks`: more than 20 blocks since the previous call, which is how far a provider looks back. */
export type Mark =
  | "compaction"
  | "rewound"
  | "resumed"
  | "edited"
  | "shape"
  | "restart"
  | "thinking"
  | "effort"
  | "tool search"
  | "blocks";

/** A tool result: when it was first sent, and how large it is. */
export interface ResultFact {
  /** The index of the first call that sent it. */
  readonly call: number;
  readonly tool: string;
  /** The file that the tool read or wrote. */
  readonly file?: string | undefined;
  readonly chars: number;
}

/** Collects the facts of one session. The readers of each program call it line by line. */
export interface FactsDraft {
  readonly facts: SessionFacts;
  readonly state: DraftState;
  /** Whether the scan started later in the file. */
  readonly isContinued: boolean;
  /** Set if nobody asks for the facts. */
  isIgnored?: boolean;
  /** Set if a line continues one that is not known, because the scan started later in the file. */
  isLost: boolean;
  /** The next request of a conversation has this text. */
  input(chain: string, text: TextFact): void;
  /** Reports an answer. Several lines may report the same one. Returns the index of its call. */
  answer(
    chain: string,
    answer: Pick<UsageRecord, "id" | "model" | "time" | "usage"> & Pick<CallFact, "diagnosis">,
  ): number;
  /** Something happens before the next call. `back` names the call whose history it continues. */
  mark(chain: string, mark: Mark, back?: number): void;
  /** The index of the last call, or -1. */
  last(chain: string): number;
}

export interface TextFact {
  readonly chars: number;
  readonly time?: number | undefined;
  /** Set for a tool result. */
  readonly tool?: string | undefined;
  readonly file?: string | undefined;
}

/** The name of the main conversation. */
export const mainChain = "main";

/** What the next lines depend on. Plain JSON. */
export interface DraftState {
  chains: Record<string, ChainState>;
  /** Tool calls without a result. */
  tools: Record<string, { readonly name: string; readonly file?: string | undefined }>;
  /** What a program's reader keeps for itself. */
  own: Record<string, unknown>;
}

interface ChainState {
  readonly number: number;
  last: number;
  /** What the next call adds. */
  pending: {
    chars: number;
    start?: number | undefined;
    marks: Mark[];
    back?: number | undefined;
    results: { readonly tool: string; readonly file?: string | undefined; readonly chars: number }[];
  };
}

export function createFacts(agent: Agent): SessionFacts {
  return { agent, session: "", project: "", calls: [], results: [], damaged: 0 };
}

export function createFactsDraft(facts: SessionFacts, earlier?: DraftState): FactsDraft {
  const state: DraftState = earlier ?? { chains: {}, tools: {}, own: {} };
  const indexes = new Map<string, number>();
  for (const { id } of facts.calls) indexes.set(id, indexes.size);
  const openChain = (key: string): ChainState => {
    const number = Object.keys(state.chains).length;
    state.chains[key] ??= { number, last: -1, pending: { chars: 0, marks: [], results: [] } };
    return state.chains[key];
  };
  return {
    facts,
    state,
    isContinued: earlier !== undefined,
    isLost: false,
    input(key, { chars, time, tool, file }) {
      const { pending } = openChain(key);
      pending.chars += chars;
      if (time !== undefined) pending.start = Math.max(pending.start ?? 0, time);
      if (tool !== undefined) pending.results.push({ tool, chars, ...(file !== undefined && { file }) });
    },
    answer(key, answer) {
      const [tokens, ...extra] = stepsOfUsage(answer.usage);
      const known = indexes.get(answer.id);
      if (known !== undefined) {
        // While an answer is streamed, early lines report only a part of its output.
        const call = facts.calls[known] as CallFact;
        if (countTokens(tokens) >= countTokens(call)) facts.calls[known] = { ...call, ...tokens };
        return known;
      }
      const chain = openChain(key);
      if (countTokens(tokens) === 0) return chain.last;
      const index = facts.calls.length;
      facts.calls.push({ ...describeCall(answer, chain), ...tokens, ...(extra.length > 0 && { extra }) });
      for (const result of chain.pending.results) facts.results.push({ call: index, ...result });
      indexes.set(answer.id, index);
      chain.last = index;
      chain.pending = { chars: 0, marks: [], results: [] };
      return index;
    },
    mark(key, mark, back) {
      const { pending } = openChain(key);
      if (!pending.marks.includes(mark)) pending.marks.push(mark);
      if (back !== undefined) pending.back = Math.min(back, pending.back ?? back);
    },
    last: (key) => state.chains[key]?.last ?? -1,
  };
}

function describeCall(
  { id, model = "unknown", time, usage, diagnosis }: Parameters<FactsDraft["answer"]>[1],
  { number, last, pending }: ChainState,
): Omit<CallFact, keyof UsageStep> {
  const { start, marks, back, chars, results } = pending;
  const tariff = tariffOfUsage(usage);
  return {
    id,
    model,
    time: time ?? start ?? 0,
    start: start ?? time ?? 0,
    chain: number,
    previous: last,
    marks,
    added: chars,
    ...(back !== undefined && { back }),
    ...(diagnosis !== undefined && { diagnosis }),
    ...(results.length > 0 && { tool: results.reduce((best, each) => (each.chars > best.chars ? each : best)).tool }),
    // Nearly every answer reports the usual speed and region. They are not kept.
    ...((tariff.speed === "fast" || tariff.inferenceGeo === "us") && { tariff }),
  };
}

function countTokens({ read, write5m, write1h, uncached, output }: UsageStep): number {
  return read + write5m + write1h + uncached + output;
}

/** Counts the characters that a content sends. An image counts as a fixed number, because its data is no text. */
export function countChars(content: unknown): number {
  if (typeof content === "string") return content.length;
  if (Array.isArray(content)) return content.reduce((sum: number, each) => sum + countChars(each), 0);
  if (typeof content !== "object" || content === null) return 0;
  const block = content as Record<string, unknown>;
  if (block.type === "image" || block.type === "input_image" || block.inlineData !== undefined) return imageChars;
  let sum = 0;
  for (const name in block) if (textFields.has(name)) sum += countChars(block[name]);
  return sum;
}

/** About 1,500 tokens. */
const imageChars = 6000;
const textFields: ReadonlySet<string> = new Set([
  ...["text", "content", "thinking", "input", "output", "arguments", "summary", "encrypted_content", "signature"],
  ...["functionResponse", "functionCall", "response", "args", "file_path", "command", "old_string", "new_string"],
  ...["error", "result"],
]);

/** Returns the file that a tool call names. */
export function findFile(input: unknown): string | undefined {
  const fields = Object(input) as Record<string, unknown>;
  for (const name of fileFields) if (typeof fields[name] === "string") return fields[name];
  return undefined;
}

const fileFields = ["file_path", "filePath", "path", "notebook_path", "absolute_path"];
