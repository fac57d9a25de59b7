/** Plays recorded sessions through a wrapped client against the scripted provider, which refuses or drops thinking that does
 *  not fit its prefix: `npm run bench:judge -- FOLDER [--window N] [--models A,B] [--policies A,B] [--fresh] [--known-as MODEL]`.
 *  FOLDER has sessions with one JSON message a line. `--fresh` wraps a new client for each request. With `--known-as`, the
 *  client takes every model for this one. If that one does not bind thinking, as in a table without the new models, the
 *  provider must refuse. Exits with 1 if the provider refused a request or dropped thinking. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { withContextBudget } from "../dist/public/anthropic.js";
import { policyNames } from "../dist/public/history.js";
import { createProvider, playTranscript, readTranscript } from "./provider/provider.mjs";

/** Those that bind thinking, one that no table knows, and names of Bedrock and Vertex. */
const boundModels = [
  ...["claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5", "claude-fable-5-1", "claude-mythos-5-1"],
  ...["claude-fable-5-2", "claude-mythos-5-2", "claude-opus-6"],
  ...["us.anthropic.claude-sonnet-5-5-v1:0", "publishers/anthropic/models/claude-haiku-5-5@20261007"],
];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    window: { type: "string", default: "30000" },
    models: { type: "string", default: boundModels.join() },
    policies: { type: "string", default: policyNames.join() },
    fresh: { type: "boolean", default: false },
    "known-as": { type: "string" },
  },
});
const [folder] = positionals;
if (folder === undefined) {
  process.stderr.write("usage: npm run bench:judge -- FOLDER [--window N] [--models A,B] [--policies A,B] [--fresh]\n");
  process.exit(2);
}
const sessions = readdirSync(folder)
  .filter((name) => name.endsWith(".jsonl"))
  .map((name) => ({ name, transcript: readTranscript(readFileSync(join(folder, name), "utf8")) }));

let found = 0;
for (const policy of values.policies.split(",")) {
  for (const model of values.models.split(",")) {
    const sum = { calls: 0, trims: 0, refused: 0, dropped: 0, failed: 0 };
    for (const { name, transcript } of sessions) {
      const judged = await judge(transcript, { model, policy });
      for (const key of Object.keys(sum)) sum[key] += judged[key];
      for (const problem of judged.problems) process.stderr.write(`${name}: ${problem}\n`);
    }
    const { calls, trims, refused, dropped, failed } = sum;
    found += refused + dropped + failed;
    const counts = `${calls} calls, ${trims} trims, ${refused} refused, ${dropped} dropped, ${failed} failed`;
    process.stdout.write(`${policy}, ${model}: ${sessions.length} sessions, ${counts}\n`);
  }
}
process.exitCode = found === 0 && sessions.length > 0 ? 0 : 1;

/** Without an SDK, so that nothing hides a refusal by a second try, and the provider sees unchanged blocks as the same
 *  objects. */
async function judge(transcript, { model, policy }) {
  const provider = createProvider();
  const sum = { calls: 0, trims: 0, refused: 0, dropped: 0, failed: 0, problems: [] };
  const plain = {
    async post(path, given) {
      const { body } = await given;
      const { status, json } = await provider.handle({ path, body: { ...body, model } });
      if (status !== 200) throw new Error(json.error.message);
      return json;
    },
  };
  const open = () =>
    withContextBudget(plain, {
      policy,
      contextWindow: Number(values.window),
      reserve: 4_000,
      // `rfc` cannot make every history fit. What it sends then must be valid, too.
      onOverflow: "pass",
      onTrim: () => sum.trims++,
    });
  const client = open();
  const thinking = { type: "adaptive", display: "summarized" };
  const settings = { model: values["known-as"] ?? model, max_tokens: 1_000, thinking };
  const send = async (request) => {
    sum.calls++;
    return (values.fresh ? open() : client).post("/v1/messages", { body: { ...settings, ...request } });
  };
  try {
    await playTranscript(transcript, send);
  } catch (error) {
    sum.failed = 1;
    sum.problems.push(String(error));
  }
  for (const { refusal, dropped } of provider.calls) {
    sum.dropped += dropped.length;
    if (refusal !== undefined) sum.refused++;
  }
  return sum;
}
