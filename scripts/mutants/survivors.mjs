/** Mutants that no test can notice, each with the reason. `npm run test:mutants` prints `original` and `replacement`. */
export const survivors = [
  {
    file: "src/conversation/history/binding-watch.ts",
    original: "last.system === system && last.tools === tools",
    replacement: "false",
    reason: "Only saves time: the comparison that follows finds no change between equal objects.",
  },
  {
    file: "src/core/text/keyed-hash.ts",
    original: "at < text.length",
    replacement: "at <= text.length",
    reason: "One more chunk is empty and writes nothing.",
  },
  {
    file: "src/core/text/keyed-hash.ts",
    original: "at < added.length",
    replacement: "at <= added.length",
    reason: "One more part is empty and writes nothing.",
  },
  {
    file: "src/core/text/keyed-hash.ts",
    original: "used + wanted <= scratchWords",
    replacement: "used + wanted < scratchWords",
    reason: "Hashes the words one word earlier. The tag does not depend on when they are hashed.",
  },
  {
    file: "src/core/text/keyed-hash.ts",
    original: "index < text.length",
    replacement: "index <= text.length",
    reason: "Writes a zero after the text, where a zero or the next part is written.",
  },
  {
    file: "src/core/text/keyed-hash.ts",
    original: "isWide",
    replacement: "true",
    reason: "Writes zeros after the text, where the next characters are written.",
  },
  {
    file: "src/core/text/keyed-hash.ts",
    original: "text.length < fewCharacters",
    replacement: "false",
    reason: "Both ways write the same bytes. One is faster for short texts.",
  },
  {
    file: "src/core/text/keyed-hash.ts",
    original: "text.length < fewCharacters",
    replacement: "true",
    reason: "Both ways write the same bytes. One is faster for short texts.",
  },
  {
    file: "src/core/text/keyed-hash.ts",
    original: "text.length < fewCharacters",
    replacement: "text.length <= fewCharacters",
    reason: "Both ways write the same bytes. One is faster for short texts.",
  },
  {
    file: "src/core/text/keyed-hash.ts",
    original: "text.length < fewCharacters",
    replacement: "text.length >= fewCharacters",
    reason: "Both ways write the same bytes. One is faster for short texts.",
  },
  {
    file: "src/core/text/keyed-hash.ts",
    original: "!isWhole",
    replacement: "true",
    reason: "Writes after a whole block, which is the last one.",
  },
  {
    file: "src/core/text/keyed-hash.ts",
    original: "index < 4",
    replacement: "index <= 4",
    reason: "The arrays have four words. A write after the last one does nothing.",
  },
  {
    file: "src/core/text/keyed-hash.ts",
    original: "index < end",
    replacement: "index <= end",
    reason: "Writes a zero after the last block, which nobody reads.",
  },
  {
    file: "src/core/messages/bound-prefix.ts",
    original: "first < second",
    replacement: "first <= second",
    reason: "An object has each key once.",
  },
  {
    file: "src/results/session/ledger.ts",
    original: "() => false",
    replacement: "() => undefined",
    reason: "Both mean that it is never enough.",
  },
  {
    file: "src/results/session/ledger.ts",
    original: "tokens > unlimited / 2",
    replacement: "tokens >= unlimited / 2",
    reason: "Half of the number is not whole, and a number of tokens is.",
  },
];
