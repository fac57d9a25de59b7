/** "Same" is said of the same bytes only, also in a repository that was made to collide under hashes without a key. */
import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { olderNames } from "../../src/conversation/history/older-hashes.ts";
import { readShape } from "../../src/conversation/intake/changing-fields.ts";
import { createIntake } from "../../src/conversation/intake/index.ts";
import { readResultLines, unnumbered } from "../../src/conversation/intake/result-lines.ts";
import { createMemoryStore } from "../../src/core/store/index.ts";
import { createCounter } from "../../src/core/tokens/index.ts";
import { collidingLines, collidingMessage, loneSurrogates } from "../generate/colliding-texts.ts";
import { createDeltaReader } from "../generate/delta-reader.mjs";

const numRuns = process.env.PLIMSOLL_DEEP === "1" ? 2_000 : 60;
const counter = await createCounter("estimate:claude-5");
const longLine = "export const limit = checked(limits.first, plan); // of the plan";
const pairs: readonly (readonly [string, string])[] = [
  collidingLines,
  loneSurrogates,
  [longLine, collidingMessage(longLine)],
];

test("the pairs are different texts with the same hash", () => {
  for (const [one, other] of pairs) expect(one).not.toBe(other);
  const start = (line: string) => createHash("sha256").update(line).digest("base64url").slice(0, 10);
  expect(start(collidingLines[0])).toBe(start(collidingLines[1]));
  expect(Buffer.from(loneSurrogates[0])).toEqual(Buffer.from(loneSurrogates[1]));
  const name = (content: string) => olderNames([{ role: "user", content }]);
  expect(name(longLine)).toEqual(name(collidingMessage(longLine)));
});

/** A file of plain lines and of one line of each pair. `sides` says which one. */
const file = fc.record({
  name: fc.constantFrom("src/a.ts", "test/fixtures/a.ts"),
  sides: fc.tuple(fc.boolean(), fc.boolean(), fc.boolean()),
  first: fc.integer({ min: 0, max: 3 }),
  count: fc.integer({ min: 20, max: 60 }),
  isNumbered: fc.boolean(),
});

type File = typeof file extends fc.Arbitrary<infer Value> ? Value : never;

function textOf({ sides, first, count, isNumbered }: File): string {
  const lines = Array.from({ length: count }, (_, at) => `const value${first + at} = compute(${at}, "some text");`);
  for (const [index, side] of sides.entries()) lines.splice(7 * (index + 1), 0, pairs[index]?.[Number(side)] ?? "");
  return lines.map((line, index) => (isNumbered ? `${index + 1}\t${line}` : line)).join("\n");
}

test("a reader who sees only what is sent knows every byte, in one process and in many", async () => {
  let notes = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(file, { minLength: 2, maxLength: 8 }), fc.boolean(), async (files, hasOneProcess) => {
      const store = createMemoryStore();
      const open = () => createIntake({ counter, store, sessionId: "s" });
      let intake = await open();
      const reader = createDeltaReader({ readResultLines, unnumbered, readShape });
      for (const [index, each] of files.entries()) {
        // A process that was started again has no texts, only hashes.
        if (!hasOneProcess) intake = await open();
        const call = { tool: "Read", input: { path: each.name }, callId: `call-${index}`, text: textOf(each) };
        const { text, edit } = await intake.admit(call);
        if (edit === "none") expect(text).toBe(call.text);
        else {
          notes += 1;
          expect(reader.linesIn(text, call.text), text).toEqual(reader.linesOf(call.text));
        }
        reader.see(`Read ${each.name}`, call.text);
      }
    }),
    { numRuns },
  );
  expect(notes).toBeGreaterThan(numRuns);
});
