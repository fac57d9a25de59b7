// biome-ignore-all lint/correctness/useImportExtensions: the file beside provider.mjs has only its types
/** A wrapped client in a long session with thinking, against a provider that binds thinking to its prefix: no policy may
 *  send what the provider refuses or does not read. `npm run bench:judge -- FOLDER` does the same with recorded sessions. */
import Anthropic from "@anthropic-ai/sdk";
import { describe, expect, test } from "vitest";
import { createProvider, playTranscript, readTranscript, type Transcript } from "../../scripts/provider/provider.mjs";
import { type PolicyName, policyNames } from "../../src/conversation/history/index.ts";
import { withContextBudget } from "../../src/conversation/sdk/anthropic.ts";
import { ContextError } from "../../src/core/errors.ts";
import { generateSession } from "../generate/generate-session.ts";

const isDeep = process.env.PLIMSOLL_DEEP === "1";

/** Those that bind thinking, one that no table knows, and names of Bedrock and Vertex. */
const models = [
  ...["claude-opus-5-5", "claude-sonnet-5-5", "claude-opus-6", "claude-haiku-5-5"],
  ...["claude-fable-5-1", "claude-mythos-5-1", "claude-fable-5-2", "claude-mythos-5-2"],
  ...["us.anthropic.claude-sonnet-5-5-v1:0", "publishers/anthropic/models/claude-haiku-5-5@20261007"],
];

const generated = (isDeep ? [1, 2, 3, 4] : [1]).map((seed) => {
  const { messages } = generateSession({ seed, turns: isDeep ? 120 : 60 });
  return { name: `generated ${seed}`, transcript: readTranscript(messages) };
});

interface Run {
  /** The model that the provider runs. */
  readonly model: string;
  /** What the client takes it for. */
  readonly knownAs?: string;
  readonly policy: PolicyName;
  readonly transcript: Transcript;
}

/** Plays a session through a wrapped client and returns what the provider made of it. */
async function judge({ model, knownAs = model, policy, transcript }: Run) {
  const provider = createProvider();
  const fetch: typeof provider.fetch = (url, init) =>
    provider.fetch(url, { ...init, body: JSON.stringify({ ...JSON.parse(String(init?.body)), model }) });
  let trims = 0;
  const client = withContextBudget(new Anthropic({ apiKey: "none", fetch, maxRetries: 0 }), {
    policy,
    contextWindow: 30_000,
    reserve: 4_000,
    onTrim: () => trims++,
  });
  const thinking = { type: "adaptive", display: "summarized" };
  const send = async (request: Transcript) => {
    const body = { model: knownAs, max_tokens: 1_000, thinking, ...request };
    return client.messages.create(body as unknown as Anthropic.MessageCreateParamsNonStreaming);
  };
  const outcome = await playTranscript(transcript, send).catch((error: unknown) => error);
  // Nothing was sent that the provider could refuse: `rfc` cannot make every history fit.
  const isTooLarge = outcome instanceof ContextError && outcome.code === "context_overflow";
  const refusals = provider.refusals().map(({ refusal }) => refusal);
  const errors = outcome instanceof Error && !isTooLarge && refusals.length === 0 ? [outcome] : [];
  const dropped = provider.calls.flatMap((call) => call.dropped);
  return { trims, bad: [...refusals, ...dropped, ...errors] };
}

describe.each(isDeep ? policyNames : (["economic", "rfc"] as const))("%s", (policy) => {
  test.each(isDeep ? models : models.slice(0, 3))(
    "sends only thinking that fits, on %s",
    { timeout: 60_000 },
    async (model) => {
      for (const { name, transcript } of generated) {
        const { trims, bad } = await judge({ model, policy, transcript });
        expect({ name, bad }).toEqual({ name, bad: [] });
        expect(trims).toBeGreaterThan(0);
      }
    },
  );
});

test("a client that takes a model for one that does not bind thinking is refused", { timeout: 60_000 }, async () => {
  const { transcript } = generated[0]!;
  const run = { model: "claude-sonnet-5-5", knownAs: "claude-sonnet-5", policy: "economic", transcript } as const;
  expect((await judge(run)).bad).toContainEqual(expect.stringContaining("bound to a different conversation"));
});
