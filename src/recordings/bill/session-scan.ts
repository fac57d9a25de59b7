/** Scans a file of JSON Lines for the facts of its session, line by line. Holds no text. */

import { type Fields, isPlainObject } from "../../core/text/index.ts";
import { kindOfLines } from "../sessions/index.ts";
import { isOpencodeExport } from "../sessions/opencode-session.ts";
import { claudeCodeFacts } from "./claude-code-facts.ts";
import { readCodexLine } from "./codex-facts.ts";
import { type OpencodeExport, readGeminiLine, readOpencodeFacts, readPiLine } from "./other-facts.ts";
import {
  type Agent,
  createFacts,
  createFactsDraft,
  type DraftState,
  type FactsDraft,
  type SessionFacts,
} from "./session-facts.ts";

/** What is kept of a file to continue its scan. Plain JSON. */
export interface ScanState {
  readonly facts: SessionFacts | undefined;
  readonly state?: DraftState | undefined;
}

export interface SessionScan {
  /** Reads one line without its line break. */
  line(text: string): void;
  /** True if a line continues one that the scan does not know, so that the whole file has to be read. */
  readonly isLost: boolean;
  /** Undefined until a line shows which program wrote the file. */
  readonly facts: SessionFacts | undefined;
  finish(): ScanState;
}

export function createSessionScan(earlier?: ScanState): SessionScan {
  const isContinued = earlier?.facts !== undefined;
  let draft = earlier?.facts && createFactsDraft(earlier.facts, earlier.state);
  let isLost = false;
  let damaged = 0;
  const waiting: Fields[] = [];
  const read = (value: Fields, known: FactsDraft): void => {
    if (!readers[known.facts.agent](value, known, isContinued)) isLost = true;
  };
  return {
    get isLost() {
      return isLost;
    },
    get facts() {
      return draft?.facts;
    },
    line(text) {
      if (text === "" || claudeCodeFacts.isSkipped(text)) return;
      const value = parse(text);
      if (value === undefined) {
        if (draft !== undefined) draft.facts.damaged++;
        else damaged++;
        return;
      }
      if (draft !== undefined) {
        read(value, draft);
        return;
      }
      if (waiting.length < mostWaiting) waiting.push(value);
      const agent = agentOf(value);
      if (agent === undefined) return;
      draft = createFactsDraft({ ...createFacts(agent), damaged });
      for (const each of waiting.splice(0)) read(each, draft);
    },
    finish() {
      if (draft === undefined) return { facts: undefined };
      if (draft.facts.agent === "claude-code") claudeCodeFacts.shortenState(draft);
      return { facts: draft.facts, state: draft.state };
    },
  };
}

/** Returns the facts of a whole file, or undefined if no known program wrote it. */
export function factsOfText(text: string): SessionFacts | undefined {
  const scan = createSessionScan();
  const whole = parse(text);
  if (isOpencodeExport(whole)) return readOpencodeFacts(whole as unknown as OpencodeExport);
  for (const line of whole === undefined ? text.split("\n") : [JSON.stringify(whole)]) scan.line(line);
  return scan.finish().facts;
}

/** Lines before the first that shows the program. */
const mostWaiting = 50;

type LineReader = (value: Fields, draft: FactsDraft, isContinued: boolean) => boolean;

function always(reader: (value: Fields, draft: FactsDraft) => void): LineReader {
  return (value, draft) => {
    reader(value, draft);
    return true;
  };
}

const readers: Readonly<Record<Agent, LineReader>> = {
  "claude-code": claudeCodeFacts.readLine,
  codex: always(readCodexLine),
  "gemini-cli": always(readGeminiLine),
  pi: always(readPiLine),
  opencode: () => true,
};

function agentOf(value: Fields): Agent | undefined {
  const kind = kindOfLines([value]);
  return kind === "messages" || kind === "requests" ? undefined : kind;
}

function parse(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isPlainObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
