/** What breaks trimmers, in every format and through every policy: nothing throws, nothing of the caller's is changed (all is frozen), and
 *  what was valid stays valid. */

import { beforeAll, describe, expect, test } from "vitest";
import {
  createTrimmer,
  type PolicyName,
  policyNames,
  type Reduction,
  type TrimmerOptions,
} from "../../src/conversation/history/index.ts";
import { withoutHashes } from "../../src/conversation/history/policies/policy-promises.contract.ts";
import {
  type CountedPart,
  countMessages,
  createMessageLens,
  type FormatName,
  formatNames,
  validateRequest,
} from "../../src/core/messages/index.ts";
import { createCounter } from "../../src/core/tokens/index.ts";
import { clientHazards, type Hazard, hazards, malformed } from "../hazards.ts";

const counter = await createCounter("estimate:claude-5");
const create = (policy: PolicyName, format: FormatName, options: Partial<TrimmerOptions> = {}) =>
  createTrimmer({ contextWindow: 100_000, reserve: 0, counter, policy, format, ...options });
const sentBy = ({ messages }: Reduction) => messages.map((message) => JSON.stringify(message));
const named = <Case extends { readonly name: string }>(cases: readonly Case[]) =>
  cases.map((each) => [each.name, each] as const);

const isDeep = process.env.PLIMSOLL_DEEP === "1";
const policies: readonly PolicyName[] = isDeep ? policyNames : ["economic", "rfc"];
/** Of what a hazard weighs. The default policy is tried with a window that is far too small, too small, and large enough. */
const sharesFor = (policy: PolicyName) => {
  if (isDeep) return [0, 0.02, 0.1, 0.4, 0.9, 2];
  return policy === "economic" ? [0.02, 0.4, 2] : [0.4];
};

interface WeighedHazard extends Hazard {
  readonly tokens: number;
  /** That the validator finds broken before anything is trimmed. */
  readonly rules: readonly string[];
  /** What the person and the system say. */
  readonly said: readonly unknown[];
}

describe.each(formatNames)("in the %s format", (format) => {
  const all: readonly WeighedHazard[] = hazards(format).map((hazard) => ({
    ...hazard,
    tokens: countMessages(hazard.messages, counter, { format }),
    rules: rulesOf(hazard.messages, format),
    said: saidBy(hazard.messages, format),
  }));

  test.each(named(all))("%s: is trimmed to any window, or told to be too large", async (_name, hazard) => {
    for (const policy of policies) {
      for (const share of sharesFor(policy)) {
        const contextWindow = Math.ceil(1 + share * hazard.tokens);
        const trimmer = await create(policy, format, { contextWindow });
        const reduction = trimmer.reduce(hazard);
        expectPromises(reduction, hazard, { policy, format });
        expect(sentBy(trimmer.reduce(hazard)), `${policy} at ${share}`).toEqual(sentBy(reduction));
      }
    }
  });

  test.each(named(clientHazards(format)))(
    "%s: every call is valid, and what comes back is sent as before",
    async (_name, { calls }) => {
      for (const policy of policies) {
        const trimmer = await create(policy, format, { contextWindow: 30_000 });
        const reductions = calls.map((messages) => trimmer.reduce({ messages }));
        for (const { messages } of reductions) expect(validateRequest(messages, { format, strict: true })).toEqual([]);
        const rounds = [0, 1].map(() => calls.map((messages) => sentBy(trimmer.reduce({ messages }))));
        expect(rounds[1]).toEqual(rounds[0]);
        const resumed = await create(policy, format, {
          contextWindow: 30_000,
          checkpoint: await trimmer.checkpoint(),
        });
        expect(calls.map((messages) => sentBy(resumed.reduce({ messages })))).toEqual(rounds[1]);
      }
    },
  );

  const good = all.find(({ name }) => name === "a long session")!.messages;
  const lengths = [40, good.length];
  // A policy never sees a malformed message, so one policy is enough for an everyday run.
  const refusing = policies.slice(0, isDeep ? undefined : 1);
  /** What a trimmer does that never gets a malformed message. */
  const spared = new Map<PolicyName, { readonly reductions: readonly Reduction[]; readonly checkpoint: unknown }>();
  beforeAll(async () => {
    for (const policy of refusing) {
      const trimmer = await create(policy, format);
      const reductions = lengths.map((length) => trimmer.reduce({ messages: good.slice(0, length) }));
      spared.set(policy, { reductions, checkpoint: withoutHashes(await trimmer.checkpoint()) });
    }
  });

  test.each(named(malformed(format)))(
    "%s: is refused with its path, and the next call goes on",
    async (_name, { messages, path }) => {
      const problem = { code: "invalid_message", message: expect.stringContaining(path) };
      for (const policy of refusing) {
        const trimmer = await create(policy, format);
        const { reductions = [], checkpoint } = spared.get(policy) ?? {};
        for (const [index, length] of lengths.entries()) {
          expect(() => trimmer.reduce({ messages })).toThrow(expect.objectContaining(problem));
          expect(trimmer.reduce({ messages: good.slice(0, length) })).toEqual(reductions[index]);
        }
        expect(withoutHashes(await trimmer.checkpoint())).toEqual(checkpoint);
      }
    },
  );
});

