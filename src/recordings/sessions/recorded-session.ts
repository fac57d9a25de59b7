/** A session as a reader returns it: the recorded messages without repairs, and notes on what was left out. */

import { ContextError } from "../../core/errors.ts";
import type { FormatName } from "../../core/messages/index.ts";
import { countNoun } from "../../core/text/index.ts";
import type { UsageRecord } from "./recorded-usage.ts";
import type { Agent } from "./session-facts.ts";

/** A part of a session in which each request starts with the previous one. A compaction, a rewind or an edit starts
 *  the next stretch. */
export interface RecordedStretch {
  readonly messages: readonly object[];
  /** The index from which assistant messages answer requests of this stretch. Earlier answers belong to an earlier
   *  stretch or to another file. 0 if absent. */
  readonly answersFrom?: number | undefined;
  /** What the request had in addition to its messages. */
  readonly system?: unknown;
  readonly tools?: readonly object[] | undefined;
  /** The time of each message in milliseconds since 1970, undefined if it was not recorded. Absent if no time was
   *  recorded. */
  readonly times?: readonly (number | undefined)[] | undefined;
  /** The id of each answer, undefined for other messages. A copy of a session has the same ids. Absent if no id was
   *  recorded. */
  readonly answerIds?: readonly (string | undefined)[] | undefined;
}

/** Has the messages of the last stretch, which the session would continue. */
export interface RecordedSession extends RecordedStretch {
  readonly file: string;
  readonly source: SessionSource;
  /** Absent if only the messages can show it. */
  readonly format?: FormatName | undefined;
  /** The first model that answered. */
  readonly model?: string | undefined;
  /** The stretches before the last one, in order. */
  readonly earlier?: readonly RecordedStretch[] | undefined;
  /** What the provider reported for each answer. */
  readonly usage?: readonly UsageRecord[] | undefined;
  /** What a reader left out or repaired, one sentence each. */
  readonly notes: readonly string[];
}

export type SessionSource = Agent | "transcript" | "request" | "messages";

/** Collects messages with their times, and counts what is left out for the notes. */
export interface SessionDraft {
  /** The number of messages in the current stretch. */
  readonly length: number;
  add(message: object, facts?: MessageFacts): void;
  /** Starts a new stretch with the first `kept` messages of the current one. */
  branch(kept: number): void;
  /** Answers so far were counted in an earlier stretch. */
  skipAnswers(): void;
  /** Continues with the messages of a request. Starts a new stretch unless the request only adds to the current one.
   *  Messages are compared by identity. */
  request(
    messages: readonly object[],
    facts?: Pick<RecordedStretch, "system" | "tools"> & {
      /** How many messages at the start are known to be those of the current stretch. They are not compared.
       *  @default 0 */
      readonly known?: number | undefined;
      readonly time?: number | undefined;
    },
  ): void;
  /** Counts why stretches start, for the notes. */
  count(reason: "compaction" | "rewind"): void;
  /** Adds what a line reports about the tokens of an answer, if it does. */
  report(usage: UsageRecord | undefined): void;
  leaveOut(...what: LeftOut): void;
  note(sentence: string): void;
  /** The model is that of the first usage unless it is given. */
  finish(
    facts: Omit<RecordedSession, "messages" | "times" | "answerIds" | "earlier" | "usage" | "notes">,
  ): RecordedSession;
}

interface MessageFacts {
  readonly time?: number | undefined;
  readonly answerId?: string | undefined;
}

/** A noun in the singular, and words that follow it for any number. */
export type LeftOut = readonly [noun: string, rest?: string];

export function createSessionDraft(): SessionDraft {
  let stretch: DraftStretch = { entries: [], answersFrom: 0 };
  const earlier: DraftStretch[] = [];
  const leftOut = new Map<string, { readonly what: LeftOut; readonly count: number }>();
  const notes: string[] = [];
  const counts = { compaction: 0, rewind: 0 };
  const usage: UsageRecord[] = [];
  let [own, repeated] = [0, 0];
  const push = (entry: DraftStretch["entries"][number]): void => {
    own++;
    stretch.entries.push(entry);
  };
  const start = (next: DraftStretch): void => {
    if (stretch.entries.length > stretch.answersFrom) earlier.push(stretch);
    stretch = next;
    repeat(next.entries.length);
  };
  const repeat = (count: number): void => {
    repeated += count;
    if (repeated > Math.max(maxRepeated, maxRepeats * own)) refuseRepeats(earlier.length);
  };
  return {
    get length() {
      return stretch.entries.length;
    },
    add(message, facts = {}) {
      push({ message, ...facts });
    },
    branch(kept) {
      const { system, tools } = stretch;
      start({ entries: stretch.entries.slice(0, kept), answersFrom: kept, system, tools });
    },
    skipAnswers() {
      stretch.answersFrom = stretch.entries.length;
      own -= stretch.answersFrom;
      repeat(stretch.answersFrom);
    },
    request(messages, { known = 0, time, system, tools } = {}) {
      const { entries } = stretch;
      let same = known;
      while (same < entries.length && entries[same]?.message === messages[same]) same++;
      const isFresh = entries.length === 0;
      const isMore =
        same === entries.length &&
        !messages.slice(same).some((each) => (each as { readonly role?: unknown }).role === "assistant");
      const isSameShape = isFresh || (stretch.system === system && stretch.tools === tools);
      if (isFresh || !isMore || !isSameShape) {
        start({ entries: entries.slice(0, same), answersFrom: messages.length, system, tools });
      }
      for (const message of messages.slice(same)) push({ message, time });
    },
    count(reason) {
      counts[reason]++;
    },
    report(record) {
      if (record !== undefined) usage.push(record);
    },
    leaveOut(...what) {
      const key = what.join(" ");
      leftOut.set(key, { what, count: (leftOut.get(key)?.count ?? 0) + 1 });
    },
    note(sentence) {
      notes.push(sentence);
    },
    finish(facts) {
      const model = facts.model ?? usage.find((record) => record.model !== undefined)?.model;
      const before = earlier.map(finishStretch);
      return {
        ...facts,
        ...(model !== undefined && { model }),
        ...finishStretch(stretch),
        ...(before.length > 0 && { earlier: before }),
        ...(usage.length > 0 && { usage: usage.map((record) => ({ model, ...record })) }),
        notes: [...notes, ...describeCounts(counts), ...describeLeftOut([...leftOut.values()])],
      };
    },
  };
}

