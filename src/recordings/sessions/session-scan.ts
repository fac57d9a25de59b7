/** Scans JSON Lines for the facts of their session, line by line. Holds no text. */

import { type Fields, isPlainObject } from "../../core/text/index.ts";
import {
  createFacts,
  createFactsDraft,
  type DraftState,
  type FactsDraft,
  type FactsReader,
  type SessionFacts,
} from "./session-facts.ts";

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

export function createSessionScan(readers: readonly FactsReader[], earlier?: ScanState): SessionScan {
  let draft: FactsDraft | undefined = earlier?.facts && createFactsDraft(earlier.facts, earlier.state);
  let reader = readers.find(({ agent }) => agent === earlier?.facts?.agent);
  let damaged = 0;
  let lostUsage = earlier?.lostUsage ?? 0;
  const waiting: Fields[] = [];
  const start = (value: Fields): void => {
    if (waiting.length < mostWaiting) waiting.push(value);
    reader = readers.find(({ isLine }) => isLine(value));
    if (reader === undefined) return;
    draft = createFactsDraft({ ...createFacts(reader.agent), damaged });
    for (const each of waiting.splice(0)) reader.readLine(each, draft);
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
      else reader?.readLine(value, draft);
    },
    finish() {
      if (draft !== undefined) reader?.shortenState?.(draft);
      return { facts: draft?.facts, state: draft?.state, lostUsage };
    },
  };
}

/** Lines before the first that shows the program. */
const mostWaiting = 50;

/** Returns the object that a text is as JSON, or undefined. */
export function parseFields(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isPlainObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
