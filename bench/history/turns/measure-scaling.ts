/** What a turn of a long history costs beside one of a shorter history, the messages being the same objects from turn to turn. */
import { freshTrimmer, generateHistory, generateLongHistory, type History, turnsOf } from "./histories.ts";

export interface Scaling {
  readonly short: TurnTime;
  readonly long: TurnTime;
  /** Time of a turn of the long history as a multiple of the shorter one's. */
  readonly ratio: number;
}

export interface TurnTime {
  /** The length of the history before the timed turns. */
  readonly messages: number;
  /** Of all turns. */
  readonly milliseconds: number;
  /** Of a turn that only appends. */
  readonly plain: number;
  /** Of a turn that trims. */
  readonly epoch: number;
  readonly epochs: number;
}

const WINDOW = 200_000;
/** Both have been trimmed before the timed turns end, so both have epochs among them. */
const SHORT = 400;
const LONG = 4_000;
const TAIL = 1_000;
const SYSTEM = "Read a file before you change it, and run the tests after a change.\n".repeat(400);

/** The same turns behind a short and behind a long history. */
export async function measureScaling(rounds: number): Promise<Scaling> {
  const tail = Array.from({ length: TAIL / 50 }, (_, index) => generateHistory(index + 1, 50)).flat();
  const short = await timeTail(SHORT, tail, rounds);
  const long = await timeTail(LONG, tail, rounds);
  return { short, long, ratio: long.milliseconds / short.milliseconds };
}

/** Each turn counts with its least time of several rounds: what else the machine does is not its work. */
async function timeTail(messages: number, tail: History, rounds: number): Promise<TurnTime> {
  const history = [...generateLongHistory(messages), ...tail];
  let least = await playFrom(messages, history);
  for (let round = 1; round < rounds; round++) {
    const times = await playFrom(messages, history);
    least = least.map(({ ms, isEpoch }, turn) => ({ ms: Math.min(ms, times[turn]!.ms), isEpoch }));
  }
  const epochs = least.filter(({ isEpoch }) => isEpoch);
  const plain = least.filter(({ isEpoch }) => !isEpoch);
  return {
    ...{ messages, milliseconds: meanOf(least), plain: meanOf(plain), epoch: meanOf(epochs) },
    epochs: epochs.length,
  };
}

interface Turn {
  /** Of the processor, because other programs may keep it busy. */
  readonly ms: number;
  readonly isEpoch: boolean;
}

async function playFrom(start: number, history: History): Promise<Turn[]> {
  const trimmer = await freshTrimmer(WINDOW);
  const turns: Turn[] = [];
  const messages: object[] = [];
  for (const length of turnsOf(history)) {
    while (messages.length < length) messages.push(history[messages.length]!);
    const started = process.cpuUsage();
    const { isEpoch } = trimmer.reduce({ messages, system: SYSTEM });
    const { user, system } = process.cpuUsage(started);
    if (length >= start) turns.push({ ms: (user + system) / 1_000, isEpoch });
  }
  return turns;
}

function meanOf(turns: readonly Turn[]): number {
  return turns.reduce((sum, { ms }) => sum + ms, 0) / turns.length;
}
