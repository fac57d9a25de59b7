/** Decisions come from the history. A trimmer or a wrapped client that meets a conversation in the middle sends the same
 *  bytes as one that was there from the beginning. */

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createTrimmer, type TrimmerOptions } from "../../src/conversation/history/index.ts";
import { withContextBudget } from "../../src/conversation/sdk/anthropic.ts";
import { createRequestFitter } from "../../src/conversation/sdk/request-fitter.ts";
import { countMessages, createMessageLens, type FormatName, formatNames } from "../../src/core/messages/index.ts";
import { createCounter } from "../../src/core/tokens/index.ts";
import { caseCount } from "../case-count.ts";
import { generateSession } from "../generate/generate-session.ts";
import { asSent, drawnSession } from "./drawn-sessions.ts";

const numRuns = caseCount({ few: 1, deep: 25, long: 100 });
const counter = await createCounter("estimate:claude-5");

const drawn = fc.record({
  session: drawnSession,
  share: fc.double({ min: 0.1, max: 0.9, noNaN: true }),
  keep: fc.nat({ max: 6 }),
  /** How many words the system text has on each call. */
  words: fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 5 }),
});
type Drawn = typeof drawn extends fc.Arbitrary<infer Value> ? Value : never;

describe.each(["economic", "gentle", "frugal"] as const)("%s", (policy) => {
  test.each(formatNames)(
    "decides alike at first sight and from the beginning, in the %s format",
    { timeout: 30_000 + 500 * numRuns },
    async (format) => {
      const check = async ({ session, share, keep }: Drawn) => {
        const messages = asSent(session, format);
        const contextWindow = Math.ceil(1 + share * countMessages(messages, counter, { format }));
        const options: TrimmerOptions = { policy, format, keep, contextWindow, reserve: 0, counter };
        const living = await createTrimmer(options);
        for (const length of requestLengths(messages, format)) {
          const request = { messages: messages.slice(0, length) };
          const expected = living.reduce(request);
          const { messages: sent, stats, derived } = (await createTrimmer(options)).reduce(request);
          // A history that needs an epoch on nearly each call is not replayed to its end.
          if (derived?.isComplete === false || expected.overflow !== undefined) return;
          expect(sent).toEqual(expected.messages);
          expect({ after: stats.after, epochs: stats.epochs }).toEqual({
            after: expected.stats.after,
            epochs: expected.stats.epochs,
          });
        }
      };
      await fc.assert(fc.asyncProperty(drawn, check), { numRuns });
    },
  );
});

describe("a wrapped client for each request", () => {
  test.each(formatNames)(
    "sends what one client for all of them sends, with an intake, in the %s format",
    { timeout: 60_000 + 1_000 * numRuns },
    async (format) => {
      const check = async ({ session, share, keep, words }: Drawn) => {
        const messages = asSent(session, format);
        const tokens = countMessages(messages, counter, { format });
        const contextWindow = Math.ceil(2_000 + share * tokens);
        const open = () =>
          createRequestFitter<object>({ contextWindow, reserve: 0, keep, counter, intake: true, onOverflow: "pass" });
        const living = open();
        for (const [call, length] of requestLengths(messages, format).entries()) {
          const system = "word ".repeat(words[call % words.length] ?? 0);
          const request = {
            ...{ request: {}, format, model: "claude-sonnet-5", system, messages: messages.slice(0, length) },
            ...{ maxOutputTokens: 1_000 * (1 + (call % 8)), cacheLifetimeMs: 300_000 },
          };
          const { reduction: expected } = await living.fit(request);
          const { reduction } = await open().fit(request);
          if (reduction.derived?.isComplete === false || expected.overflow !== undefined) return;
          expect(reduction.messages).toEqual(expected.messages);
        }
      };
      await fc.assert(fc.asyncProperty(drawn, check), { numRuns });
    },
  );
});

test("two clients in turn send the bytes of one, cache markers included", { timeout: 60_000 }, async () => {
  const { messages } = generateSession({ seed: 1, turns: 60 });
  const sent: string[] = [];
  const open = () => {
    const plain = {
      async post(_path: string, given?: Promise<{ body: object }>): Promise<void> {
        sent.push(JSON.stringify((await given)?.body));
      },
    };
    // With `auto`, the lifetime of the markers depends on the pauses that a client has seen.
    return withContextBudget(plain, { contextWindow: 30_000, ttl: "5m" });
  };
  const [one, ...two] = [open(), open(), open()];
  for (const [call, length] of requestLengths(messages, "anthropic").entries()) {
    const body = { model: "claude-sonnet-5", max_tokens: 1_000, messages: messages.slice(0, length) };
    for (const client of [one, two[call % 2]]) await client?.post("/v1/messages", Promise.resolve({ body }));
    expect(sent.at(-1)).toBe(sent.at(-2));
  }
  expect(JSON.parse(sent.at(-1) ?? "").messages.length).toBeLessThan(messages.length / 2);
});

/** Returns the number of messages of each request that led to this history. */
function requestLengths(messages: readonly object[], format: FormatName): number[] {
  const lens = createMessageLens(messages, { counter, format });
  const roles = messages.map((message, index) => lens.role(message, index));
  const starts = roles.flatMap((role, index) =>
    index > 0 && role === "assistant" && roles[index - 1] !== "assistant" ? [index] : [],
  );
  return roles.at(-1) === "assistant" ? starts : [...starts, messages.length];
}
