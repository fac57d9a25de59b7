/** A whole number with its thousands apart: 1,234,567. The same in every locale. */
export function formatNumber(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** `1 session`, `2,000 sessions`. */
export function countNoun(value: number, noun: string): string {
  return `${formatNumber(value)} ${noun}${value === 1 ? "" : "s"}`;
}
