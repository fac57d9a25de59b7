/** Measures what cache markers cost with Claude's prices: where they are, beside a person's own markers, and how long they
 *  keep the cache, beside both fixed lifetimes and the best choice in hindsight.
 *
 *    npm run bench:markers -- [--recordings FOLDER]
 *
 *  With a folder of recordings of Claude Code, the sizes and times of their calls are used too. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { chooseLifetime, type LifetimeState } from "../src/conversation/sdk/choose-lifetime.ts";
import { budgetedFetch } from "../src/conversation/sdk/fetch.ts";
import type { MarkerOptions } from "../src/conversation/sdk/place-markers.ts";
import {
  type BillableBlock,
  billableRequest,
  createCacheSimulator,
  priceOf,
  type Ttl,
} from "../src/core/billing/index.ts";
import { createCounter } from "../src/core/tokens/index.ts";

const { values } = parseArgs({ options: { recordings: { type: "string" } } });
const print = (line: string): void => void process.stdout.write(`${line}\n`);
const minute = 60_000;
const counter = await createCounter("estimate:claude-5");
const model = "claude-sonnet-5";
const mark = { cache_control: { type: "ephemeral" } };

function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

function logNormal(random: () => number, median: number, spread: number): number {
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return median * Math.exp(spread * normal);
}

// What comes at the end of each request and is not there in the next one.
const tails = ["none", "block", "message", "inside", "chat"] as const;
type Tail = (typeof tails)[number];

/** Returns the requests of an agent. `hasOwn` puts the markers where a person who knows the client would put them. */
function* writeRequests(tail: Tail, calls: number, hasOwn: boolean): Generator<{ messages: object[] }> {
  const random = createRandom(7);
  const words = (count: number): string =>
    Array.from({ length: count }, () => Math.floor(random() * 46_656).toString(36)).join(" ");
  const history: object[] = [{ role: "user", content: [{ type: "text", text: words(500) }] }];
  for (let call = 0; call < calls; call++) {
    const clock = { type: "text", text: `<reminder>Call ${call}. ${words(60)}</reminder>` };
    yield { messages: withTail(history, tail, hasOwn ? { ...clock, ...mark } : clock) };
    const id = `call_${call}`;
    const answer = { type: "text", text: words(40) };
    const input = { path: words(3) };
    const result = words(Math.round(Math.min(4_000, logNormal(random, 250, 1))));
    if (tail === "chat") history.push({ role: "assistant", content: [answer] });
    else history.push({ role: "assistant", content: [answer, { type: "tool_use", id, name: "read", input }] });
    const next =
      tail === "chat" ? { type: "text", text: result } : { type: "tool_result", tool_use_id: id, content: result };
    history.push({ role: "user", content: [next] });
  }
}

/** A tail that has a marker stands for one without, and a marker on the best place before it. */
function withTail(history: readonly object[], tail: Tail, clock: Readonly<Record<string, unknown>>): object[] {
  const { cache_control: own, ...plain } = clock;
  const marker = own === undefined ? {} : mark;
  const last = history.at(-1) as { role: string; content: Record<string, unknown>[] };
  const isText = tail === "inside" || tail === "chat";
  const before = history.slice(0, -1) as { role: string; content: Record<string, unknown>[] }[];
  const answer = before.at(-1);
  if (isText && answer !== undefined) {
    before[before.length - 1] = { ...answer, content: withLast(answer.content, marker) };
  }
  const shown = { role: "user", content: isText ? last.content : withLast(last.content, marker) };
  if (tail === "none") return [...before, shown];
  if (tail === "message") return [...before, shown, { role: "user", content: [plain] }];
  if (tail === "block") return [...before, { role: "user", content: [...shown.content, plain] }];
  const [block] = shown.content;
  const field = block!.type === "text" ? "text" : "content";
  return [...before, { role: "user", content: [{ ...block, [field]: `${block![field]}\n${plain.text}` }] }];
}

function withLast(content: readonly Record<string, unknown>[], fields: object): Record<string, unknown>[] {
  return content.map((block, index) => (index === content.length - 1 ? { ...block, ...fields } : block));
}

interface Client extends MarkerOptions {
  readonly hasOwn?: boolean;
  readonly isFresh?: boolean;
  /** Whether the only markers are after the system text and at the end. */
  readonly hasEnd?: boolean;
}

/** Sends the requests through a wrapped `fetch`, and returns what the simulated cache bills. */
async function costOf(tail: Tail, client: Client): Promise<number> {
  const { hasOwn = false, isFresh = false, hasEnd = false, ...options } = client;
  const simulator = createCacheSimulator({ provider: "anthropic", model });
  let cost = 0;
  const bill: typeof fetch = async (_input, init) => {
    cost += simulator.bill(billableRequest(JSON.parse(String(init?.body)), { counter })).cost;
    return Response.json({});
  };
  const create = (): typeof fetch => budgetedFetch(bill, { contextWindow: 1_000_000, ...options });
  const kept = create();
  const system = `You are careful. ${"Rules follow. ".repeat(1_500)}`;
  for (const { messages } of writeRequests(tail, 100, hasOwn)) {
    const own = hasOwn || hasEnd ? [{ type: "text", text: system, ...mark }] : system;
    const whole = { model, max_tokens: 1_000, system: own, messages, ...(hasEnd && mark) };
    const body = JSON.stringify(whole);
    await (isFresh ? create() : kept)("http://localhost/v1/messages", { method: "POST", body });
  }
  return cost;
}

