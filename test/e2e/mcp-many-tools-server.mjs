/** An MCP server for tests with many tools whose definitions are long, as browser servers have them. */
import { writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

/** How long it takes to greet, and the file that then says so. */
const [slowMs = "0", greetedFile] = process.argv.slice(2);

const verbs = ["click", "drag", "emulate", "evaluate", "fill", "hover", "list", "navigate", "press", "resize"];
const things = ["page", "element", "console message", "network request", "dialog", "screenshot"];
const sentence = "The target must be visible and stable, and the call waits until the page has settled again. ";

const tools = verbs.flatMap((verb) =>
  things.map((thing) => ({
    name: `${verb}_${thing.replace(" ", "_")}`,
    description: `${verb[0].toUpperCase()}${verb.slice(1)} a ${thing}. ${sentence.repeat(5)}`,
    inputSchema: {
      type: "object",
      properties: {
        uid: { type: "string", description: `The ${thing} to ${verb}, as a snapshot names it. ${sentence}` },
        timeout: { type: "integer", description: `Milliseconds to wait. ${sentence}` },
        options: { type: "object", properties: { force: { type: "boolean", description: sentence } } },
      },
      required: ["uid"],
    },
    annotations: { title: thing, readOnlyHint: verb === "list" },
  })),
);

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);

createInterface({ input: process.stdin }).on("line", async (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === "initialize") {
    await sleep(Number(slowMs));
    if (greetedFile !== undefined) writeFileSync(greetedFile, "greeted");
    const capabilities = { tools: { listChanged: true } };
    const serverInfo = { name: "many", version: "1" };
    send({ id, result: { protocolVersion: params.protocolVersion, capabilities, serverInfo } });
  }
  // Two pages, so that all of them must be read.
  if (method === "tools/list") {
    const isFirst = params?.cursor === undefined;
    send({ id, result: isFirst ? { tools: tools.slice(0, 40), nextCursor: "40" } : { tools: tools.slice(40) } });
  }
  if (method === "tools/call") {
    if (params.name === "resize_page") {
      tools.push({ ...tools[0], name: "fly_kite", description: "Fly a kite." });
      send({ method: "notifications/tools/list_changed" });
    }
    // The bytes of the arguments, because numbers of 64 bits must arrive as they were.
    const text = `${params.name} got ${/"arguments":(.*?)\}?\}$/.exec(line)?.[1]}`;
    send({ id, result: { content: [{ type: "text", text: text.repeat(params.arguments.times ?? 1) }] } });
  }
});
