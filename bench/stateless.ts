/** Measures what it costs to wrap a new client for each request, as a serverless function does, or to take two clients in
 *  turn, beside one client for the whole conversation: `npm run bench:stateless -- [--transcripts DIR] [--only TEXT] [--quick]`.
 *  A simulated cache bills each request. `--only` runs the rows whose name contains TEXT. */
import { parseArgs } from "node:util";
import { type Checkpoint, createTrimmer } from "../src/conversation/history/index.ts";
import { contextBudgetMiddleware } from "../src/conversation/sdk/ai-sdk.ts";
import { withContextBudget as wrapAnthropic } from "../src/conversation/sdk/anthropic.ts";
import { withContextBudget as wrapOpenAi } from "../src/conversation/sdk/openai.ts";
import {
  type BillableRequest,
  billableRequest,
  createCacheSimulator,
  type Provider,
} from "../src/core/billing/index.ts";
import { countMessages, countTools, type FormatName, hashMessage } from "../src/core/messages/index.ts";
import { createCounter } from "../src/core/tokens/index.ts";
import { renderTable } from "../src/host/print/table.ts";
import { convertMessages } from "../test/generate/convert/convert-messages.ts";
import { generateSession } from "../test/generate/generate-session.ts";
import type { SessionMessage } from "../test/generate/session-message.ts";
import { readSessions } from "./history/bench-session.ts";

const counter = await createCounter("estimate:claude-5");

type Body = Readonly<Record<string, unknown>>;

interface Session {
  readonly messages: readonly SessionMessage[];
  /** How many messages each request has. */
  readonly calls: readonly number[];
}

/** Sends a request through a wrapped client, and returns what reached the provider. */
type Send = (body: Body) => Promise<Body>;

/** What a request has beside its messages. */
interface Settings {
  readonly system: string;
  readonly maxTokens: number;
  readonly tools: readonly string[];
}

/** A way to send requests. */
interface Door {
  readonly name: string;
  readonly format: FormatName;
  readonly provider: Provider;
  readonly model: string;
  open(options: Budget): Send;
  request(messages: readonly object[], settings: Settings): Body;
  bill(sent: Body): BillableRequest;
}

interface Budget {
  readonly contextWindow: number;
  readonly maxConversations?: number;
  readonly onOverflow: "pass";
}

const line = "Read a file before you change it, and run the tests after a change.\n";
const schema = { type: "object" };
const described = (name: string): object => ({ name, description: line.repeat(8) });

const anthropic: Door = {
  name: "anthropic",
  format: "anthropic",
  provider: "anthropic",
  model: "claude-sonnet-5",
  open: (options) => through((client) => wrapAnthropic(client, options), "/v1/messages"),
  request: (messages, { system, maxTokens, tools }) => ({
    model: anthropic.model,
    max_tokens: maxTokens,
    system,
    tools: tools.map((name) => ({ ...described(name), input_schema: schema })),
    messages,
  }),
  bill: (sent) => billableRequest(sent, { counter, format: "anthropic" }),
};

const openai: Door = {
  name: "openai",
  format: "openai",
  provider: "openai",
  model: "gpt-5",
  open: (options) => through((client) => wrapOpenAi(client, options), "/chat/completions"),
  request: (messages, { system, maxTokens, tools }) => ({
    model: openai.model,
    max_completion_tokens: maxTokens,
    tools: tools.map((name) => ({ type: "function", function: { ...described(name), parameters: schema } })),
    messages: [{ role: "system", content: system }, ...messages],
  }),
  bill: (sent) => billableRequest(sent, { counter, format: "openai" }),
};

const chatRoute: Door = {
  ...openai,
  name: "ai-sdk",
  format: "ai-sdk",
  open: throughMiddleware,
  request: (messages, { system, maxTokens, tools }) => ({
    maxOutputTokens: maxTokens,
    tools: tools.map((name) => ({ type: "function", ...described(name), inputSchema: schema })),
    prompt: [{ role: "system", content: system }, ...messages],
  }),
  bill: billPrompt,
};

const doors: readonly Door[] = [
  anthropic,
  openai,
  chatRoute,
  {
    ...anthropic,
    name: "anthropic, intake",
    open: (options) => through((client) => wrapAnthropic(client, { ...options, intake: true }), "/v1/messages"),
  },
  { ...anthropic, name: "trim, no checkpoint", open: throughTrimmer },
];

type Post = { post(path: string, options?: unknown): unknown };

function through(wrap: (client: Post) => Post, path: string): Send {
  let sent: Body = {};
  const client = wrap({
    async post(_path, given) {
      sent = ((await given) as { body: Body }).body;
    },
  });
  return async (body) => {
    await client.post(path, { body });
    return sent;
  };
}

