/** What a turn of a long history costs beside one of a short history, the messages being the same objects from turn to turn. */
import {
  freshTrimmer,
  generateHistory,
  generateLongHistory,
  type History,
  playTurns,
  timePerTurn,
} from "./histories.ts";

export interface Scaling {
  readonly short: TurnTime;
  readonly long: TurnTime;
  /** Time of a turn of the long history as a multiple of the short one's. */
  readonly ratio: number;
}

export interface TurnTime {
  readonly messages: number;
  readonly milliseconds: number;
}

const WINDOW = 200_000;
const SHORT = 50;
const LONG = 5_000;
const TAILS = 10;

/** The same turns twice: each tail as a session of its own, and all of them at the end of a long one. So the same content is new, and
 *  the long history's epochs, which are rare, are spread over 500 messages. */
export async function measureScaling(rounds: number): Promise<Scaling> {
  const tails = Array.from({ length: TAILS }, (_, index) => generateHistory(index + 1, SHORT));
  const start = LONG - TAILS * SHORT;
  const long = [...generateLongHistory(start), ...tails.flat()];
  const isLate = (length: number): boolean => length % SHORT >= SHORT / 2;
  const shortMs = await timePerTurn(2 * rounds, () => playAll(tails, isLate));
  const longMs = await timePerTurn(rounds, () =>
    playAll([long], (length) => length >= start && isLate(length - start)),
  );
  return {
    short: { messages: SHORT, milliseconds: shortMs },
    long: { messages: LONG, milliseconds: longMs },
    ratio: longMs / shortMs,
  };
}

async function playAll(histories: readonly History[], isTimed: (length: number) => boolean): Promise<number[]> {
  const times: number[][] = [];
  for (const history of histories) times.push(playTurns(await freshTrimmer(WINDOW), history, isTimed));
  return times.flat();
}
