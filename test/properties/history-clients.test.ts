/** Clients rewind, fork, edit and garble their histories. A trimmer that saw all of it sends what one would send that saw nothing but the
 *  last checkpoint, and on each branch what that branch decided. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  createTrimmer,
  policyNames,
  type Reduction,
  type Trimmer,
  type TrimmerOptions,
  type TrimStats,
} from "../../src/conversation/history/index.ts";
import { countMessages, type FormatName, formatNames } from "../../src/core/messages/index.ts";
import { createCounter } from "../../src/core/tokens/index.ts";
import { caseCount } from "../case-count.ts";
import { asRecorded, asSent, drawnSession } from "./drawn-sessions.ts";

const numRuns = caseCount({ few: 1, deep: 60, long: 300 });
const counter = await createCounter("estimate:claude-5");

/** What a client does before a call. Numbers are shares of what there is. */
interface Move {
  readonly kind: "grow" | "rewind" | "fork" | "return" | "edit" | "garble" | "reparse";
  readonly share: number;
}
const move: fc.Arbitrary<Move> = fc.record({
  kind: fc.constantFrom("grow", "grow", "grow", "rewind", "fork", "return", "edit", "garble", "reparse"),
  share: fc.double({ min: 0, max: 1, noNaN: true }),
});

const walk = fc.record({
  session: drawnSession,
  other: drawnSession,
  moves: fc.array(move, { minLength: 2, maxLength: 12 }),
  share: fc.double({ min: 0.05, max: 1, noNaN: true }),
  keep: fc.nat({ max: 6 }),
  isCareless: fc.boolean(),
});
type Walk = typeof walk extends fc.Arbitrary<infer Value> ? Value : never;

describe.each(policyNames)("%s", (policy) => {
  test.each(formatNames)(
    "decides alike whatever the client did before, in the %s format",
    {
      timeout: 30_000 + 500 * numRuns,
    },
    async (format) => {
      const check = async ({ session, other, moves, share, keep, isCareless }: Walk) => {
        const [messages, tail] = [session, other].map((each) => (isCareless ? asRecorded : asSent)(each, format));
        const client = createClient(messages!, tail!);
        const tokens = countMessages(messages!, counter, { format });
        const contextWindow = Math.ceil(1 + share * tokens);
        await follow(client, moves, { policy, format, keep, contextWindow, reserve: 0, counter });
      };
      await fc.assert(fc.asyncProperty(walk, check), { numRuns });
    },
  );
});

async function follow(client: Client, moves: readonly Move[], options: TrimmerOptions): Promise<void> {
  // With a record from the beginning, as the one that resumes has. Without one, turns that a move skips are replayed.
  const empty = await (await createTrimmer(options)).checkpoint();
  const trimmer = await createTrimmer({ ...options, checkpoint: empty });
  const calls: Call[] = [];
  for (const each of moves) {
    const checkpoint = reparse(await trimmer.checkpoint());
    const messages = client.move(each);
    if (each.kind === "garble") {
      expectRefusal(trimmer, messages, options.format);
      continue;
    }
    const reduction = trimmer.reduce({ messages });
    const fresh = await createTrimmer({ ...options, checkpoint });
    expect(shown(reduction)).toEqual(shown(fresh.reduce({ messages: reparse(messages) })));
    const { ledger } = await trimmer.checkpoint();
    expect(ledger).toEqual((await fresh.checkpoint()).ledger);
    expect(ledger.epochs.slice(0, checkpoint.ledger.epochs.length)).toEqual(checkpoint.ledger.epochs);
    const call = callOf(messages, reduction, ledger.epochs.at(-1)?.at.message);
    const alone = (await createTrimmer(options)).reduce({ messages: reparse(messages) });
    const isRfc = options.policy?.startsWith("rfc") === true;
    expectWhole(call, { alone, calls, isRfc });
    expectReturn(call, calls);
    // Where the RFC joins messages, their indexes are not those of the input.
    if (!isRfc || call.sent.length === call.input.length) expectBranch(call, calls);
    calls.push(call);
  }
}

/** What a call sent, message by message. */
interface Call {
  readonly input: readonly string[];
  readonly sent: readonly string[];
  readonly stats: TrimStats;
  /** The message at which it made an epoch. */
  readonly epochAt: number | undefined;
}

function callOf(messages: readonly object[], { messages: sent, stats, isEpoch }: Reduction, at?: number): Call {
  const texts = (list: readonly object[]) => list.map((message) => JSON.stringify(message));
  return { input: texts(messages), sent: texts(sent), stats, epochAt: isEpoch ? at : undefined };
}

interface Beside {
  /** What a trimmer sends that knows nothing else. */
  readonly alone: Reduction;
  readonly calls: readonly Call[];
  readonly isRfc: boolean;
}

