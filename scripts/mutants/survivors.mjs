/** Mutants that no test can notice, each with the reason. `npm run test:mutants` prints `original` and `replacement`. */
export const survivors = [
  {
    file: "src/conversation/history/binding-watch.ts",
    original: "last.system === system && last.tools === tools",
    replacement: "false",
    reason: "Only saves time: the comparison that follows finds no change between equal objects.",
  },
];
