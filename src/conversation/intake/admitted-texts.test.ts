import { expect, test } from "vitest";
import { createMemoryStore } from "../../core/store/index.ts";
import { createHashKey, createKeyedHash, type KeyedHash } from "../../core/text/index.ts";
import { createCounter } from "../../core/tokens/index.ts";
import { createAdmittedTexts } from "./admitted-texts.ts";
import { findDelta } from "./delta.ts";
import { collectRuns, type HeldText, hashLines } from "./held-texts.ts";
import { createIntake } from "./intake.ts";
import { readResultLines } from "./result-lines.ts";

/** Takes all texts for the same. */
const constant: KeyedHash = { ...createKeyedHash(createHashKey()), text: () => "a".repeat(22) };

const source = Array.from({ length: 20 }, (_, index) => `const value${index} = compute(${index}, "some text");`);
const changed = source.with(7, "new Function(atob(blob))();");

function admit(lines: readonly string[], input?: unknown) {
  const seen = createAdmittedTexts();
  const hashed = hashLines(readResultLines(lines.join("\n")), constant);
  const isWritten = input !== undefined;
  const held: HeldText = {
    ...{ sequence: 1, label: "Read a.ts", tokens: 500, runs: collectRuns(hashed) },
    ...(isWritten && { isWritten: true as const }),
  };
  seen.add({ tool: "Read", input, text: isWritten ? "done" : lines.join("\n") }, { sequence: 1, held: [held] });
  return { seen, held };
}

const options = { label: "Read b.ts", isKept: () => false, isOnePiece: false, hash: constant, mark: "aaaa" };

test("while the text is at hand, its bytes decide and not the hashes", () => {
  const { seen, held } = admit(source);
  expect(seen.isSameText(held, source.join("\n"))).toBe(true);
  expect(seen.isSameText(held, changed.join("\n"))).toBe(false);
});

test.each([
  ["a result", undefined],
  ["what the agent wrote", { content: source.join("\n") }],
])("lines that a hash takes for those of %s are not, if their bytes differ", (_name, input) => {
  const { seen, held } = admit(source, input);
  for (const [lines, isSame] of [[source, true] as const, [changed, false] as const]) {
    const hashed = hashLines(readResultLines(lines.join("\n")), constant);
    const delta = findDelta(hashed, { ...options, held: [held], recallHint: () => "ask" });
    expect(delta?.ranges).toHaveLength(1);
    expect(seen.areSameLines(hashed, delta?.ranges ?? [])).toBe(isSame);
  }
});

test("without deltas, the store keeps no lines of earlier results", async () => {
  const store = createMemoryStore();
  const counter = await createCounter("estimate:claude-5");
  const intake = await createIntake({ counter, sessionId: "s", store, deltas: false });
  const lines = (n: number) =>
    Array.from({ length: 100 }, (_, line) => `the line ${line} of the result ${n}`).join("\n");
  for (let n = 0; n < 20; n++) await intake.admit({ tool: "Bash", input: { command: `print ${n}` }, text: lines(n) });
  const [record] = await store.list("intake-context");
  expect(record?.value.length).toBeLessThan(5_000);
});
