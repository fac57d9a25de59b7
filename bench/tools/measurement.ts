import { medianOf } from "../tokens/processor-time.ts";

/** One row of the table. */
export interface Measurement {
  readonly name: string;
  readonly milliseconds: number;
  /** Beside the plain program, or the server that is not wrapped: median of the rounds' own ratios. */
  readonly ratio?: number | undefined;
  /** The same as a difference. */
  readonly addedMs?: number | undefined;
  readonly pages?: number | undefined;
  readonly items?: number | undefined;
  readonly peakMegabytes?: number | undefined;
}

export type Facts = Omit<Measurement, "name" | "milliseconds" | "ratio" | "addedMs">;

/** Times things in turns, a round after the other, so that what slows the machine down slows all of them down. The first
 *  round fills caches and is not counted. */
export async function timeInTurns(rounds: number, things: readonly (() => Promise<number>)[]): Promise<number[][]> {
  const times: number[][] = things.map(() => []);
  for (let round = -1; round < rounds; round++) {
    for (const [index, thing] of things.entries()) {
      const milliseconds = await thing();
      if (round >= 0) times[index]!.push(milliseconds);
    }
  }
  return times;
}

/** `plain`: the times of what it is compared with, of the same rounds. */
export function measurementOf(
  name: string,
  times: readonly number[],
  { plain, ...facts }: Facts & { readonly plain?: readonly number[] | undefined } = {},
): Measurement {
  const row = { name, milliseconds: medianOf(times), ...facts };
  if (plain === undefined) return row;
  return {
    ...row,
    ratio: medianOf(times.map((time, round) => time / plain[round]!)),
    addedMs: medianOf(times.map((time, round) => time - plain[round]!)),
  };
}
