// biome-ignore-all lint/correctness/useImportExtensions: the file beside provider.mjs has only its types
/** A wrapped client in a long session with thinking, against a provider that binds thinking to its prefix: no policy may
 *  send what the provider refuses or does not read. PLIMSOLL_TRANSCRIPTS names a folder of recorded sessions, one JSON
 *  message a line; these run too. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
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
const folder = process.env.PLIMSOLL_TRANSCRIPTS;
const recorded = (folder === undefined ? [] : readdirSync(folder).filter((name) => name.endsWith(".jsonl"))).map(
  (name) => ({ name, transcript: readTranscript(readFileSync(join(folder ?? "", name), "utf8")) }),
);

interface Run {
  readonly model: string;
  readonly policy: PolicyName;
  readonly transcript: Transcript;
}

/** Plays a session through a wrapped client and returns what the provider made of it. */
async function judge({ model, policy, transcript }: Run) {
  const provider = createProvider();
  let trims = 0;
  const client = withContextBudget(new Anthropic({ apiKey: "none", fetch: provider.fetch, maxRetries: 0 }), {
    policy,
    contextWindow: 30_000,
    reserve: 4_000,
    onTrim: () => trims++,
  });
  const thinking = { type: "adaptive", display: "summarized" };
  const send = async (request: Transcript) => {
    const body = { model, max_tokens: 1_000, thinking, ...request };
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

const timeout = 60_000 + 30_000 * recorded.length;

describe.each(isDeep ? policyNames : (["economic", "rfc"] as const))("%s", (policy) => {
  const sessions = [...generated, ...recorded];

  test.each(isDeep ? models : models.slice(0, 3))(
    "sends only thinking that fits, on %s",
    { timeout },
    async (model) => {
      for (const { name, transcript } of sessions) {
        const { trims, bad } = await judge({ model, policy, transcript });
        expect({ name, bad }).toEqual({ name, bad: [] });
        if (generated.some((each) => each.name === name)) expect(trims).toBeGreaterThan(0);
      }
    },
  );
});
