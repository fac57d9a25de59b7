/** Scans JSON Lines for the facts of their session, line by line. Holds no text. */

import { type Fields, isPlainObject } from "../../core/text/index.ts";
import type { RecordedSession, SessionDraft } from "./recorded-session.ts";
import {
  type Agent,
  createFacts,
  createFactsDraft,
  type DraftState,
  type FactsDraft,
  type SessionFacts,
} from "./session-facts.ts";

/** Reads the recordings of one client. */
export interface ClientReader {
  /** opencode records no lines. */
  readonly agent: Exclude<Agent, "opencode">;
  /** Whether this program writes such a line. */
  isLine(value: unknown): boolean;
  /** Returns whether only the program itself needs a line. A scan for facts skips such lines before they are parsed. */
  isSkipped?(line: string): boolean;
  /** Whether lines of other kinds may come before the first line of this program. */
  readonly mayStartLater?: boolean;
  /** Starts to read a session. Without `requests`, it finds only facts and keeps no text. A reader need not find facts if
   *  `draft.isIgnored`. */
  open(draft: FactsDraft, requests?: SessionDraft): LineReader;
}

export interface LineReader {
  /** Reads the next line. Throws with its place if a request cannot be made of it. */
  read(value: unknown, place?: { readonly file: string; readonly line: number }): void;
  /** Keeps only what a continued scan needs. */
  shortenState?(): void;
  /** Adds the requests that only the end of the recording shows. Returns what requests had besides messages. */
  finish?(): Pick<RecordedSession, "model" | "system" | "tools">;
}

/** What is kept of a file to continue its scan. Plain JSON. */
export interface ScanState {
  /** Undefined until a line shows which program wrote the file. */
  readonly facts: SessionFacts | undefined;
  readonly state?: DraftState | undefined;
  /** Lines that are not JSON and may report the tokens of an answer. */
  readonly lostUsage: number;
}

export interface SessionScan {
  /** Reads one line without its line break. `isCut` says that the text is only the start of a line that is too long. */
  line(text: string, isCut?: boolean): void;
  /** True if a line continues one that the scan does not know, so that the whole file has to be read. */
  readonly isLost: boolean;
  finish(): ScanState;
}

export function createSessionScan(readers: readonly ClientReader[], earlier?: ScanState): SessionScan {
  let draft: FactsDraft | undefined = earlier?.facts && createFactsDraft(earlier.facts, earlier.state);
  let reader = draft && readers.find(({ agent }) => agent === earlier?.facts?.agent)?.open(draft);
  let damaged = 0;
  let lostUsage = earlier?.lostUsage ?? 0;
  const waiting: Fields[] = [];
  const start = (value: Fields): void => {
    if (waiting.length < maxWaiting) waiting.push(value);
    const client = readers.find(({ isLine }) => isLine(value));
    if (client === undefined) return;
    draft = createFactsDraft({ ...createFacts(client.agent), damaged });
    reader = client.open(draft);
    for (const each of waiting.splice(0)) reader.read(each);
  };
  return {
    get isLost() {
      return draft?.isLost ?? false;
    },
    line(text, isCut = false) {
      if (text === "" || readers.some(({ isSkipped }) => isSkipped?.(text))) return;
      const value = parseFields(text);
      if (value === undefined) {
        if (isCut || text.includes('"usage"')) lostUsage++;
        if (draft === undefined) damaged++;
        else draft.facts.damaged++;
      } else if (draft === undefined) start(value);
      else reader?.read(value);
    },
    finish() {
      reader?.shortenState?.();
      return { facts: draft?.facts, state: draft?.state, lostUsage };
    },
  };
}

/** Lines before the first that shows the program. */
const maxWaiting = 50;

/** Returns the object that a text is as JSON, or undefined. */
export function parseFields(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isPlainObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
