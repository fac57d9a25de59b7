/** Measures what `withContextBudget(client)` saves with no other option: `npm run bench:defaults [-- --transcripts DIR]
 *  [--json]`. The same agent calls the API through a bare client, through one that sets cache markers, and through
 *  wrapped ones with several working budgets. The API is scripted, and a simulated cache bills each request. */
import { parseArgs } from "node:util";
import { withContextBudget } from "../src/conversation/sdk/anthropic.ts";
import { billableRequest, createCacheSimulator } from "../src/core/billing/index.ts";
import { countMessages } from "../src/core/messages/index.ts";
import { formatNumber } from "../src/core/text/index.ts";
import { type Counter, createCounter } from "../src/core/tokens/index.ts";
import { renderTable } from "../src/host/print/table.ts";
import { generateSession } from "../test/generate/generate-session.ts";
import { createFarNamesMeter, type FarNames } from "./defaults/far-names.ts";
import { readSessions } from "./history/bench-session.ts";

const model = "claude-sonnet-5";
const agentCalls = 300;
const prefixTokens = 20_000;
const budgets = [128_000, 160_000, 200_000, 256_000] as const;

interface Session {
  readonly name: string;
  readonly messages: readonly object[];
  /** The number of messages in each call's request. */
  readonly calls: readonly number[];
}

interface Client {
  post(path: string, options?: unknown): unknown;
}

interface Way {
  readonly name: string;
  readonly hasMarkers: boolean;
  wrap(client: Client): Client;
}

const ways: readonly Way[] = [
  { name: "bare client", hasMarkers: false, wrap: (client) => client },
  { name: "with cache markers", hasMarkers: true, wrap: (client) => client },
  { name: "withContextBudget(client)", hasMarkers: false, wrap: (client) => withContextBudget(client) },
  ...budgets.map((workingBudget) => ({
    name: `workingBudget ${formatNumber(workingBudget)}`,
    hasMarkers: false,
    wrap: (client: Client) => withContextBudget(client, { workingBudget }),
  })),
  {
    name: "contextWindow 1,000,000",
    hasMarkers: false,
    wrap: (client) => withContextBudget(client, { contextWindow: 1_000_000 }),
  },
];

interface Outcome {
  readonly cost: number;
  readonly largest: number;
  readonly names: FarNames;
}

const { values } = parseArgs({
  options: { transcripts: { type: "string" }, json: { type: "boolean", default: false } },
});
const counter = await createCounter("auto", { model });
const system = await systemText(counter);
const report = [await measure(`a generated agent of ${agentCalls} calls`, [generatedAgent()])];
if (values.transcripts !== undefined) {
  const recorded = await recordedAgents(values.transcripts);
  const large = recorded.filter((session) => sizeOf(session) > 128_000 - prefixTokens);
  report.push(await measure(`${recorded.length} recorded sessions`, recorded));
  report.push(await measure(`${large.length} of them with more than 128,000 tokens`, large));
}
process.stdout.write(values.json ? `${JSON.stringify(report, null, 2)}\n` : report.map(renderSection).join("\n"));

function generatedAgent(): Session {
  const { messages } = generateSession({ seed: 1, turns: agentCalls, profile: "coding" });
  return { name: "generated", messages, calls: callsOf(messages) };
}

async function recordedAgents(directory: string): Promise<Session[]> {
  const { sessions } = await readSessions(directory, counter);
  return sessions.map(({ prepared: { file, messages, calls } }) => ({ name: file, messages, calls }));
}

function callsOf(messages: readonly object[]): number[] {
  return messages.flatMap((message, index) => (index > 0 && Reflect.get(message, "role") === "assistant" ? index : []));
}

function sizeOf({ messages, calls }: Session): number {
  return countMessages(messages.slice(0, calls.at(-1)), counter, { format: "anthropic", model });
}

/** Stands for the tools and rules of a coding agent. */
async function systemText(count: Counter): Promise<string> {
  const line = "Read a file before you change it, and run the tests after a change.\n";
  return line.repeat(Math.round(prefixTokens / count.count(line)));
}

interface Row extends Outcome {
  readonly name: string;
}

interface Section {
  readonly title: string;
  readonly rows: readonly Row[];
}

async function measure(title: string, sessions: readonly Session[]): Promise<Section> {
  const rows: Row[] = [];
  for (const way of ways) {
    process.stderr.write(`${title}: ${way.name} …\n`);
    const outcomes: Outcome[] = [];
    for (const session of sessions) outcomes.push(await runAgent(session, way));
    const sum = (value: (outcome: Outcome) => number) => outcomes.reduce((total, each) => total + value(each), 0);
    rows.push({
      name: way.name,
      cost: sum(({ cost }) => cost),
      largest: Math.max(...outcomes.map(({ largest }) => largest)),
      names: { used: sum(({ names }) => names.used), held: sum(({ names }) => names.held) },
    });
  }
  return { title, rows };
}

async function runAgent({ messages, calls }: Session, { wrap, hasMarkers }: Way): Promise<Outcome> {
  const simulator = createCacheSimulator({ provider: "anthropic", model });
  const meter = createFarNamesMeter();
  let cost = 0;
  let largest = 0;
  let sent: readonly object[] = [];
  const client = wrap({
    async post(_path, options) {
      const { body } = Object(await options) as { body: { messages: readonly object[] } };
      const bill = simulator.bill(billableRequest(body, { counter }));
      cost += bill.cost;
      largest = Math.max(largest, bill.total);
      sent = body.messages;
    },
  });
  for (const length of calls) {
    const history = messages.slice(0, length);
    const body = { model, max_tokens: 8_000, system, messages: history };
    const marked = { ...body, cache_control: { type: "ephemeral" } };
    await client.post("/v1/messages", { body: hasMarkers ? marked : body });
    meter.add(history, sent, messages[length] as object);
  }
  return { cost, largest, names: meter.totals() };
}

function renderSection({ title, rows }: Section): string {
  const [bare, marked] = rows as [Row, Row];
  const header = ["", "cost", "÷ bare", "÷ markers", "largest request", "far names %"];
  const cells = rows.map(({ name, cost, largest, names }) => [
    name,
    `${(cost / 1e6).toFixed(2)}M`,
    (cost / bare.cost).toFixed(3),
    (cost / marked.cost).toFixed(2),
    formatNumber(largest),
    names.used === 0 ? "–" : ((100 * names.held) / names.used).toFixed(1),
  ]);
  const table = renderTable([header, ...cells], ["left", ...header.slice(1).map(() => "right" as const)]);
  return `${[title, ...table].join("\n")}\n`;
}
