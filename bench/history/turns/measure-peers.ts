/** Time per turn of a history of 400 messages, ours and the peers', treated alike: once tokens are known to all beforehand, once
 *  everybody counts with the same counter as often as they do. */
import { type BenchSession, benchSession, messageBudget } from "../bench-session.ts";
import { createStopwatch, type Peer } from "../peers/peer.ts";
import { freshCounter, freshTrimmer, generateHistory, playTurns, timePerTurn } from "./histories.ts";

export interface PeerTurns {
  readonly messages: number;
  /** Ours. */
  readonly known: number;
  readonly counted: number;
  readonly peers: readonly PeerTime[];
}

/** Milliseconds a turn. */
export interface PeerTime {
  readonly name: string;
  readonly isRecounting: boolean;
  readonly known: number;
  /** Absent: it does not count. */
  readonly counted?: number | undefined;
}

const LENGTH = 400;
const WINDOW = 128_000;
const SEED = 401;

export async function measurePeerTurns(peers: readonly Peer[], rounds: number): Promise<PeerTurns> {
  const messages = generateHistory(SEED, LENGTH);
  const recorded = { file: "", source: "messages", format: "anthropic", messages, notes: [] } as const;
  const session = benchSession(recorded, await freshCounter());
  const times: PeerTime[] = [];
  for (const peer of peers) {
    const { name, isRecounting } = peer;
    const known = await timePerTurn(rounds, () => playPeer(peer, session));
    const counted = isRecounting ? await timePeerCounting(peer, session) : undefined;
    times.push({ name, isRecounting, known, counted });
  }
  const known = await timePerTurn(rounds, () => playOurs(session, { isKnown: true }));
  const counted = await timePerTurn(rounds, () => playOurs(session, { isKnown: false }));
  return { messages: LENGTH, known, counted, peers: times };
}

/** The last quarter of the turns, which have nearly all messages: several, so that an epoch's cost is spread over them. */
const isTimed = (length: number): boolean => length > 0.75 * LENGTH;

async function playOurs({ prepared }: BenchSession, { isKnown }: { isKnown: boolean }): Promise<number[]> {
  const counter = await freshCounter();
  if (isKnown) playTurns(await freshTrimmer(WINDOW, counter), prepared.messages, isTimed);
  return playTurns(await freshTrimmer(WINDOW, counter), prepared.messages, isTimed);
}

async function playPeer(peer: Peer, session: BenchSession): Promise<number[]> {
  const stopwatch = createStopwatch();
  const reduce = peer.open(session, { budget: messageBudget(session, WINDOW), stopwatch });
  const times: number[] = [];
  for (const length of session.prepared.calls.filter(isTimed)) {
    const before = stopwatch.elapsedMs;
    await reduce(session.prepared.messages.slice(0, length), { isCold: false });
    times.push(stopwatch.elapsedMs - before);
  }
  return times;
}

/** The last turn alone: one takes about a second. */
async function timePeerCounting(peer: Peer, session: BenchSession): Promise<number> {
  const stopwatch = createStopwatch();
  const counter = await freshCounter();
  const reduce = peer.open(session, { budget: messageBudget(session, WINDOW), stopwatch, counter });
  await reduce(session.prepared.messages.slice(0, session.prepared.calls.at(-1)), { isCold: false });
  return stopwatch.elapsedMs;
}
