/** Gives every property test the same seed, so that a run of CI fails only because of a change in the code. Deep runs by
 *  hand look for new cases: `PLIMSOLL_SEED=random npm run test:deep`. A failure prints its seed; `PLIMSOLL_SEED=NUMBER`
 *  repeats it. */
import { configureGlobal, readConfigureGlobal } from "fast-check";

const fixedSeed = 20_261_118;

const wanted = process.env.PLIMSOLL_SEED;
if (wanted !== undefined && wanted !== "random" && !/^-?\d+$/.test(wanted)) {
  throw new Error(`PLIMSOLL_SEED is "${wanted}". Use a whole number, or "random".`);
}
if (wanted !== "random") configureGlobal({ ...readConfigureGlobal(), seed: Number(wanted ?? fixedSeed) });
