/** Transcripts as Claude Code writes them, with answers of a known price. */
import { appendFileSync, mkdirSync, utimesSync } from "node:fs";
import { dirname, join } from "node:path";

export interface AnswerLine {
  readonly id: string;
  readonly request?: string;
  readonly model?: string;
  readonly time?: Date;
  readonly usage?: object;
  readonly session?: string;
}

/** By default an answer with 100,000 tokens of input, which costs 30 cents. */
export function answerLine({ id, request = `req_${id}`, model = "claude-sonnet-4-5", ...rest }: AnswerLine): string {
  const { time = new Date(), usage = { input_tokens: 100_000, output_tokens: 0 }, session = "s1" } = rest;
  const message = { id, type: "message", role: "assistant", model, content: [{ type: "text", text: "…" }], usage };
  const line = { type: "assistant", uuid: `${id} ${Math.random()}`, sessionId: session, requestId: request, message };
  return `${JSON.stringify({ ...line, timestamp: time.toISOString() })}\n`;
}

export interface Transcripts {
  /** The transcript of a session. */
  file(session?: string): string;
  add(session: string, text: string): void;
  addToAgent(session: string, agent: string, text: string): void;
  /** Makes a transcript look as if it was last written then. */
  age(session: string, time: Date): void;
}

/** `place` is the client's own folder in the home directory. */
export function createTranscripts(home: string, place = ".claude"): Transcripts {
  const folder = join(home, place, "projects/-work");
  const file = (session = "s1"): string => join(folder, `${session}.jsonl`);
  const append = (path: string, text: string): void => {
    mkdirSync(dirname(path), { recursive: true });
    appendFileSync(path, text);
  };
  return {
    file,
    add: (session, text) => append(file(session), text),
    addToAgent: (session, agent, text) => append(join(folder, session, "subagents", `agent-${agent}.jsonl`), text),
    age: (session, time) => utimesSync(file(session), time, time),
  };
}
