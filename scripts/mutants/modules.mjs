/** Modules whose tests must notice every change, with the tests that answer for them. */
export const modules = [
  {
    file: "src/conversation/history/apply-decisions.ts",
    tests: ["src/conversation/history/*.test.ts", "src/conversation/history/policies/*.test.ts"],
  },
  {
    file: "src/conversation/history/decision-log.ts",
    tests: ["src/conversation/history/*.test.ts", "src/conversation/history/policies/*.test.ts"],
  },
  {
    file: "src/conversation/history/binding-watch.ts",
    tests: ["src/conversation/history/binding-watch.test.ts"],
  },
  {
    file: "src/core/messages/bound-prefix.ts",
    tests: ["src/core/messages/binds-thinking.test.ts", "src/core/messages/bound-prefix.test.ts"],
  },
  { file: "src/core/text/keyed-hash.ts", tests: ["src/core/text/keyed-hash.test.ts"] },
  { file: "src/conversation/intake/delta.ts", tests: ["src/conversation/intake/*.test.ts"] },
  { file: "src/conversation/intake/page.ts", tests: ["src/conversation/intake/*.test.ts"] },
  { file: "src/results/session/fit-page.ts", tests: ["src/results/session/*.test.ts"] },
  { file: "src/results/session/ledger.ts", tests: ["src/results/session/*.test.ts"] },
  { file: "src/conversation/sdk/place-markers.ts", tests: ["src/conversation/sdk/place-markers.test.ts"] },
  { file: "src/rules/packs/trim-packs.ts", tests: ["src/rules/packs/*.test.ts"] },
  { file: "src/plans/compose/compose.ts", tests: ["src/plans/compose/*.test.ts"] },
  { file: "src/plans/agent/judge-end.ts", tests: ["src/plans/agent/judge-end.test.ts"] },
];