/** Each stretch is prepared and replayed as a whole history. A small file can have thousands of rewinds of thousands of
 *  messages, which would take hours; people's sessions have far fewer. */
const maxRepeated = 100_000;
/** How often a long session may be repeated as a whole. */
const maxRepeats = 10;

function refuseRepeats(stretches: number): never {
  const problem = `its first ${stretches} rewinds and edits repeat more than ${maxRepeated} messages`;
  throw new ContextError("invalid_message", `${problem}, which is too many to replay`);
}

interface DraftStretch {
  readonly entries: (MessageFacts & { readonly message: object })[];
  answersFrom: number;
  readonly system?: unknown;
  readonly tools?: readonly object[] | undefined;
}

function finishStretch({ entries, answersFrom, system, tools }: DraftStretch): RecordedStretch {
  const times = entries.map(({ time }) => time);
  const answerIds = entries.map(({ answerId }) => answerId);
  return {
    messages: entries.map(({ message }) => message),
    ...(answersFrom > 0 && { answersFrom }),
    ...(system !== undefined && { system }),
    ...(tools !== undefined && { tools }),
    ...(times.some((time) => time !== undefined) && { times }),
    ...(answerIds.some((id) => id !== undefined) && { answerIds }),
  };
}

/** Returns the time of an ISO 8601 text or of a number of milliseconds. */
export function readTime(value: unknown): number | undefined {
  const time = typeof value === "string" ? Date.parse(value) : value;
  return typeof time === "number" && Number.isFinite(time) ? time : undefined;
}

/** Names a line of the program's own by its type. */
export function nameLine(type: unknown): LeftOut {
  return typeof type === "string" ? [`${type} line`] : ["line", "without a type"];
}

function describeCounts({ compaction, rewind }: { readonly compaction: number; readonly rewind: number }): string[] {
  return [
    ...(compaction > 0 ? [`compactions: ${compaction}; the requests after each start with its summary`] : []),
    ...(rewind > 0 ? [`rewinds: ${rewind}; each is replayed as a branch of its own`] : []),
  ];
}

function describeLeftOut(all: readonly { readonly what: LeftOut; readonly count: number }[]): string[] {
  if (all.length === 0) return [];
  const sorted = all.toSorted((left, right) => (left.what.join(" ") < right.what.join(" ") ? -1 : 1));
  const kinds = sorted.map(({ what: [noun, rest], count }) => {
    const named = countNoun(count, noun);
    return rest === undefined ? named : `${named} ${rest}`;
  });
  return [`left out: ${kinds.join(", ")}`];
}

/** One line of a JSON Lines file. */
export interface JsonLine {
  readonly value: unknown;
  /** The line number, from 1. */
  readonly line: number;
}

/** Finds answers that another file has too: a fork is often a copy of its session. */
export interface CopyFinder {
  /** Returns the session without requests for answers that earlier sessions have, and the number of these answers. */
  withoutCopies(session: RecordedSession): { readonly session: RecordedSession; readonly copied: number };
}

export function createCopyFinder(): CopyFinder {
  const seen = new Set<string>();
  return {
    withoutCopies(session) {
      const own: string[] = [];
      let copied = 0;
      const withoutCopies = <Stretch extends RecordedStretch>(stretch: Stretch): Stretch => {
        const { answerIds = [], answersFrom = 0, messages } = stretch;
        const isOwn = (id: string | undefined, index: number): boolean =>
          index >= answersFrom && id !== undefined && !seen.has(id);
        const first = answerIds.findIndex(isOwn);
        const from = first < 0 ? messages.length : first;
        const copies = answerIds.slice(answersFrom, from).filter((id) => id !== undefined && seen.has(id));
        for (const id of answerIds) if (id !== undefined) own.push(id);
        if (copies.length === 0) return stretch;
        copied += copies.length;
        return { ...stretch, answersFrom: from };
      };
      const earlier = session.earlier?.map(withoutCopies);
      const last = withoutCopies(session);
      for (const id of own) seen.add(id);
      return { session: copied === 0 ? session : { ...last, ...(earlier && { earlier }) }, copied };
    },
  };
}
