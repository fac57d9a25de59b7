/** Writes 240 log files into `logs/` and plays Anthropic's API on this machine: it asks for one log after the other, then
 *  answers. Like the real API, it refuses a request that is too long for the window, and reports in `usage` how many tokens a
 *  request has. Takes a port, or else any free one, and prints it. docs/long-sessions.md uses it. */
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { countMessages, countTools } from "plimsoll/messages";
import { createCounter } from "plimsoll/tokens";

const [contextWindow, logs] = [200_000, 240];
const counter = await createCounter("estimate:claude-3");
const counted = new Map();
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

const server = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const { status = 200, ...answer } = answerTo(JSON.parse(Buffer.concat(chunks).toString("utf8")));
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(answer));
});
server.listen(Number(process.argv[2] ?? 0), "127.0.0.1", () => console.log(server.address().port));

function answerTo({ messages, tools }) {
  if (messages.length === 1) [asked, hasRecalled] = [0, false];
  const overhead = countTools(tools, counter, { format: "anthropic" });
  const tokens = messages.reduce((sum, message) => sum + tokensOf(message), overhead);
  if (tokens > contextWindow) return refusal(`prompt is too long: ${tokens} tokens > ${contextWindow} maximum`);
  const content = nextStep(messages, tools);
  return {
    ...{ id: `msg_${asked}`, type: "message", role: "assistant", model: "claude-haiku-4-5", content },
    ...{ stop_reason: content[0].type === "text" ? "end_turn" : "tool_use" },
    usage: { input_tokens: tokens, output_tokens: 40 },
  };
}

/** Counts each message once: a result is known by its call and its length. */
function tokensOf(message) {
  const [{ tool_use_id: id, content: result = "" }] = message.role === "user" ? message.content : [{}];
  const key = id === undefined ? JSON.stringify(message) : `${id} ${result.length}`;
  const tokens = counted.get(key) ?? countMessages([message], counter, { format: "anthropic" });
  counted.set(key, tokens);
  return tokens;
}

function refusal(message) {
  return { status: 400, type: "error", error: { type: "invalid_request_error", message } };
}

/** Reads all logs. If it can recall, it asks once for the newest of those that were trimmed. */
function nextStep(messages, tools) {
  const mayRecall = !hasRecalled && tools.some(({ name }) => name === "recall");
  const id = mayRecall ? [...JSON.stringify(messages).matchAll(/recall id (r\d+)/g)].at(-1)?.[1] : undefined;
  if (id !== undefined) {
    hasRecalled = true;
    return [{ type: "tool_use", id: "toolu_recall", name: "recall", input: { id } }];
  }
  if (asked === logs) return [{ type: "text", text: "The outage is in logs/17.log: the database was full." }];
  asked++;
  return [{ type: "tool_use", id: `toolu_${asked}`, name: "read_file", input: { path: `logs/${asked}.log` } }];
}
