/** Counters that divide a length. They cost almost nothing, and are the unit that the budgets of inject and compose are written in. */
import type { Counter } from "./counter.ts";

export const heuristics: readonly Counter[] = [
  { name: "bytes/4", count: (text) => Math.ceil(Buffer.byteLength(text) / 4) },
  { name: "bytes/3.5", count: (text) => Math.ceil(Buffer.byteLength(text) / 3.5) },
  { name: "chars/3.5", count: (text) => Math.ceil(text.length / 3.5) },
];
