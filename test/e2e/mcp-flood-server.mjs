/** An MCP server for tests that floods its client: lines that are too long or never end, many lines, and stderr. */
import { createInterface } from "node:readline";

const names = ["words", "endless", "long", "answers", "notifications", "errors"];
const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const text = (value) => ({ content: [{ type: "text", text: value }] });
const megabyte = "x".repeat(1_000_000);

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === "initialize") {
    const { protocolVersion } = params;
    send({ id, result: { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "flood", version: "1" } } });
  } else if (method === "tools/list") {
    send({ id, result: { tools: names.map((name) => ({ name, inputSchema: { type: "object" } })) } });
  } else if (method === "tools/call") void answer(id, params.name, params.arguments ?? {});
});

async function answer(id, name, { megabytes = Number.POSITIVE_INFINITY, value = "" }) {
  if (name === "words") send({ id, result: text("a few words") });
  if (name === "endless" || name === "long") {
    process.stdout.write('{"result":{"content":[{"type":"text","text":"');
    for (let count = 0; count < megabytes; count += 1) await write(process.stdout, megabyte);
    process.stdout.write(`"}]},"jsonrpc":"2.0","id":${id}}\n`);
  }
  if (name === "errors") {
    for (let count = 0; count < megabytes; count += 1) await write(process.stderr, megabyte);
    process.stderr.write(value, () => send({ id, result: text("told") }));
  }
  const params = { level: "info", data: "x".repeat(10_000) };
  if (name === "notifications") {
    for (let count = 0; count < megabytes * 100; count += 1) {
      await write(process.stdout, `${JSON.stringify({ jsonrpc: "2.0", method: "notifications/message", params })}\n`);
    }
  }
  if (name === "answers") {
    for (let count = 0; count < megabytes * 100; count += 1) {
      await write(process.stdout, `${JSON.stringify({ jsonrpc: "2.0", id: `unknown ${count}`, result: params })}\n`);
    }
    send({ id, result: text("all sent") });
  }
}

function write(stream, part) {
  return new Promise((resolve) => {
    if (stream.write(part)) resolve();
    else stream.once("drain", resolve);
  });
}
