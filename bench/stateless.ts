/** Measures what it costs to wrap a new client for each request, as a serverless function does, beside one client for the
 *  whole conversation: `npm run bench:stateless [-- --transcripts DIR] [--quick]`. A simulated cache bills each request. */
import { parseArgs } from "node:util";
import { createTrimmer } from "../src/conversation/history/index.ts";
import { contextBudgetMiddleware } from "../src/conversation/sdk/ai-sdk.ts";
import { withContextBudget as wrapAnthropic } from "../src/conversation/sdk/anthropic.ts";
import { withContextBudget as wrapOpenAi } from "../src/conversation/sdk/openai.ts";
import { billableRequest, createCacheSimulator } from "../src/core/billing/index.ts";
import { countMessages, type FormatName } from "../src/core/messages/index.ts";
import { createCounter } from "../src/core/tokens/index.ts";
import { renderTable } from "../src/host/print/table.ts";
import { convertMessages } from "../test/generate/convert/convert-messages.ts";
import { generateSession } from "../test/generate/generate-session.ts";
import { readSessions } from "./history/bench-session.ts";

const contextWindow = 64_000;
const model = "claude-sonnet-5";
const counter = await createCounter("auto", { model });

type Body = Record<string, unknown>;

interface Session {
  readonly messages: readonly object[];
  readonly calls: readonly number[];
}

/** Sends one request through a client that was wrapped for it, and returns what reached the provider. */
type Send = (body: Body) => Promise<Body>;

interface Door {
  readonly name: string;
  readonly format: FormatName;
  readonly provider: "anthropic" | "openai";
  /** Wraps a new client. */
  open(): Send;
}

const options = { contextWindow, model, onOverflow: "pass" } as const;
type Post = { post(path: string, options?: unknown): unknown };

const doors: readonly Door[] = [
  { name: "anthropic", format: "anthropic", provider: "anthropic", open: () => through(wrapAnthropic, "/v1/messages") },
  { name: "openai", format: "openai", provider: "openai", open: () => through(wrapOpenAi, "/chat/completions") },
  { name: "ai-sdk", format: "ai-sdk", provider: "openai", open: throughMiddleware },
  {
    name: "anthropic, intake",
    format: "anthropic",
    provider: "anthropic",
    open: () => through((client) => wrapAnthropic(client, { ...options, intake: true }), "/v1/messages"),
  },
  { name: "trimmer", format: "anthropic", provider: "anthropic", open: throughTrimmer },
];

function through(wrap: (client: Post, given: typeof options) => Post, path: string): Send {
  let sent: Body = {};
  const bare: Post = {
    async post(_path, given) {
      sent = ((await given) as { body: Body }).body;
    },
  };
  const client = wrap(bare, options);
  return async (body) => {
    await client.post(path, { body });
    return sent;
  };
}

function throughMiddleware(): Send {
  const transform = contextBudgetMiddleware(options).transformParams as (
    given: object,
  ) => Promise<{ prompt: object[] }>;
  return async ({ messages, ...body }) => {
    const given = { type: "generate", params: { ...body, prompt: messages }, model: { modelId: model } };
    const { prompt } = await transform(given);
    return { ...body, messages: prompt };
  };
}

function throughTrimmer(): Send {
  const trimmer = createTrimmer({ contextWindow, model, format: "anthropic" });
  return async ({ messages, system, ...body }) => {
    const reduction = (await trimmer).reduce({ messages: messages as readonly object[], system });
    const last = { type: "ephemeral" };
    return { ...body, system, cache_control: last, messages: reduction.messages };
  };
}

interface Variation {
  readonly name: string;
  body(call: number, format: FormatName): Body;
}

const line = "Read a file before you change it, and run the tests after a change.\n";
const system = line.repeat(400);
const schema = { type: "object" };

/** Returns a tool in the form of a door's format. */
function tool(name: string, format: FormatName): object {
  const described = { name, description: line.repeat(8) };
  if (format === "openai") return { type: "function", function: { ...described, parameters: schema } };
  return format === "ai-sdk"
    ? { type: "function", ...described, inputSchema: schema }
    : { ...described, input_schema: schema };
}

