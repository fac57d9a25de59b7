import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { answerLine, createTranscripts, type Transcripts } from "./claude-transcripts.ts";
import { createSandbox, mainFile, type Sandbox } from "./run-plimsoll.ts";

let sandbox: Sandbox;
let transcripts: Transcripts;

beforeEach(() => {
  sandbox = createSandbox();
  transcripts = createTranscripts(sandbox.home);
});
afterEach(() => sandbox.remove());

function statusInput(more: object = {}): string {
  return JSON.stringify({
    ...{ session_id: "s1", transcript_path: transcripts.file(), cwd: sandbox.cwd },
    context_window: { total_input_tokens: 28_320, context_window_size: 200_000, used_percentage: 14 },
    ...more,
  });
}

const plain = { NO_COLOR: "1" };

test("its help is frozen", async () => {
  const { stdout } = await sandbox.call(["statusline", "--help"]);
  await expect(stdout).toMatchFileSnapshot("golden/help-statusline.txt");
});

test("shows context, cache, money of the session with its sub-agents, and money of today", async () => {
  const cached = { input_tokens: 0, cache_read_input_tokens: 90_000, cache_creation_input_tokens: 10_000 };
  transcripts.add("s1", answerLine({ id: "a" }) + answerLine({ id: "b", usage: cached }));
  transcripts.addToAgent("s1", "x", answerLine({ id: "c" }));
  transcripts.add("s2", answerLine({ id: "d", session: "s2" }));
  const { code, stdout, stderr } = await sandbox.run(["statusline"], { input: statusInput(), env: plain });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toMatch(
    /^context 28\.3k of 200k \(14%\) · cache 45% · session \$0\.66 · today \$0\.96 · cache cold in 4:5\d · next prompt then \$0\.38\n$/,
  );
});

test("counts an answer once that is written in several lines, copied to a fork, or reported early", async () => {
  const early = answerLine({ id: "a", usage: { input_tokens: 100_000, output_tokens: 1 } });
  const late = answerLine({ id: "a", usage: { input_tokens: 100_000, output_tokens: 10_000 } });
  transcripts.add("s1", early + late + late);
  transcripts.add("s2", late.replaceAll('"s1"', '"s2"') + answerLine({ id: "b", session: "s2" }));
  const json = await statusOf(statusInput());
  expect(json).toMatchObject({ session: { usd: expect.closeTo(0.45, 6) }, today: { usd: expect.closeTo(0.75, 6) } });
});

test("leaves answers of other days out of today", async () => {
  const yesterday = new Date(Date.now() - 86_400_000);
  transcripts.add("s1", answerLine({ id: "a", time: yesterday }) + answerLine({ id: "b" }));
  transcripts.add("s2", answerLine({ id: "c", session: "s2", time: yesterday }));
  transcripts.age("s2", yesterday);
  const json = await statusOf(statusInput());
  expect(json).toMatchObject({ session: { usd: expect.closeTo(0.6, 6) }, today: { usd: expect.closeTo(0.3, 6) } });
});

test("an answer counts also if its line has no id of its own", async () => {
  const { uuid: _, parentUuid: __, ...line } = JSON.parse(answerLine({ id: "a" }));
  transcripts.add("s1", `${JSON.stringify(line)}\n`.repeat(2));
  expect(await statusOf(statusInput())).toMatchObject({ session: { usd: expect.closeTo(0.3, 6) } });
});

