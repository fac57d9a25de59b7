// biome-ignore-all lint/correctness/useImportExtensions: the file beside provider.mjs has only its types
/** A wrapped client whose history is rewound, forked and resumed by another process, with results that the intake shortens
 *  and gives back, against a provider that binds thinking to its prefix. */
import Anthropic from "@anthropic-ai/sdk";
import { expect, test } from "vitest";
import { createProvider, type Message, readTranscript } from "../../scripts/provider/provider.mjs";
import { policyNames } from "../../src/conversation/history/index.ts";
import { withContextBudget } from "../../src/conversation/sdk/anthropic.ts";
import { createMemoryStore } from "../../src/core/store/index.ts";
import { caseCount } from "../case-count.ts";
import { createRandom, type Random } from "../generate/content/random.ts";
import { generateSession } from "../generate/generate-session.ts";

const isDeep = process.env.PLIMSOLL_DEEP === "1";
// The first two are enough to find results that keep their originals after a rewind.
const allSeeds = [1, 11, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 15, 16, 17, 18, 19, 20];
const seeds = allSeeds.slice(0, caseCount({ few: 2, deep: 8, long: 20 }));
const thinking = { type: "adaptive", display: "summarized" };

interface Walk {
  readonly seed: number;
  readonly policy: (typeof policyNames)[number];
}

/** Plays a session in which the person goes back at random. Returns what the provider refused or did not read. */
async function walk({ seed, policy }: Walk) {
  const random = createRandom(seed);
  const provider = createProvider();
  const store = createMemoryStore();
  let trims = 0;
  const open = () =>
    withContextBudget(new Anthropic({ apiKey: "none", fetch: provider.fetch, maxRetries: 0 }), {
      ...{ policy, contextWindow: 20_000, reserve: 2_000, intake: true, store, sessionIdOf: () => "walk" },
      onTrim: () => trims++,
    });
  const { messages: recorded, ...fixed } = readTranscript(generateSession({ seed, turns: 70 }).messages);
  let client = open();
  let messages: Message[] = [];
  for (let step = 0; step < 110; step++) {
    if (random.chance(0.06)) messages = back(messages, random);
    if (random.chance(0.05)) client = open();
    while (recorded[messages.length]?.role === "user") messages.push(recorded[messages.length] as Message);
    const answer = recorded[messages.length];
    if (answer === undefined) break;
    const body = { model: "claude-opus-5-5", max_tokens: 1_000, thinking, ...fixed, messages: [...messages] };
    const asked = client.messages.create(body as unknown as Anthropic.MessageCreateParamsNonStreaming);
    const given = await asked.catch((error: unknown) => error as Error);
    // Nothing was sent: no policy can make every history fit. A refusal is in the provider's list.
    if (given instanceof Error) break;
    messages.push({ role: "assistant", content: [...given.content.filter(isThinking), ...answer.content] });
  }
  const dropped = provider.calls.flatMap((call) => call.dropped.filter(({ reason }) => reason.startsWith("prefix")));
  return { trims, bad: [...provider.refusals().map(({ refusal }) => refusal), ...dropped] };
}

/** A rewind to an earlier place, or a fork: there the person also says something else. */
function back(messages: readonly Message[], random: Random): Message[] {
  const asked = messages.flatMap(({ role }, index) => (role === "user" ? [index] : [])).slice(-12);
  const kept = messages.slice(0, random.pick(asked.length > 0 ? asked : [0]) + 1);
  const last = kept.pop();
  if (last === undefined) return [];
  const isFork = random.chance(0.5);
  return [...kept, isFork ? { ...last, content: [...last.content, { type: "text", text: "Think again." }] } : last];
}

function isThinking({ type }: { readonly type: string }): boolean {
  return type === "thinking" || type === "redacted_thinking";
}

// A trimmer that derives the epochs of an unknown history may put one where none was sent, for instance because usage has
// corrected the budget since. Thinking that was made without it is then refused. Flip this test when that is repaired: it
// passed for all policies and 20 seeds before epochs were derived.
test.each(isDeep ? policyNames : (["economic"] as const))(
  "%s sends only thinking that fits after rewinds, forks and restarts",
  { timeout: 60_000 * (isDeep ? 10 : 1) },
  async (policy) => {
    let allTrims = 0;
    for (const seed of seeds) {
      const { trims, bad } = await walk({ seed, policy });
      expect({ seed, bad }).toEqual({ seed, bad: [] });
      allTrims += trims;
    }
    expect(allTrims).toBeGreaterThan(seeds.length);
  },
);
