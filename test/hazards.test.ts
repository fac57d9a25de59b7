import { describe, expect, it } from "vitest";
import { createMessageLens, formatNames, validateRequest } from "../src/core/messages/index.ts";
import { createCounter } from "../src/core/tokens/index.ts";
import { clientHazards, hazards, malformed } from "./hazards.ts";

const counter = await createCounter("estimate:claude-5");
const named = <Case extends { readonly name: string }>(cases: readonly Case[]) =>
  cases.map((each) => [each.name, each] as const);

describe.each(formatNames)("hazards in the %s format", (format) => {
  const all = hazards(format);

  it.each(named(all))("%s: every message can be read and counted", (_name, { messages }) => {
    const lens = createMessageLens(messages, { counter, format });
    for (const [index, message] of messages.entries()) {
      const { tokens, parts } = lens.read(message, index);
      expect(Number.isInteger(tokens) && tokens > 0).toBe(true);
      expect(parts.length).toBeGreaterThan(0);
    }
  });

  it("are valid where they say so", () => {
    for (const { name, messages } of all.filter(({ isValid }) => isValid)) {
      expect(validateRequest(messages, { format }), name).toEqual([]);
    }
  });

  it("have calls without results, and two results for one call, that the validator finds", () => {
    for (const name of ["unanswered-calls", "repeated-results", "a result without a call"]) {
      const messages = all.find((hazard) => hazard.name === name)?.messages ?? [];
      expect(validateRequest(messages, { format }).length, name).toBeGreaterThan(0);
    }
  });

  it.each(named(clientHazards(format)))("%s: every call is valid", (_name, { calls }) => {
    for (const call of calls) expect(validateRequest(call, { format })).toEqual([]);
  });

  it.each(named(malformed(format)))("%s: is refused with its path", (_name, { messages, path }) => {
    const lens = createMessageLens(messages, { counter, format });
    const read = () => messages.map((message, index) => lens.read(message, index));
    const problem = { code: "invalid_message", message: expect.stringContaining(path) };
    expect(read).toThrow(expect.objectContaining(problem));
  });
});
