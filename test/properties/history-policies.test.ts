/** Every policy in every message format keeps what the contract of policies asks. */
import fc from "fast-check";
import { describe } from "vitest";
import { type PolicyName, policyNames } from "../../src/conversation/history/index.ts";
import { testPolicy } from "../../src/conversation/history/policies/policy.contract.ts";
import type { PolicyCase } from "../../src/conversation/history/policies/policy-run.contract.ts";
import { countMessages, createMessageLens, type FormatName, formatNames } from "../../src/core/messages/index.ts";
import { createCounter } from "../../src/core/tokens/index.ts";
import { caseCount } from "../case-count.ts";
import { asSent, drawnSession } from "./drawn-sessions.ts";

const numRuns = caseCount({ few: 1, deep: 40, long: 300 });
const counter = await createCounter("estimate:claude-5");

describe.each(policyNames)("%s", (policy) => {
  for (const format of formatNames) testPolicy(policy, format, { numRuns, cases: (each) => drawCase(each, policy) });
});

function drawCase(format: FormatName, policy: PolicyName): fc.Arbitrary<PolicyCase> {
  return fc
    .record({
      session: drawnSession,
      // Most sessions outgrow their window, some by far.
      share: fc.oneof(fc.double({ min: 0.02, max: 1.2, noNaN: true }), fc.constant(0)),
      keep: fc.nat({ max: 12 }),
      placeholders: fc.constantFrom("plain", "descriptive"),
      model: fc.constantFrom("claude-sonnet-4-5", "claude-opus-5-5", undefined),
      excludeTools: fc.subarray(["run_command"]),
      hasPins: fc.boolean(),
      cold: fc.array(fc.nat({ max: 40 }), { maxLength: 4 }),
      restarts: fc.array(fc.nat({ max: 40 }), { maxLength: 4 }),
    })
    .map(({ session, share, hasPins, cold, restarts, keep, model, ...rest }) => {
      const messages = asSent(session, format);
      const contextWindow = Math.ceil(1 + share * countMessages(messages, counter, { format }));
      // Those of one turn or two.
      const isPinned = (message: object) => hasPins && JSON.stringify(message).includes("3.1 ");
      return {
        format,
        messages,
        calls: callLengths(messages, format).map((length, index) => ({
          length,
          isCold: cold.includes(index),
          isRestart: restarts.includes(index),
        })),
        // The RFC knows neither pins nor other placeholders.
        options: {
          ...(policy.startsWith("rfc") ? {} : { ...rest, isPinned }),
          ...{ keep, model, contextWindow, counter, reserve: 0 },
        },
      };
    });
}

/** Every history that the assistant is asked to go on from. */
function callLengths(messages: readonly object[], format: FormatName): number[] {
  const lens = createMessageLens(messages, { counter, format });
  const isAssistant = messages.map((message, index) => lens.read(message, index).role === "assistant");
  return [...isAssistant, true].flatMap((isNext, index) =>
    index > 0 && isNext && !isAssistant[index - 1] ? [index] : [],
  );
}