describe.each(["anthropic", "ai-sdk"] as const)("cache markers in the %s format", (format) => {
  const { messages } = hazards(format).find(({ name }) => name === "a long session")!;
  const marker =
    format === "anthropic"
      ? { cache_control: { type: "ephemeral" } }
      : { providerOptions: { anthropic: { cacheControl: { type: "ephemeral" } } } };
  /** As clients do: one marker, on the last part of all. */
  const marked = (list: readonly object[]): object[] =>
    list.map((message, index) => (index === list.length - 1 ? mark(message, marker) : { ...message }));

  test("may move from call to call: no epoch comes of it, and they go out where they are", async () => {
    for (const policy of policies) {
      const [trimmer, plain] = [await create(policy, format), await create(policy, format)];
      for (let length = 2; length < messages.length; length += isDeep ? 10 : 30) {
        const reduction = trimmer.reduce({ messages: marked(messages.slice(0, length)) });
        const without = plain.reduce({ messages: messages.slice(0, length) });
        expect({ ...reduction, messages: [] }).toEqual({ ...without, messages: [] });
        const sent = sentBy(reduction);
        expect(sent.slice(0, -1)).toEqual(sentBy(without).slice(0, -1));
        expect(sent.at(-1)).toContain("ephemeral");
      }
    }
  });
});

function expectPromises(
  { messages, stats, overflow, isEpoch }: Reduction,
  hazard: WeighedHazard,
  { policy, format }: { policy: PolicyName; format: FormatName },
): void {
  const where = `${policy} at ${stats.budget} of ${hazard.tokens} tokens`;
  const broken = rulesOf(messages, format).filter((rule) => !hazard.rules.includes(rule));
  expect(broken, where).toEqual([]);
  if (hazard.isValid) expect(validateRequest(messages, { format }), where).toEqual([]);
  expect(saidBy(messages, format), where).toEqual(hazard.said);
  // The RFC counts by an estimator of its own.
  if (policy === "rfc" || policy === "rfc-headroom") return;
  expect(stats.after > stats.budget, where).toBe(overflow !== undefined);
  if (stats.budget > 1.1 * hazard.tokens) expect(isEpoch, where).toBe(false);
}

function mark(message: object, marker: object): object {
  const { content } = message as { content: readonly object[] | string };
  if (typeof content === "string") return { ...message, content: [{ type: "text", text: content, ...marker }] };
  return {
    ...message,
    content: content.map((part, index) => (index === content.length - 1 ? { ...part, ...marker } : part)),
  };
}

function rulesOf(messages: readonly object[], format: FormatName): string[] {
  return [...new Set(validateRequest(messages, { format, strict: true }).map(({ rule }) => rule))];
}

/** Everything of the person and the system, in order, save for empty texts, which the RFC's merging takes away. */
function saidBy(messages: readonly object[], format: FormatName): unknown[] {
  const lens = createMessageLens(messages, { counter, format });
  return messages.flatMap((message) => {
    const { role, parts } = lens.read(message, 1);
    if (role === "assistant") return [];
    return parts.filter(isSaid).map(({ kind, pieces }) => [role, kind, pieces]);
  });
}

function isSaid({ kind, pieces }: CountedPart): boolean {
  return kind !== "tool_result" && pieces.some((piece) => !("text" in piece && piece.text === ""));
}
