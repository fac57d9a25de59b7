import { formatNumber } from "./table.ts";

/** `1 session`, `2,000 sessions`. */
export function countNoun(value: number, noun: string): string {
  return `${formatNumber(value)} ${noun}${value === 1 ? "" : "s"}`;
}