/** A history that fits, and on which no epoch was decided, goes out as if there were no other. */
function expectWhole(call: Call, { alone, calls, isRfc }: Beside): void {
  const own = [...calls, call].filter(({ epochAt }) => epochAt !== undefined);
  if (own.some(({ input }) => isBeginning(input, call.input))) return;
  const { before, budget } = call.stats;
  if (!alone.isEpoch) expect(call.sent).toEqual(alone.messages.map((message) => JSON.stringify(message)));
  else if (!isRfc) expect(before).toBeGreaterThan(budget);
}

/** The same history goes out with the same bytes, unless an epoch was decided on it meanwhile. */
function expectReturn(call: Call, calls: readonly Call[]): void {
  const at = calls.findLastIndex(({ input }) => isBeginning(input, call.input) && isBeginning(call.input, input));
  const before = calls[at];
  if (before === undefined || [...calls.slice(at), call].some((other) => other !== before && holdsIn(other, call)))
    return;
  expect(call.sent).toEqual(before.sent);
}

/** What was sent on this branch is the beginning of what is sent, unless an epoch came between. */
function expectBranch(call: Call, calls: readonly Call[]): void {
  if (call.epochAt !== undefined) return;
  for (const [at, before] of calls.entries()) {
    if (!isBeginning(before.input, call.input)) continue;
    const isNew = (other: Call, index: number) => index > at || !holdsIn(other, before);
    if (calls.some((other, index) => holdsIn(other, call) && isNew(other, index))) continue;
    expect(call.sent.slice(0, before.sent.length)).toEqual(before.sent);
    expect(call.stats.boundary).toBeGreaterThanOrEqual(before.stats.boundary);
  }
}

/** Whether the epoch that one call made may be in force in another. */
function holdsIn({ input, epochAt }: Call, other: Call): boolean {
  return epochAt !== undefined && isBeginning(input.slice(0, epochAt + 1), other.input);
}

function isBeginning(beginning: readonly string[], whole: readonly string[]): boolean {
  return beginning.length <= whole.length && beginning.every((each, index) => each === whole[index]);
}

function expectRefusal(trimmer: Trimmer, messages: readonly object[], format: FormatName | undefined): void {
  const index = messages.indexOf(null as unknown as object);
  const path = `messages[${index}]`;
  const problem = { code: "invalid_message", message: expect.stringContaining(path) };
  expect(() => trimmer.reduce({ messages }), format).toThrow(expect.objectContaining(problem));
}

function shown(reduction: Reduction): object {
  return { ...reduction, messages: reduction.messages.map((message) => JSON.stringify(message)) };
}

interface Client {
  /** The messages of the next call. */
  move(move: Move): readonly object[];
}

/** A history, and how much of it there is yet. */
interface Branch {
  readonly future: readonly object[];
  readonly length: number;
}

function createClient(session: readonly object[], other: readonly object[]): Client {
  const left: Branch[] = [{ future: reparse(session), length: Math.min(4, session.length) }];
  return {
    move({ kind, share }) {
      const now = branches[kind]?.(left.at(-1)!, share, { left, other }) ?? left.at(-1)!;
      left.push(now);
      const messages = now.future.slice(0, now.length);
      if (kind === "edit" && now.length > 0) editInPlace(messages.at(-1 - upTo(share, Math.min(7, now.length - 1)))!);
      if (kind === "garble") messages.splice(upTo(share, now.length), 0, null as unknown as object);
      return messages;
    },
  };
}

/** Where the client goes on from. */
type Go = (now: Branch, share: number, past: { left: readonly Branch[]; other: readonly object[] }) => Branch;

const branches: Readonly<Partial<Record<Move["kind"], Go>>> = {
  grow: ({ future, length }, share) => ({ future, length: length + upTo(share, future.length - length) }),
  rewind: ({ future, length }, share) => ({ future, length: upTo(share, length) }),
  return: (_now, share, { left }) => left[upTo(share, left.length - 1)]!,
  reparse: ({ future, length }) => ({ future: reparse(future), length }),
  fork({ future, length }, share, { other }) {
    const at = upTo(share, length);
    const forked = [...future.slice(0, at), ...reparse(other.slice(at))];
    return { future: forked, length: Math.min(forked.length, length) };
  },
};

function upTo(share: number, most: number): number {
  return Math.round(share * most);
}

/** As clients do that complete an answer, or a result, while it comes in. */
function editInPlace(value: object): boolean {
  for (const [name, field] of Object.entries(value)) {
    if (typeof field === "string" && /^(text|content|thinking|output|value)$/.test(name)) {
      Object.assign(value, { [name]: `${field} and more` });
      return true;
    }
    if (typeof field === "object" && field !== null && editInPlace(field)) return true;
  }
  return false;
}

function reparse<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value)) as Value;
}