interface TimedCall {
  readonly atMs: number;
  readonly tokens: number;
}

const people = ["interactive", "unattended", "mixed", "short"] as const;

/** Times as in recordings: calls a few seconds apart; a person who answers after some minutes, or much later; and for
 *  an agent on its own a slow command once in 250 calls. A short session is an interactive one of 30 calls. */
function writeTimes(kind: (typeof people)[number], seed: number): TimedCall[] {
  const random = createRandom(seed);
  let [atMs, tokens] = [0, 20_000 + random() * 50_000];
  return Array.from({ length: kind === "short" ? 30 : 150 }, (_, index) => {
    const call = { atMs, tokens: Math.round(tokens) };
    tokens += Math.min(30_000, logNormal(random, 750, 1.1));
    const hasPerson = kind === "mixed" ? Math.floor(index / 40) % 2 === 1 : kind !== "unattended";
    let minutes = Math.min(4.5, logNormal(random, 0.15, 1));
    if (hasPerson && random() < 0.12) minutes = logNormal(random, 4, 1.4);
    else if (!hasPerson && random() < 0.004) minutes = 5 + random() * 5;
    atMs += minutes * minute;
    return call;
  });
}

function readTimes(file: string): TimedCall[] {
  const calls = new Map<string, TimedCall>();
  for (const line of readFileSync(file, "utf8").split("\n")) {
    if (!line.includes('"usage"')) continue;
    const { type, isSidechain, timestamp, message } = JSON.parse(line);
    if (type !== "assistant" || isSidechain || message.model === "<synthetic>" || calls.has(message.id)) continue;
    const { input_tokens, cache_read_input_tokens, cache_creation_input_tokens } = message.usage;
    const tokens = input_tokens + cache_read_input_tokens + cache_creation_input_tokens;
    calls.set(message.id, { atMs: Date.parse(timestamp), tokens });
  }
  return [...calls.values()].toSorted((first, second) => first.atMs - second.atMs);
}

interface LifetimeCost {
  readonly cost: number;
  readonly hours: number;
}

/** Bills the calls with the simulated cache. The first two calls do not count. */
function costOfLifetime(calls: readonly TimedCall[], read: number, lifetime: Ttl | "auto"): LifetimeCost {
  const price = { ...priceOf({ provider: "anthropic", model }), read };
  const prices = { [model]: { input: 1, output: 5, cache_read: read, cache_write_5m: 1.25, cache_write_1h: 2 } };
  const simulator = createCacheSimulator({ provider: "anthropic", model, prices });
  let state: LifetimeState | undefined;
  let [cost, hours, anchor] = [0, 0, -1];
  for (const [index, { blocks, isRewritten, atMs, tokens }] of writeBlocks(calls).entries()) {
    const chosen = chooseLifetime(state, { nowMs: atMs, tokens, isRewritten }, price);
    state = chosen.state;
    const ttl = lifetime === "auto" ? chosen.ttl : lifetime;
    const end = blocks.length - 1;
    const places = lifetime === "auto" && anchor >= 0 && !isRewritten ? [anchor, end] : [end];
    const bill = simulator.bill({ blocks, breakpoints: places.map((after) => ({ after, ttl })), startMs: atMs });
    if (index >= 2) cost += bill.cost;
    if (isRewritten) anchor = -1;
    if (ttl === "1h") [hours, anchor] = [hours + 1, end];
  }
  return { cost, hours };
}

interface BilledCall extends TimedCall {
  readonly blocks: readonly BillableBlock[];
  readonly isRewritten: boolean;
}

/** Each call adds three blocks. After a compaction nothing of the history is left; a few tokens less are a reminder that
 *  is gone. */
function writeBlocks(calls: readonly TimedCall[]): BilledCall[] {
  let [blocks, size]: [readonly BillableBlock[], number] = [[], 0];
  return calls.map((call, index) => {
    const isRewritten = call.tokens < size * 0.98;
    if (isRewritten) [blocks, size] = [[], 0];
    const added = Math.max(0, call.tokens - size);
    const kinds = added === 0 ? [] : (["thinking", "tool_call", "tool_result"] as const);
    blocks = [...blocks, ...kinds.map((kind) => ({ key: `${index} ${kind}`, tokens: added / kinds.length, kind }))];
    size += added;
    return { ...call, blocks, isRewritten };
  });
}

/** Returns the least that the calls can cost if all pauses are known in advance. With `isCautious`, no call that finds
 *  nothing in the cache may write for an hour: such an hour pays only if the very next gap is a pause. */
