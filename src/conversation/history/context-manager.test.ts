import { describe, expect, it } from "vitest";
import { ContextError } from "../../core/errors.ts";
import { type ContextManagerOptions, createContextManager, reduceContextWithBudget } from "./rfc-context.ts";

type BudgetOptions = Parameters<typeof reduceContextWithBudget>[1];

const indexAt = (index: number) => ({ trimmed_up_to_message_index: index });

describe("a context manager", () => {
  it("treats null as absent", () => {
    const messages = [{ role: "user", content: "hi" }];
    const nothing = { metadata: null, tools: null };
    const { metadata } = createContextManager().reduceContextWithBudget(messages, { contextWindow: 600, ...nothing });
    expect(metadata).toBeUndefined();
    const index = { trimmed_up_to_message_index: null };
    expect(reduceContextWithBudget(messages, { contextWindow: 600, metadata: index }).metadata).toBe(index);
  });

  it("refuses an unknown option of a call", () => {
    const call = () =>
      createContextManager().reduceContextWithBudget([], { contextWindow: 1, keep: 3 } as BudgetOptions);
    expect(call).toThrow('unknown option "keep"');
  });

  it("holds the options and no state", () => {
    const messages = Array.from({ length: 6 }, (_, index) => [
      { role: "user", content: `q${index}` },
      { role: "assistant", content: "z".repeat(1000) },
    ]).flat();
    const manager = createContextManager({ keepLastNAssistantMessages: 3, contextBudgetThreshold: 0.8 });
    const expected = reduceContextWithBudget(messages, { contextWindow: 600, keepLastNAssistantMessages: 3 });
    for (let call = 0; call < 2; call++) {
      expect(manager.reduceContextWithBudget(messages, { contextWindow: 600 })).toEqual(expected);
    }
  });

  it.each([
    [{ keepLastNAssistantMessages: -1 }, "keepLastNAssistantMessages must be a whole number from 0, not -1"],
    [{ keepLastNAssistantMessages: 1.5 }, "not 1.5"],
    [{ contextBudgetThreshold: 1.1 }, "contextBudgetThreshold must be a number from 0 to 1, not 1.1"],
    [{ contextBudgetThreshold: Number.NaN }, "not NaN"],
    [null, "options must be an object, not null"],
    [{ keepLast: 3 }, 'unknown option "keepLast"'],
  ])("refuses %j when it is made", (wrong, problem) => {
    expect(() => createContextManager(wrong as ContextManagerOptions)).toThrow(problem);
  });
});

describe("wrong arguments", () => {
  it.each([
    [{ contextWindow: -1 }, "contextWindow must be a number of tokens from 0, not -1"],
    [{ contextWindow: Number.POSITIVE_INFINITY }, "not Infinity"],
    [{}, "contextWindow must be a number of tokens from 0, not undefined"],
    [undefined, "options must be an object, not undefined"],
    [
      { contextWindow: 1, contextBudgetThreshold: -0.1 },
      "contextBudgetThreshold must be a number from 0 to 1, not -0.1",
    ],
    [
      { contextWindow: 1, keepLastNAssistantMessages: -2 },
      "keepLastNAssistantMessages must be a whole number from 0, not -2",
    ],
    [{ contextWindow: 1, metadata: "{}" }, 'metadata must be an object, or left out, not "{}"'],
    [{ contextWindow: 1, metadata: [] }, "metadata must be an object, or left out, not a list"],
    [{ contextWindow: 1, metaData: {} }, 'unknown option "metaData"'],
    [
      { contextWindow: 1, metadata: indexAt(-1) },
      "metadata.trimmed_up_to_message_index must be a whole number from 0, not -1",
    ],
    [{ contextWindow: 1, metadata: indexAt(0.5) }, "not 0.5"],
    [{ contextWindow: 1, metadata: { trimmed_up_to_message_index: "3" } }, 'from 0, not "3"'],
    [{ contextWindow: 1, metadata: { trimmed_up_to_message_index: true } }, "from 0, not true"],
  ])("%j is refused at once", (wrong, problem) => {
    const reduce = () => reduceContextWithBudget([], wrong as BudgetOptions);
    expect(reduce).toThrow(ContextError);
    expect(reduce).toThrow(
      expect.objectContaining({ code: "invalid_argument", message: expect.stringContaining(problem) }),
    );
  });
});
