# The project of large-change, in which a client has read the whole diff in one session and has used most tools in another.
. "$SETUPS/large-change.sh"
printf "PASSWORD=hunter2hunter2\n" >.env
node --input-type=module -e '
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

async function converse(args, talk) {
  const client = new Client({ name: "docs", version: "1.0.0" });
  await client.connect(new StdioClientTransport({ command: "plimsoll", args: ["mcp", "--format", "json", ...args], env: process.env }));
  await talk(async (name, args) => (await client.callTool({ name, arguments: args })).structuredContent);
  await client.close();
}
await converse(["--session", "tour", "--total", "100000"], async (call) => {
  await call("vcs_status", {});
  await call("search_content", { pattern: "price7 " });
  await call("read_file", { path: "src/shelf-10.ts" });
  await call("vcs_log", {});
  await call("read_file", { path: "none.txt" });
  await call("read_file", { path: ".env" });
});
await converse(["--session", "shop", "--total", "100000"], async (call) => {
  let page = await call("vcs_diff", { from: "HEAD~1", to: "HEAD" });
  while (page.data.continuation_token) page = await call("next_page", { token: page.data.continuation_token });
});
'