test("reads what a transcript has more since the last run, also a line that was half written", async () => {
  const line = answerLine({ id: "b" });
  transcripts.add("s1", answerLine({ id: "a" }) + line.slice(0, 100));
  expect(await statusOf(statusInput())).toMatchObject({ session: { usd: expect.closeTo(0.3, 6) } });
  transcripts.add("s1", line.slice(100));
  expect(await statusOf(statusInput())).toMatchObject({ session: { usd: expect.closeTo(0.6, 6) } });
  // A few new lines are read again each time. The index is written when they have become many.
  transcripts.add("s1", `${JSON.stringify({ type: "user", message: { content: "x".repeat(70_000) } })}\n`);
  expect(await statusOf(statusInput())).toMatchObject({ session: { usd: expect.closeTo(0.6, 6) } });
  const index = join(sandbox.home, ".local/state/plimsoll/recordings/recent-2.jsonl");
  expect(statSync(index).mode & 0o777).toBe(0o600);
  const [head = "", entry = ""] = readFileSync(index, "utf8").split("\n");
  const known = JSON.parse(entry);
  expect(known).toMatchObject({ path: transcripts.file(), facts: { ids: { length: 2 } } });
  const changes = [
    ...[{ facts: {} }, { offset: -1 }, { offset: null }, { offset: 1e9 }, { size: "1", tail: 3 }, { tail: "x" }],
    ...[{ state: "{ damaged" }, { state: undefined }, { path: null }, { path: 7 }],
  ].map((change) => `${head}\n${JSON.stringify({ ...known, ...change })}\n`);
  const heads = ["{ damaged", "null", '{"list":3}', '{"list":{"files":null}}'].map((each) => `${each}\n${entry}\n`);
  for (const [round, damaged] of ["{ damaged", "", ...heads, ...changes].entries()) {
    writeFileSync(index, damaged);
    transcripts.add("s1", answerLine({ id: `c${round}` }));
    const usd = expect.closeTo(0.3 * (round + 3), 6);
    expect(await statusOf(statusInput()), damaged).toMatchObject({ session: { usd }, today: { usd } });
  }
});

test("shows saved tokens, and the cause and the price of the last loss of the cache", async () => {
  const time = new Date();
  const usage = { input_tokens: 0, cache_creation_input_tokens: 200_000 };
  transcripts.add("s1", answerLine({ id: "a", time, usage }));
  const folder = join(sandbox.home, ".local/state/plimsoll/saved-tokens");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "s1.json"), '{"savedTokens":12400}');
  const last = { last_miss_at: Math.floor(time.getTime() / 1000), last_miss_cause: { causes: ["tools_changed"] } };
  const input = statusInput({ prompt_cache: { misses: 3, miss_recache_tokens: 300_000, ...last } });
  const { stdout } = await sandbox.run(["statusline"], { input, env: plain });
  // A write costs $3.75 and a read $0.30 for a million tokens.
  expect(stdout).toContain(" · saved 12.4k tokens · cache lost: tools changed, 200k tokens written again (+$0.69) · ");
});

test("says that dollars are about right if a price is not known, and that a subscription pays otherwise", async () => {
  transcripts.add("s1", answerLine({ id: "a", model: "my-own-model" }));
  const input = statusInput({ rate_limits: { five_hour: { used_percentage: 3, resets_at: 1 } } });
  const { stdout } = await sandbox.run(["statusline"], { input, env: plain });
  expect(stdout).toMatch(/session about \$\d+\.\d\d · today about \$\d+\.\d\d · at API prices\n$/);
});

test("uses the user's own prices", async () => {
  const config = join(sandbox.home, ".config/plimsoll/config.yaml");
  mkdirSync(join(config, ".."), { recursive: true });
  writeFileSync(config, "prices: { my-own-model: { input: 10, output: 1 } }\n");
  transcripts.add("s1", answerLine({ id: "a", model: "my-own-model" }));
  expect(await statusOf(statusInput())).toMatchObject({ session: { usd: expect.closeTo(1, 6), isPriced: true } });
});

test("has colours in a pipe unless NO_COLOR is set", async () => {
  const { stdout } = await sandbox.run(["statusline"], { input: statusInput() });
  expect(stdout).toContain("\u001b[32mcontext 28.3k of 200k (14%)\u001b[0m");
});

test("never fails on input that is empty, cut off or of another shape", async () => {
  const inputs = [
    "",
    "{",
    "null",
    "[]",
    '"x"',
    '{"transcript_path":7,"context_window":[],"prompt_cache":3,"cost":null}',
  ];
  for (const input of [...inputs, statusInput().slice(0, 80), statusInput({ transcript_path: "/nowhere/x.jsonl" })]) {
    const { code, stdout, stderr } = await sandbox.call(["statusline"], { input, env: plain });
    expect({ input, code, stderr }).toEqual({ input, code: 0, stderr: "" });
    expect(stdout.split("\n")).toHaveLength(2);
  }
  const { code, stdout } = await sandbox.run(["statusline"], { env: plain });
  expect({ code, stdout }).toEqual({ code: 0, stdout: "today $0.00\n" });
});

