/** The fitted estimator: the features of one pass, times the coefficients of a tokenizer family. */
import type { Counter } from "../counter.ts";
import type { Family } from "../families.ts";
import { coefficients } from "./coefficients.data.ts";
import { FEATURE_COUNT } from "./features.ts";
import { scan } from "./scan.ts";

/** Linear in the text's length for any text; at least 1 for text that is not empty, at most its UTF-8 bytes. */
export function createEstimator(family: Family): Counter {
  const weights = Float64Array.from(coefficients[family]);
  return {
    name: `estimate:${family}`,
    count(text) {
      if (text === "") return 0;
      const tally = scan(text);
      let tokens = 0;
      for (let at = 0; at < FEATURE_COUNT; at++) tokens += tally[at]! * weights[at]!;
      return Math.max(1, Math.min(Math.round(tokens), Buffer.byteLength(text)));
    },
  };
}