const variations: readonly Variation[] = [
  { name: "same settings", body: () => ({ system }) },
  { name: "system text ±400 tokens", body: (call) => ({ system: system + "word ".repeat((call * 137) % 400) }) },
  { name: "changing max_tokens", body: (call) => ({ system, max_tokens: 1_000 * (1 + (call % 16)) }) },
  {
    name: "an added tool",
    body: (call, format) => ({
      system,
      tools: ["read", "edit", ...(call > 20 ? ["search"] : [])].map((name) => tool(name, format)),
    }),
  },
];

const { values } = parseArgs({
  options: { transcripts: { type: "string" }, quick: { type: "boolean", default: false } },
});
const sessions =
  values.transcripts === undefined ? generated(values.quick ? 1 : 4) : await recorded(values.transcripts);

function generated(count: number): Session[] {
  return Array.from({ length: count }, (_each, seed) => {
    const { messages } = generateSession({ seed: seed + 1, turns: 120, profile: "coding" });
    return { messages, calls: callsOf(messages) };
  });
}

async function recorded(directory: string): Promise<Session[]> {
  const read = await readSessions(directory, counter);
  return read.sessions.map(({ prepared: { messages, calls } }) => ({ messages, calls }));
}

function callsOf(messages: readonly object[]): number[] {
  return messages.flatMap((message, index) => (index > 0 && Reflect.get(message, "role") === "assistant" ? index : []));
}

async function costOf(session: Session, door: Door, { variation, isFresh }: Run): Promise<number> {
  const simulator = createCacheSimulator({
    provider: door.provider,
    model: door.provider === "openai" ? "gpt-5" : model,
  });
  let send = door.open();
  let cost = 0;
  for (const [call, length] of session.calls.entries()) {
    if (isFresh) send = door.open();
    const messages = convertMessages(session.messages.slice(0, length) as never, door.format);
    const sent = await send({ model, max_tokens: 8_000, ...variation.body(call, door.format), messages });
    cost += simulator.bill(billableRequest(sent as never, { counter })).cost;
  }
  return cost;
}

interface Run {
  readonly variation: Variation;
  readonly isFresh: boolean;
}

const rows: string[][] = [["", ...variations.map(({ name }) => name)]];
for (const door of doors) {
  const row = [door.name];
  for (const variation of variations) {
    let [living, fresh] = [0, 0];
    for (const session of sessions) {
      living += await costOf(session, door, { variation, isFresh: false });
      fresh += await costOf(session, door, { variation, isFresh: true });
    }
    row.push((fresh / living).toFixed(3));
    process.stderr.write(`${door.name}, ${variation.name}: ${(fresh / living).toFixed(3)}\n`);
  }
  rows.push(row);
}
const table = renderTable(rows, ["left", ...variations.map(() => "right" as const)]);
process.stdout.write(
  `cost of a new client for each request ÷ one client, ${sessions.length} sessions\n${table.join("\n")}\n`,
);
process.stdout.write(`first sight of a history ÷ one reading of it: ${(await firstSight()).toFixed(2)}\n`);

/** Compares the first sight of the largest history with reading it in a window that holds all of it. */
async function firstSight(): Promise<number> {
  const largest = sessions.toSorted((left, right) => sizeOf(right) - sizeOf(left))[0] as Session;
  const { messages } = largest;
  const time = async (window: number): Promise<number> => {
    let least = Number.POSITIVE_INFINITY;
    for (let run = 0; run < 9; run++) {
      const trimmer = await createTrimmer({ contextWindow: window, model, format: "anthropic" });
      const before = process.cpuUsage();
      trimmer.reduce({ messages });
      const { user, system: kernel } = process.cpuUsage(before);
      least = Math.min(least, user + kernel);
    }
    return least;
  };
  return (await time(contextWindow)) / (await time(10_000_000));
}

function sizeOf({ messages }: Session): number {
  return countMessages(messages, counter, { format: "anthropic" });
}
