import { describe, expect, it } from "vitest";
import { createCounter } from "../../core/tokens/index.ts";
import { user } from "./exchanges.contract.ts";
import { policyNames } from "./policies/policy.ts";
import { createTrimmer } from "./trimmer.ts";
import { checkTrimmerOptions, defaultReserve, type TrimmerOptions } from "./trimmer-options.ts";

type Loose = Readonly<Record<string, unknown>>;

const counter = await createCounter("bytes/4");
const create = (options: Loose) =>
  createTrimmer({ contextWindow: 10_000, reserve: 0, counter, ...options } as TrimmerOptions);
const check = (options: Loose, own?: Parameters<typeof checkTrimmerOptions>[1]) => () =>
  checkTrimmerOptions(options as Partial<TrimmerOptions>, own);
const refusal = (message: string, hint = "") =>
  expect.objectContaining({
    code: "invalid_argument",
    message: expect.stringContaining(message),
    hint: expect.stringContaining(hint),
  });

describe("an option of the wrong kind", () => {
  it.each<[string, Loose]>([
    ['counter is "auto" without count()', { counter: "auto" }],
    ["counter is null without count()", { counter: null }],
    ["isPinned is a list", { isPinned: [3] }],
    ['excludeTools is "todo"', { excludeTools: "todo" }],
    ["excludeTools is a list", { excludeTools: [/todo/] }],
    ["store is an object without get()", { store: new Map().entries() }],
    ["store is an object without put()", { store: new Map() }],
    ["trimWhenCold is null", { trimWhenCold: null }],
    ["sessionId is 7", { sessionId: 7 }],
    ["model is an object", { model: { id: "claude-sonnet-5" } }],
    ['reserve is "16000"', { reserve: "16000" }],
  ])("is refused by name: %s", async (message, options) => {
    expect(check(options)).toThrow(refusal(message));
    await expect(create(options)).rejects.toThrow(refusal(message));
  });

  it("includes missing options", async () => {
    for (const none of [undefined, null, 200_000, ["economic"]]) {
      await expect(createTrimmer(none as unknown as TrimmerOptions)).rejects.toThrow(
        refusal("options must be an object", "contextWindow"),
      );
    }
  });
});

describe("an unknown option", () => {
  it("is reported with a suggestion, or with all options", () => {
    expect(check({ excludedTools: ["todo"] })).toThrow(
      refusal('unknown option "excludedTools"', 'Did you mean "excludeTools"?'),
    );
    expect(check({ toString: 1 })).toThrow(refusal('unknown option "toString"'));
    expect(check({ xyzzy: 1 })).toThrow(refusal("xyzzy", "Options are contextWindow, workingBudget, model, "));
  });

  it("can be allowed or forbidden by a wrapper", () => {
    const own = { onTrim: () => undefined, sealed: undefined };
    expect(check({ onTrim: 1 }, own)).not.toThrow();
    expect(check({ onTrin: 1 }, own)).toThrow(refusal("onTrin", 'Did you mean "onTrim"?'));
    expect(check({ sealed: "billed" }, own)).toThrow(refusal('unknown option "sealed"'));
    expect(check({ seald: "billed" }, own)).toThrow(refusal("seald", "Options are"));
  });
});

describe("an option that the policy does not use", () => {
  it.each<[string, Loose]>([
    ["threshold has no meaning for the policy economic", { threshold: 0.5 }],
    ["threshold has no meaning for the policy frugal", { threshold: 0.5, policy: "frugal" }],
    ["excludeTools has no meaning for the policy rfc", { excludeTools: ["todo"], policy: "rfc" }],
    ["isPinned has no meaning for the policy rfc-headroom", { isPinned: Boolean, policy: "rfc-headroom" }],
    ["placeholders has no meaning for the policy rfc", { placeholders: "descriptive", policy: "rfc" }],
  ])("is refused with the policies that it is for: %s", (message, options) => {
    const others = options.policy?.toString().startsWith("rfc") ? "economic, gentle, frugal" : "rfc";
    expect(check(options)).toThrow(refusal(message, `It belongs to ${others}`));
  });

  it("is accepted at its default", async () => {
    const given = { threshold: 0.8, excludeTools: [], placeholders: "plain", isPinned: undefined };
    for (const policy of policyNames) await create({ ...given, policy });
  });
});

describe("room", () => {
  it("is kept for the answer: 16,000 tokens, or what is asked for, at most half of the window", () => {
    expect(defaultReserve(200_000)).toBe(16_000);
    expect(defaultReserve(200_000, 64_000)).toBe(64_000);
    expect(defaultReserve(100_000, 64_000)).toBe(50_000);
    expect(defaultReserve(8_001)).toBe(4_000);
  });

  it("must remain for messages", async () => {
    const message = "contextWindow is 10000, and reserve 9000 and prefixTokens 1000 leave nothing";
    await expect(create({ reserve: 9_000, prefixTokens: 1_000 })).rejects.toThrow(refusal(message));
    await expect(create({ reserve: undefined, prefixTokens: 5_000 })).rejects.toThrow(
      refusal("reserve 5000 and prefixTokens 5000"),
    );
    await create({ reserve: 9_000, prefixTokens: 999 });
  });

  it("may be 0 if nothing was taken off: each request is then reported as too large", async () => {
    const { overflow } = (await create({ contextWindow: 0 })).reduce({ messages: [user("go")] });
    expect(overflow).toMatchObject({ limit: 0 });
  });
});
