import fc from "fast-check";
import { expect, test } from "vitest";
import { validateRequest } from "../messages/index.ts";
import { createInvalidFinder } from "./find-invalid.ts";
import { generateSession } from "./generate/generate-session.ts";

const runs = process.env.PLIMSOLL_DEEP === "1" ? 400 : 40;

/** A history that a careless reducer sends: messages missing from it, and rewritten as a whole from time to time. */
function carelessRequests(seed: number, cuts: readonly number[], gaps: readonly number[]): object[][] {
  const { messages } = generateSession({ seed, turns: 30 });
  const requests: object[][] = [];
  let sent: object[] = [];
  for (const [index, message] of messages.entries()) {
    if (message.role === "assistant") {
      if (cuts.includes(requests.length)) sent = sent.slice(0, 1).concat(sent.slice(2));
      requests.push([...sent]);
    }
    if (!gaps.includes(index)) sent.push(message);
  }
  return requests;
}

function unchangedIn(requests: readonly object[][], index: number): number {
  const [before, now] = [requests[index - 1] ?? [], requests[index] ?? []];
  const differs = now.findIndex((message, at) => message !== before[at]);
  return differs < 0 ? now.length : differs;
}

test("each call is told invalid exactly when its whole request is", () => {
  const numbers = fc.uniqueArray(fc.nat(60), { maxLength: 3 });
  fc.assert(
    fc.property(fc.nat(1_000), numbers, numbers, (seed, cuts, gaps) => {
      const requests = carelessRequests(seed, cuts, gaps);
      const finder = createInvalidFinder("anthropic");
      for (const [index, request] of requests.entries()) finder.add(request, unchangedIn(requests, index));
      const whole = requests.map((request) => validateRequest(request, { format: "anthropic" }).length > 0);
      expect(finder.finish()).toEqual(whole);
    }),
    { numRuns: runs },
  );
});

test("a session without calls has no problems", () => {
  expect(createInvalidFinder("anthropic").finish()).toEqual([]);
});
