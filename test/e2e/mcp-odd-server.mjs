/** An MCP server for tests that does what it is told by the names of its tools: large results, odd lines, an early end. */
import { createInterface } from "node:readline";

const [mode] = process.argv.slice(2);
const names = ["text", "rows", "die", "stderr", "next_page", "partial", "blocks", "raw"];
const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const text = (value) => ({ content: [{ type: "text", text: value }] });

process.on("SIGTERM", () => {
  process.stderr.write("got SIGTERM\n");
  process.exit(33);
});
if (mode === "garbage") process.stdout.write("Welcome to the odd server!\n\n{not json}\n");

const empty = { type: "object" };
const oddLists = {
  endless: { tools: [], nextCursor: "again" },
  huge: { tools: Array.from({ length: 150_000 }, () => 1) },
  invalid: {
    tools: [
      ...[42, null, { name: "no schema" }, { name: 1, inputSchema: empty }, { inputSchema: empty }],
      ...[
        { name: "list", inputSchema: [] },
        { name: "number", description: 1, inputSchema: empty },
      ],
      ...[
        { name: "text", inputSchema: empty },
        { name: "text", description: "again", inputSchema: empty },
      ],
    ],
  },
};

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === "initialize") {
    const { protocolVersion } = params;
    const serverInfo = { name: "odd", version: "1" };
    send({ id, result: { protocolVersion, capabilities: { tools: {} }, serverInfo } });
  } else if (method === "tools/list" && Object.hasOwn(oddLists, mode)) send({ id, result: oddLists[mode] });
  else if (method === "tools/list") {
    const inputSchema = { type: "object" };
    const tools = names.map((name) => ({
      name,
      inputSchema,
      outputSchema: { type: "object", required: ["x"] },
    }));
    send({ id, result: { tools } });
  } else if (method === "notifications/cancelled") process.stderr.write(`cancelled ${params.requestId}\n`);
  else if (method === "tools/call") answer(id, params.name, params.arguments ?? {});
});
process.stdin.on("end", () => process.exit(mode === "garbage" ? 5 : 0));

function answer(id, name, args) {
  if (name === "text") send({ id, result: text("some words\n".repeat(args.count)) });
  if (name === "rows") {
    const rows = Array.from({ length: args.count }, (_, index) => ({ index, name: `row ${index}` }));
    send({ id, result: { ...text(JSON.stringify({ rows })), structuredContent: { rows, kind: "rows" } } });
  }
  if (name === "blocks") send({ id, result: { content: args.texts.map((each) => text(each).content[0]) } });
  if (name === "die") process.exit(args.code);
  if (name === "stderr") process.stderr.write(args.text, () => send({ id, result: text("told") }));
  if (name === "next_page") send({ id, result: text(`the server's own: ${JSON.stringify(args)}`) });
  if (name === "partial") {
    process.stdout.write('{"jsonrpc":"2.0","id":', () => process.exit(6));
  }
  if (name === "raw") process.stdout.write(`${args.lines.join("\n")}\n`, () => send({ id, result: text("sent") }));
}
