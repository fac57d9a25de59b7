export { closest, didYouMean } from "./closest.ts";
export { printable, printableLines } from "./printable.ts";
