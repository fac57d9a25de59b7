/** A session as a reader gives it: the messages as they were recorded, nothing mended, and notes on all that was left out. */
import type { FormatName } from "../../messages/index.ts";
import { countNoun } from "../../text/index.ts";

export interface RecordedSession {
  readonly file: string;
  readonly source: SessionSource;
  /** Absent where only the messages can tell. */
  readonly format?: FormatName | undefined;
  readonly messages: readonly object[];
  /** What the request held beside its messages. */
  readonly system?: unknown;
  readonly tools?: readonly object[] | undefined;
  /** The first model that answered. */
  readonly model?: string | undefined;
  /** For each message its time in ms since 1970, undefined where none was recorded. Absent: none at all. */
  readonly times?: readonly (number | undefined)[] | undefined;
  /** What a reader left out or mended, one sentence each. */
  readonly notes: readonly string[];
}

export const sessionSources = ["transcript", "claude-code", "codex", "request", "messages"] as const;
export type SessionSource = (typeof sessionSources)[number];

/** Collects messages with their times, and counts what is left out so that a note can tell of it. */
export interface SessionDraft {
  add(message: object, time: number | undefined): void;
  leaveOut(...what: LeftOut): void;
  note(sentence: string): void;
  finish(facts: Omit<RecordedSession, "messages" | "times" | "notes">): RecordedSession;
}

/** A noun in the singular, and what follows it whatever the number. */
export type LeftOut = readonly [noun: string, rest?: string];

export function createSessionDraft(): SessionDraft {
  const messages: object[] = [];
  const times: (number | undefined)[] = [];
  const leftOut = new Map<string, { readonly what: LeftOut; readonly count: number }>();
  const notes: string[] = [];
  return {
    add(message, time) {
      messages.push(message);
      times.push(time);
    },
    leaveOut(...what) {
      const key = what.join(" ");
      leftOut.set(key, { what, count: (leftOut.get(key)?.count ?? 0) + 1 });
    },
    note(sentence) {
      notes.push(sentence);
    },
    finish(facts) {
      const hasTimes = times.some((time) => time !== undefined);
      const all = leftOut.size > 0 ? [...notes, describeLeftOut([...leftOut.values()])] : notes;
      return { ...facts, messages, ...(hasTimes && { times }), notes: all };
    },
  };
}

/** The moment that an ISO 8601 text or a number of ms names. */
export function timeOf(value: unknown): number | undefined {
  const time = typeof value === "string" ? Date.parse(value) : value;
  return typeof time === "number" && Number.isFinite(time) ? time : undefined;
}

/** A line of the program's own, by its type. */
export function lineOfType(type: unknown): LeftOut {
  return typeof type === "string" ? [`${type} line`] : ["line", "without a type"];
}

function describeLeftOut(all: readonly { readonly what: LeftOut; readonly count: number }[]): string {
  const sorted = all.toSorted((left, right) => (left.what.join(" ") < right.what.join(" ") ? -1 : 1));
  const kinds = sorted.map(({ what: [noun, rest], count }) => {
    const named = countNoun(count, noun);
    return rest === undefined ? named : `${named} ${rest}`;
  });
  return `left out: ${kinds.join(", ")}`;
}
