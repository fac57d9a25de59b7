/** Writes 240 log files into `logs/` and plays Anthropic's API on this machine: it asks for one log after the other, then
 *  answers. Like the real API, it refuses a request that is too long for the window, and reports in `usage` how many tokens a
 *  request has. Takes a port, or else any free one, and prints it. docs/long-sessions.md uses it. */
import { mkdirSync, writeFileSync } from "node:fs";
import { createCounter } from "plimsoll/tokens";
import { startProvider } from "../../scripts/provider/provider.mjs";

const [contextWindow, logs] = [200_000, 240];
const { count } = await createCounter("estimate:claude-3");
let asked = 0;
let hasRecalled = false;

mkdirSync("logs", { recursive: true });
for (let log = 1; log <= logs; log++) {
  const lines = Array.from(
    { length: 38 },
    (_, line) => `09:${line + 10} order ${log * 38 + line} stored, 3 items, paid by card`,
  );
  writeFileSync(`logs/${log}.log`, `${lines.map((line) => `2026-11-16 ${line}`).join("\n")}\n`);
}

const { url } = await startProvider({
  port: Number(process.argv[2] ?? 0),
  contextWindow,
  run: "example",
  count,
  outputTokens: 40,
  answer: ({ body }) => nextStep(body.messages, body.tools),
});
console.log(new URL(url).port);

/** Reads all logs. If it can recall, it asks once for the newest of those that were trimmed. */
function nextStep(messages, tools) {
  if (messages.length === 1) [asked, hasRecalled] = [0, false];
  const mayRecall = !hasRecalled && tools.some(({ name }) => name === "recall");
  const id = mayRecall ? [...JSON.stringify(messages).matchAll(/recall id (\w+)/g)].at(-1)?.[1] : undefined;
  if (id !== undefined) {
    hasRecalled = true;
    return { calls: [{ id: "toolu_recall", name: "recall", input: { id } }] };
  }
  if (asked === logs) return { text: "The outage is in logs/17.log: the database was full." };
  asked++;
  return { calls: [{ id: `toolu_${asked}`, name: "read_file", input: { path: `logs/${asked}.log` } }] };
}