function costInHindsight(calls: readonly TimedCall[], read: number, isCautious: boolean): number {
  const { rules, write5m, write1h } = priceOf({ provider: "anthropic", model });
  // The least cost so far by the tokens that the cache has for an hour.
  let costs = new Map([[0, 0]]);
  let last = { atMs: Number.NEGATIVE_INFINITY, tokens: 0 };
  for (const [index, { blocks, isRewritten, atMs }] of writeBlocks(calls).entries()) {
    const tokens = blocks.reduce((sum, block) => sum + block.tokens, 0);
    const gapMs = isRewritten ? Number.POSITIVE_INFINITY : atMs - last.atMs;
    const next = new Map<number, number>();
    const keep = (anchor: number, cost: number): unknown =>
      next.set(anchor, Math.min(cost, next.get(anchor) ?? Number.POSITIVE_INFINITY));
    for (const [written, before] of costs) {
      const anchor = gapMs < rules.lifetimeMs["1h"] ? written : 0;
      const found = gapMs < rules.lifetimeMs["5m"] ? last.tokens : anchor;
      const costWith = (write: number): number => before + (index < 2 ? 0 : read * found + write * (tokens - found));
      keep(anchor, costWith(write5m));
      if (found > 0 || !isCautious) keep(tokens, costWith(write1h));
    }
    [costs, last] = [next, { atMs, tokens }];
  }
  return Math.min(...costs.values());
}

interface Session {
  readonly name: string;
  readonly calls: readonly TimedCall[];
}

/** Prints the sums of all sessions, how single sessions compare with their better fixed lifetime, and the recordings
 *  that cost more than 1.02 of it. */
function compareLifetimes(name: string, sessions: readonly Session[]): void {
  for (const read of [0.1, 0.05, 0.025]) {
    const sums = [0, 0, 0, 0, 0];
    let hours = 0;
    const billed = sessions.map((session) => {
      const [short, long, auto] = (["5m", "1h", "auto"] as const).map((each) =>
        costOfLifetime(session.calls, read, each),
      );
      const hindsight = [true, false].map((isCautious) => costInHindsight(session.calls, read, isCautious));
      const costs = [short!.cost, long!.cost, auto!.cost, ...hindsight];
      for (const [column, cost] of costs.entries()) sums[column]! += cost;
      hours += auto!.hours;
      const better = Math.min(short!.cost, long!.cost);
      return { name: session.name, ratios: costs.slice(2).map((cost) => cost / better) };
    });
    const ratios = billed.map((each) => each.ratios[0]!).toSorted((first, second) => first - second);
    const above = billed.filter((each) => each.ratios[0]! > 1.02);
    const calls = sessions.reduce((count, session) => count + session.calls.length, 0);
    const millions = sums.slice(0, 3).map((cost) => `${(cost / 1e6).toFixed(2)}M`.padStart(9));
    const shares = sums.slice(2).map((cost) => cost / Math.min(sums[0]!, sums[1]!));
    const spread = [0.5, 0.95, 1].map((part) => ratios[Math.min(ratios.length - 1, Math.floor(part * ratios.length))]!);
    const rest = [...shares, ...spread, above.length / billed.length, hours / calls];
    const columns = [...millions, ...rest.map((each) => each.toFixed(3).padStart(9))];
    print(`${name.padEnd(12)}${String(read).padEnd(6)}${columns.join("")}`);
    if (name !== "recordings") continue;
    for (const each of above) {
      const columns = each.ratios.map((ratio) => ratio.toFixed(3).padStart(9));
      print(`  ${each.name.padEnd(43)}${columns.join("")}`);
    }
  }
}

print("tail       no markers   at the end         own        auto   ÷ none    ÷ own   new client ÷ auto");
for (const tail of tails) {
  const none = await costOf(tail, { breakpoints: "none" });
  const end = await costOf(tail, { breakpoints: "none", hasEnd: true });
  const own = await costOf(tail, { breakpoints: "none", hasOwn: true });
  const auto = await costOf(tail, { ttl: "5m" });
  const fresh = await costOf(tail, { ttl: "5m", isFresh: true });
  const millions = [none, end, own, auto].map((cost) => `${(cost / 1e6).toFixed(3)}M`.padStart(12)).join("");
  const ratios = [auto / none, auto / own, fresh / auto].map((each) => each.toFixed(3).padStart(9)).join("");
  print(`${tail.padEnd(9)}${millions}${ratios}`);
}
print("");
print("                                              ÷ better fixed lifetime    single sessions");
print(
  "pauses      read  5 minutes   1 hour     auto     auto cautious     best      p50      p95    worst    >1.02    hours",
);
for (const kind of people)
  compareLifetimes(
    kind,
    Array.from({ length: 200 }, (_, index) => ({ name: String(index), calls: writeTimes(kind, index + 1) })),
  );
if (values.recordings !== undefined) {
  const folder = values.recordings;
  const files = readdirSync(folder).filter((name) => name.endsWith(".jsonl"));
  compareLifetimes(
    "recordings",
    files.map((name) => ({ name, calls: readTimes(join(folder, name)) })),
  );
}
