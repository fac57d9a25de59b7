/** Replaces `exact.ts` in bundles for browsers and Workers, by a condition under "imports" in package.json. */
import { ContextError } from "../errors.ts";
import type { Counter } from "./create-counter.ts";
import type { ExactEncoding } from "./exact.ts";

async function refuseExactCounter(encoding: ExactEncoding): Promise<Counter> {
  const message = `bundles for browsers and Workers do not have the counter "exact:${encoding}", whose table takes megabytes`;
  throw new ContextError("unknown_counter", message, { hint: "Use an estimate, such as estimate:o200k." });
}

export { refuseExactCounter as createExactCounter };
