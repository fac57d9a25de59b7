import { expect, test } from "vitest";
import { generateBilledSession } from "../../../test/generate/billed-sessions.ts";
import { createCounter } from "../../core/tokens/index.ts";
import { readFacts, readRecording } from "../sessions/index.ts";
import type { SessionFacts } from "../sessions/session-facts.ts";
import { billSessions } from "./price-calls.ts";
import { computeWhatIf, variants } from "./what-if.ts";

async function whatIf(text: string, counted: string[] = []) {
  const [billed] = billSessions([readFacts(text) as SessionFacts]);
  if (billed === undefined) throw new Error("no session");
  const { name, count } = await createCounter("estimate:claude-5");
  const counter = {
    name,
    count(each: string) {
      counted.push(each);
      return count(each);
    },
  };
  return computeWhatIf(readRecording(text, { file: "a.jsonl" }), billed, {
    counter,
    prices: {},
    reserve: 16_000,
    keep: 10,
  });
}

test.each([
  ["claude-code", 71],
  ["claude-code", 72],
  ["codex", 73],
] as const)("the simulated bill of a session of %s is within 5 % of the recorded one (%i)", async (agent, seed) => {
  const causes = ["expired", "model", "compaction", "rewound", "unexplained"] as const;
  const result = await whatIf(generateBilledSession({ seed, agent, calls: 30, causes }).text);
  if (typeof result === "string") throw new Error(result);
  expect(Math.abs(result.fit - 1)).toBeLessThanOrEqual(0.05);
  expect(result.variants.length).toBe(variants.length);
  expect(result.variants[0]?.usd).toBe(result.usd);
});

test("a longer lifetime pays if the cache often expires, and costs more if it never does", async () => {
  // Other seeds already write for an hour.
  const options = { seed: 6, agent: "claude-code", calls: 40 } as const;
  expect(generateBilledSession(options).totals.write1h).toBe(0);
  const often = await whatIf(generateBilledSession({ ...options, causes: ["expired"] }).text);
  const never = await whatIf(generateBilledSession({ ...options, causes: ["compaction"] }).text);
  if (typeof often === "string" || typeof never === "string") throw new Error(`${often} ${never}`);
  const ratio = ({ usd, variants: rows }: typeof often) =>
    (rows[variants.findIndex(({ ttl }) => ttl === "1h")]?.usd ?? 0) / usd;
  expect(ratio(never)).toBeGreaterThan(1);
  expect(ratio(often)).toBeLessThan(ratio(never));
});

test("a session is left out if its messages do not explain its usage", async () => {
  const { text } = generateBilledSession({ seed: 9, agent: "claude-code", calls: 30, causes: [] });
  // The provider billed every other call as if nothing had been cached.
  let call = 0;
  const wrong = text.replaceAll(
    /"cache_read_input_tokens":(\d+),"cache_creation_input_tokens":(\d+)/g,
    (found, read, written) =>
      Math.floor(call++ / 2) % 2 === 0
        ? found
        : `"cache_read_input_tokens":${Number(read) + Number(written)},"cache_creation_input_tokens":0`,
  );
  expect(await whatIf(wrong)).toMatch(/^simulated as \d+ % of what was recorded$/);
});

test("each tool result is counted once for all variants", async () => {
  const { text } = generateBilledSession({ seed: 71, agent: "claude-code", calls: 30, causes: [] });
  const counted: string[] = [];
  const result = await whatIf(text, counted);
  if (typeof result === "string") throw new Error(result);
  const long = counted.filter(({ length }) => length > 5000);
  expect(long.length).toBeGreaterThan(20);
  expect(long.length).toBe(new Set(long).size);
});

test("a short session whose first call reads a part of tools and system text is simulated", async () => {
  const { text } = generateBilledSession({ seed: 6, agent: "claude-code", calls: 4, causes: [] });
  // Another session left 80 % of the first prompt in the cache.
  const first = Number(/"cache_creation_input_tokens":(\d+)/.exec(text)?.[1]);
  const read = Math.round(0.8 * first);
  const shared = text
    .replaceAll(
      `"cache_read_input_tokens":0,"cache_creation_input_tokens":${first}`,
      `"cache_read_input_tokens":${read},"cache_creation_input_tokens":${first - read}`,
    )
    .replaceAll(`"ephemeral_5m_input_tokens":${first}`, `"ephemeral_5m_input_tokens":${first - read}`);
  const result = await whatIf(shared);
  if (typeof result === "string") throw new Error(result);
  expect(Math.abs(result.fit - 1)).toBeLessThanOrEqual(0.05);
});

test.each(["resumed", "expired"] as const)("a %s session still reads what the provider kept", async (cause) => {
  const { text, planted } = generateBilledSession({ seed: 31, agent: "claude-code", calls: 14, causes: [cause] });
  expect(planted.length).toBeGreaterThan(0);
  // Another session keeps tools and system text in the cache.
  const kept = text.replaceAll(
    /"cache_read_input_tokens":0,"cache_creation_input_tokens":(\d{5,}),"cache_creation":{"ephemeral_5m_input_tokens":\d+/g,
    (_, written) =>
      `"cache_read_input_tokens":9000,"cache_creation_input_tokens":${written - 9000},"cache_creation":{"ephemeral_5m_input_tokens":${written - 9000}`,
  );
  const result = await whatIf(kept);
  if (typeof result === "string") throw new Error(result);
  expect(Math.abs(result.fit - 1)).toBeLessThanOrEqual(0.05);
});

test("a short session is simulated if its messages count more tokens than the provider billed", async () => {
  const { text } = generateBilledSession({ seed: 6, agent: "claude-code", calls: 4, causes: [] });
  const long = "a line of the instructions that the program sends first, 1234 ".repeat(1200);
  const result = await whatIf(text.replace(/"content":"[^"]*"/, `"content":"${long}"`));
  if (typeof result === "string") throw new Error(result);
  expect(Math.abs(result.fit - 1)).toBeLessThanOrEqual(0.05);
});

test.each([
  ["claude-code", 1, 60, ["history edited"]],
  // Prompts above 272,000 tokens, as the provider counts them, have a higher price.
  ["codex", 4, 200, undefined],
] as const)(
  "a session of %s that was edited or has long prompts is simulated (%i)",
  async (agent, seed, calls, causes) => {
    const result = await whatIf(generateBilledSession({ seed, agent, calls, causes }).text);
    if (typeof result === "string") throw new Error(result);
    expect(Math.abs(result.fit - 1)).toBeLessThanOrEqual(0.01);
  },
);