function throughMiddleware(options: Budget): Send {
  const { transformParams } = contextBudgetMiddleware(options);
  const transform = transformParams as unknown as (given: object) => Promise<Body>;
  return (params) => transform({ type: "generate", params, model: { modelId: openai.model } });
}

/** As the command `trim` does. */
function throughTrimmer({ contextWindow }: Budget): Send {
  const trimmer = createTrimmer({ contextWindow, model: anthropic.model, format: "anthropic" });
  return async (body) => {
    const { messages } = (await trimmer).reduce(body as { messages: readonly object[] });
    return { ...body, cache_control: { type: "ephemeral" }, messages };
  };
}

/** A model behind the AI SDK gets one block for each message. */
function billPrompt({ tools, prompt }: Body): BillableRequest {
  const format = "ai-sdk";
  const given = tools as readonly object[];
  const first = { key: JSON.stringify(tools), tokens: countTools(given, counter, { format }), kind: "prefix" as const };
  const blocks = (prompt as readonly object[]).map((message) => ({
    key: JSON.stringify(message),
    tokens: countMessages([message], counter, { format }),
    kind: "text" as const,
  }));
  return { blocks: given.length === 0 ? blocks : [first, ...blocks], breakpoints: [] };
}

interface Variation {
  readonly name: string;
  settings(call: number): Settings;
}

const usual: Settings = { system: line.repeat(400), maxTokens: 8_000, tools: [] };
const variations: readonly Variation[] = [
  { name: "same settings", settings: () => usual },
  {
    name: "system ±400 tokens",
    settings: (call) => ({ ...usual, system: usual.system + "word ".repeat((call * 137) % 400) }),
  },
  { name: "max_tokens changes", settings: (call) => ({ ...usual, maxTokens: 1_000 * (1 + (call % 16)) }) },
  {
    name: "a tool is added",
    settings: (call) => ({ ...usual, tools: ["read", "edit", ...(call > 20 ? ["search"] : [])] }),
  },
];

/** Who takes the next request: always the same client, a new one, or two in turn. */
const lives = ["one client", "new clients", "two clients"] as const;
type Life = (typeof lives)[number];

const { values } = parseArgs({
  options: {
    transcripts: { type: "string" },
    only: { type: "string", default: "" },
    quick: { type: "boolean", default: false },
  },
});
const window = 64_000;
const sessions =
  values.transcripts === undefined ? generate(values.quick ? 1 : 2, 120) : await recorded(values.transcripts);

function generate(count: number, turns: number): Session[] {
  return Array.from({ length: count }, (_each, seed) => {
    const { messages } = generateSession({ seed: seed + 1, turns, profile: "coding" });
    const calls = messages.flatMap(({ role }, index) => (index > 0 && role === "assistant" ? index : []));
    return { messages, calls };
  });
}

async function recorded(directory: string): Promise<Session[]> {
  const { sessions: read } = await readSessions(directory, counter);
  return read.map(({ prepared: { messages, calls } }) => ({ messages: messages.map(withBlocks), calls }));
}

/** Conversions read lists of blocks. */
function withBlocks(message: object): SessionMessage {
  const { content } = message as { content: unknown };
  return { ...message, ...(typeof content === "string" && { content: [{ type: "text", text: content }] }) } as never;
}

interface Run {
  readonly cost: number;
  /** Hashes of the messages of each request. */
  readonly sent: readonly string[];
}

interface Case {
  readonly door: Door;
  readonly variation: Variation;
  readonly life: Life;
}

/** Sends all requests of a session. */
async function play(session: Session, { door, variation, life }: Case): Promise<Run> {
  const conversation = openConversation(session, door);
  const open = (): Send => door.open({ contextWindow: window, onOverflow: "pass" });
  const clients = [open(), open()];
  for (const call of session.calls.keys()) {
    const known = clients[life === "two clients" ? call % 2 : 0] as Send;
    await conversation.take(call, life === "new clients" ? open() : known, variation.settings(call));
  }
  return conversation.run();
}

/** Sends the requests of a session, and bills them with a cache of its own. */
function openConversation({ messages, calls }: Session, door: Door) {
  const { provider, model, format } = door;
  const simulator = createCacheSimulator({ provider, model });
  const converted = convertMessages(messages, format);
  const sent: string[] = [];
  let cost = 0;
  return {
    async take(call: number, send: Send, settings: Settings): Promise<void> {
      const length = convertMessages(messages.slice(0, calls[call]), format).length;
      const body = await send(door.request(converted.slice(0, length), settings));
      sent.push(contentOf(body));
      cost += simulator.bill(door.bill(body)).cost;
    },
    run: (): Run => ({ cost, sent }),
  };
}

/** Cache markers do not count: an hour is chosen by the pauses that a client has seen. */
function contentOf({ messages, prompt }: Body): string {
  return ((messages ?? prompt) as readonly object[]).map((message) => hashMessage(message)).join(" ");
}