test("a status line costs at most twice what starting Node costs", { tags: ["perf"], timeout: 120_000 }, () => {
  const lines = Array.from({ length: 400 }, (_, index) => answerLine({ id: `m${index}` }) + otherLine(index));
  transcripts.add("s1", lines.join(""));
  for (let index = 0; index < 100; index++) transcripts.add(`o${index}`, answerLine({ id: `o${index}` }));
  const input = statusInput();
  let [bare, status] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let round = 0; round < 5 || (round < 200 && status / bare > 2); round++) {
    transcripts.add("s1", answerLine({ id: `n${round}` }) + otherLine(round));
    bare = Math.min(bare, timeOf(["-e", "0"], input));
    status = Math.min(status, timeOf([mainFile, "statusline"], input));
  }
  console.log(`node -e 0: ${bare.toFixed(1)} ms, status line: ${status.toFixed(1)} ms`);
  expect(status / bare).toBeLessThanOrEqual(2);
});

async function statusOf(input: string): Promise<unknown> {
  const { code, stdout, stderr } = await sandbox.call(["statusline", "--json"], { input });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout);
}

/** Most of a transcript is text. */
function otherLine(index: number): string {
  return `${JSON.stringify({ type: "user", uuid: `u${index}`, message: { role: "user", content: "text ".repeat(2_000) } })}\n`;
}

function timeOf(args: readonly string[], input: string): number {
  const start = performance.now();
  const { status } = spawnSync(process.execPath, args, { input, env: sandbox.env, cwd: sandbox.cwd });
  expect(status).toBe(0);
  return performance.now() - start;
}

test("counts down to a cold cache with the price of the next prompt, and says when it is cold", async () => {
  const time = (secondsAgo: number) => new Date(Date.now() - secondsAgo * 1000);
  const usage = { input_tokens: 0, cache_read_input_tokens: 300_000, cache_creation_input_tokens: 100_000 };
  transcripts.add("s1", answerLine({ id: "a", time: time(110), usage }));
  const { stdout } = await sandbox.call(["statusline"], { input: statusInput(), env: plain });
  // 400,000 tokens at $3.75 for a million.
  expect(stdout).toMatch(/ · cache cold in 3:(?:10|09|08) · next prompt then \$1\.50/);
  transcripts.add("s2", answerLine({ id: "b", session: "s2", time: time(430), usage }));
  const input = statusInput({ session_id: "s2", transcript_path: transcripts.file("s2") });
  const cold = await sandbox.call(["statusline"], { input, env: plain });
  expect(cold.stdout).toMatch(/ · cache cold since 2:1[0-2] · next prompt \$1\.50/);
  const reported = { expires_at: Math.floor(Date.now() / 1000) + 3_700, ttl: "1h", recache_tokens_if_cold: 100_000 };
  const hour = await sandbox.call(["statusline"], { input: statusInput({ prompt_cache: reported }), env: plain });
  expect(hour.stdout).toContain(" · cache cold in 1h01 · next prompt then $0.60");
});

test("says in dollars what the plugin saved in the session and in the week", async () => {
  const at = Date.now() - 60_000;
  const usage = { input_tokens: 0, cache_read_input_tokens: 90_000, cache_creation_input_tokens: 10_000 };
  const usageOf = (more: number) => ({ ...usage, cache_read_input_tokens: 90_000 + more });
  for (const [index, more] of [0, 0, 1_000, 21_000].entries())
    transcripts.add("s1", answerLine({ id: `m${index}`, time: new Date(at + index * 1000), usage: usageOf(more) }));
  const folder = join(sandbox.home, ".local/state/plimsoll/saved-tokens");
  mkdirSync(folder, { recursive: true });
  // The provider counts 20,000 tokens where we count 25,000, and 80,000 where we count 100,000.
  const edits = [
    [at + 1500, 100_000, 100],
    [at + 2500, 0, 25_000],
  ];
  const savings = { savedTokens: 100_000, edits, isTrimmed: false };
  writeFileSync(join(folder, "s1.json"), JSON.stringify(savings));
  writeFileSync(join(folder, "s0.usd"), "1");
  // Written once for $0.30 with the third answer, and read once for $0.024 with the fourth.
  const { stdout } = await sandbox.call(["statusline"], { input: statusInput(), env: plain });
  expect(stdout).toContain(" · saved $0.32 (55 %) in this session, $1.32 this week");
  // Nobody knows what the requests of a trimmed history would have been.
  writeFileSync(join(folder, "s1.json"), JSON.stringify({ ...savings, isTrimmed: true }));
  const trimmed = await sandbox.call(["statusline"], { input: statusInput(), env: plain });
  expect(trimmed.stdout).toContain(" · saved 100k tokens");
});
