import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { readServers } from "./read-servers.ts";

const folder = mkdtempSync(join(tmpdir(), "plimsoll-read-servers-"));
afterAll(() => rmSync(folder, { recursive: true }));
const env = { TOKEN: "secret", HOST: "x.example" };
/** Writes variables as the tools do. */
const filled = (text: string): string => text.replaceAll(/<([^>]*)>/g, "$\u007b$1}");

async function read(name: string, text: string, names?: readonly string[]) {
  const file = join(folder, name);
  writeFileSync(file, filled(text));
  const notes: string[] = [];
  const servers = await readServers([file], { env, cwd: "/repo", names, note: (note) => notes.push(note) });
  return { servers, notes };
}

test("reads servers in the forms of the AI tools", async () => {
  const command = { name: "a", command: ["run", "x secret"], env: { T: "secret" }, cwd: "/repo/sub" };
  const entry = '{ "command": "run", "args": ["x <TOKEN>"], "env": { "T": "<env:TOKEN>" }, "cwd": "sub" }';
  for (const key of ["mcpServers", "servers", "context_servers"]) {
    expect((await read("a.json", `{ // mine\n "${key}": { "a": ${entry}, }, }`)).servers).toEqual([command]);
  }
  const opencode =
    '{"mcp":{"a":{"type":"local","command":["run","x {env:TOKEN}"],"environment":{"T":"secret"},"cwd":"/y"}}}';
  expect((await read("a.jsonc", opencode)).servers).toEqual([{ ...command, cwd: "/y" }]);
  const codex =
    '[mcp_servers.a]\ncommand = "run"\n[mcp_servers.b]\nurl = "https://x.example"\nbearer_token_env_var = "TOKEN"\n';
  expect((await read("a.toml", codex)).servers).toEqual([
    { name: "a", command: ["run"], env: {}, cwd: undefined },
    { name: "b", url: "https://x.example", headers: { Authorization: "Bearer secret" } },
  ]);
  const http = '{"mcpServers":{"b":{"httpUrl":"https://<HOST>/<NONE:-mcp>","headers":{"X":"<TOKEN>","Y":"<NONE>"}}}}';
  expect((await read("b.json", http)).servers).toEqual([
    { name: "b", url: "https://x.example/mcp", headers: { X: "secret", Y: filled("<NONE>") } },
  ]);
});

test("says why a server is left out, and never starts itself again", async () => {
  const text = JSON.stringify({
    mcpServers: {
      off: { command: "x", disabled: true },
      also: { command: "x", enabled: false },
      sse: { type: "sse", url: "https://x.example" },
      odd: { url: "file:///etc" },
      none: {},
      text: "x",
      self: { command: "/bin/plimsoll", args: ["mcp", "wrap", "--from", "cursor"] },
      fine: { command: "plimsoll", args: ["mcp", "wrap", "--", "x", "--from"] },
    },
  });
  const { servers, notes } = await read("c.json", text);
  expect(servers.map(({ name }) => name)).toEqual(["fine"]);
  expect(notes.map((note) => note.replace("left out the server ", ""))).toEqual([
    "off: is turned off",
    "also: is turned off",
    "sse: uses the old transport over SSE, which wrap does not support",
    "odd: has an address that is not http or https",
    "none: has neither a command nor a url",
    "text: is not an object",
    "self: is plimsoll itself",
  ]);
  expect(await read("c.json", text, ["fine"])).toEqual({ servers, notes: [] });
  await expect(read("c.json", text, ["fine", "fin"])).rejects.toThrow('there is no server "fin"');
  await expect(read("c.json", text, ["off"])).rejects.toMatchObject({ hint: "off: is turned off" });
});

test.each([
  ["bad.json", '{\n "mcpServers": {,}}', "is not valid JSON", 2],
  ["bad.toml", "a = = 1", "is not valid TOML", undefined],
  ["empty.json", "{}", "has no MCP servers", undefined],
])("names the file %s and what is wrong with it", async (name, text, message, line) => {
  await expect(read(name, text)).rejects.toMatchObject({
    message: expect.stringContaining(message),
    file: join(folder, name),
    line,
  });
});