/** Compares the costs and requests of a way to send with those of one client. */
async function compare(door: Door, variation: Variation): Promise<string[][]> {
  const runs = new Map<Life, Run[]>();
  for (const life of lives) {
    const played: Run[] = [];
    for (const session of sessions) played.push(await play(session, { door, variation, life }));
    runs.set(life, played);
  }
  const [living, ...others] = lives.map((life) => runs.get(life) ?? []) as [Run[], ...Run[][]];
  return others.map((other, index) => [
    `${door.name}, ${variation.name}`,
    lives[index + 1] as string,
    (costOf(other) / costOf(living)).toFixed(3),
    ...[String(countDifferent(living, other)), String(living.flatMap(({ sent }) => sent).length)],
  ]);
}

function costOf(runs: readonly Run[]): number {
  return runs.reduce((sum, { cost }) => sum + cost, 0);
}

function countDifferent(some: readonly Run[], others: readonly Run[]): number {
  const expected = some.flatMap(({ sent }) => sent);
  return others.flatMap(({ sent }) => sent).filter((hash, index) => hash !== expected[index]).length;
}

/** More conversations than a client keeps, which take turns: each is forgotten before its next request. */
async function compareMany(): Promise<string[]> {
  const many = generate(values.quick ? 12 : 101, 40);
  const playAll = async (maxConversations: number): Promise<Run[]> => {
    const send = anthropic.open({ contextWindow: 40_000, onOverflow: "pass", maxConversations });
    const open = many.map((session) => openConversation(session, anthropic));
    for (let call = 0; call < 40; call++) {
      for (const [index, conversation] of open.entries()) {
        if (call < (many[index]?.calls.length ?? 0)) await conversation.take(call, send, usual);
      }
    }
    return open.map(({ run }) => run());
  };
  const kept = await playAll(many.length);
  const forgotten = await playAll(many.length - 1);
  const calls = kept.flatMap(({ sent }) => sent).length;
  const ratio = (costOf(forgotten) / costOf(kept)).toFixed(3);
  return [
    `${many.length} conversations`,
    `${many.length - 1} are kept`,
    ratio,
    String(countDifferent(kept, forgotten)),
    String(calls),
  ];
}

const rows: string[][] = [];
const isWanted = (name: string): boolean => name.includes(values.only);
const progress = (row: readonly string[]): void => void process.stderr.write(`${row.join(" | ")}\n`);
for (const door of doors) {
  for (const variation of variations.filter(({ name }) => isWanted(`${door.name}, ${name}`))) {
    const compared = await compare(door, variation);
    compared.forEach(progress);
    rows.push(...compared);
  }
}
if (isWanted("101 conversations")) rows.push(await compareMany());
if (rows.length > 0) {
  const header = ["", "", "cost ÷ one client", "other content", "requests"];
  const table = renderTable([header, ...rows], ["left", "left", "right", "right", "right"]);
  process.stdout.write(`${sessions.length} sessions, window ${window}\n${table.join("\n")}\n`);
}
if (isWanted("first sight")) process.stdout.write(await firstSight());

/** Compares the time of the first sight of the largest history, which replays all its trims, with two others: trimming it
 *  once, as if nothing had been sent before, and reading it in a window that holds all of it. */
async function firstSight(): Promise<string> {
  const sizeOf = ({ messages }: Session): number => countMessages(messages, counter, { format: "anthropic" });
  const { messages } = sessions.toSorted((left, right) => sizeOf(right) - sizeOf(left))[0] as Session;
  const open = (contextWindow: number, checkpoint?: Checkpoint) =>
    createTrimmer({ contextWindow, model: anthropic.model, format: "anthropic", checkpoint });
  const nothing = await (await open(window)).snapshot();
  const ways = { sight: () => open(window), once: () => open(window, nothing), reading: () => open(10_000_000) };
  const least = { sight: Number.POSITIVE_INFINITY, once: Number.POSITIVE_INFINITY, reading: Number.POSITIVE_INFINITY };
  for (let run = 0; run < 15; run++) {
    for (const way of ["sight", "once", "reading"] as const) {
      const trimmer = await ways[way]();
      const before = process.cpuUsage();
      trimmer.reduce({ messages });
      const { user, system } = process.cpuUsage(before);
      least[way] = Math.min(least[way], (user + system) / 1_000);
    }
  }
  const { sight, once, reading } = least;
  const size = `${messages.length} messages, ${sizeOf({ messages, calls: [] })} tokens`;
  const ratios = `÷ one trim ${(sight / once).toFixed(2)}, ÷ reading ${(sight / reading).toFixed(2)}`;
  return `first sight of ${size}: ${sight.toFixed(1)} ms, ${ratios}\n`;
}
