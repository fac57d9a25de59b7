import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Adapter } from "../../adapters/index.ts";
import { readEmbeddedContent } from "../../workspace/index.ts";
import type { Call } from "../command.ts";
import { mcpCommand } from "../commands/mcp.ts";
import { createOutput } from "../output.ts";
import { type InstallFlags, mcpInstall, mcpUninstall, runMcpInstall, runMcpUninstall } from "./install.ts";

let base: string;
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "plimsoll-mcp-install-")));
  mkdirSync(join(base, "home"));
  // Adapters of the project's own, so that what is tested does not depend on what the package knows.
  adapter("first", "{ path: .first/mcp.json, format: json, key: mcpServers }");
  adapter("second", "{ path: second.toml, format: toml, key: servers }");
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

function put(path: string, content: string): void {
  mkdirSync(dirname(join(base, path)), { recursive: true });
  writeFileSync(join(base, path), content);
}
const read = (path: string) => readFileSync(join(base, path), "utf8");

function adapter(id: string, place: string): void {
  put(`project/.plimsoll/adapters/${id}.yaml`, `id: ${id}\ntype: mcp-wire\nmcp_config: ${place}\n`);
}

let stderr = "";
function call(options: InstallFlags, folder = ""): Call<InstallFlags> {
  stderr = "";
  const stream = (write: (text: string) => void) => ({ write });
  const env = { HOME: join(base, "home"), PATH: "", XDG_STATE_HOME: join(base, "state") };
  const streams = {
    stdout: stream(() => {}),
    stderr: stream((text) => {
      stderr += text;
    }),
  };
  return {
    ...{ arguments: [], options, cwd: join(base, "project", folder), env, commands: [] },
    ...{ stdin: process.stdin, stdinKind: "other" },
    output: createOutput({ ...streams, env, json: false, quiet: false }),
  };
}

const both = ["first", "second"];

test("the server is added, found again, and taken away", async () => {
  put("project/second.toml", "# mine\n");
  const added = await mcpInstall(call({ tool: both }));
  expect(added.text).toBe(".first/mcp.json (first): plimsoll added\nsecond.toml (second): plimsoll added");
  expect(added.failed).toBe(false);
  expect(stderr).toContain(
    'plimsoll is not on PATH, so that AI tools cannot start it: "npm link" in its clone',
  );
  const again = await mcpInstall(call({ tool: both }));
  expect(again.text).toBe(".first/mcp.json (first): already there\nsecond.toml (second): already there");
  expect(stderr).toBe("");
  const removed = await mcpUninstall(call({}));
  expect(removed.text).toBe(".first/mcp.json (first): deleted\nsecond.toml (second): restored");
  expect(removed.json).toEqual([
    { tools: ["first"], path: ".first/mcp.json", status: "deleted", written: true },
    { tools: ["second"], path: "second.toml", status: "restored", written: true },
  ]);
  expect(read("project/second.toml")).toBe("# mine\n");
  expect(readdirSync(join(base, "project")).sort()).toEqual([".plimsoll", "second.toml"]);
  expect(await mcpUninstall(call({}))).toEqual({ json: [], text: "nothing of ours was found" });
});

test("a dry run shows a diff, paths as seen from the folder that one stands in", async () => {
  put("project/src/x", "");
  put("project/second.toml", "a = 1\n");
  const { text, json } = await mcpInstall(call({ tool: ["second"], "dry-run": true }, "src"));
  expect(text).toBe(
    [
      "--- ../second.toml",
      "+++ ../second.toml",
      "@@ -1,1 +1,6 @@",
      " a = 1",
      "+",
      "+[servers.plimsoll]",
      '+type = "stdio"',
      '+command = "plimsoll"',
      '+args = ["mcp"]',
      "",
      "../second.toml (second): would add plimsoll",
    ].join("\n"),
  );
  expect(json).toMatchObject([{ status: "added", written: false, diff: expect.stringContaining("+args") }]);
  expect(read("project/second.toml")).toBe("a = 1\n");
});

test("a file that is broken fails the run, and the other is done", async () => {
  put("project/.first/mcp.json", "{\n  nonsense\n}\n");
  const { text, json, failed } = await mcpInstall(call({ tool: both }));
  expect(failed).toBe(true);
  expect(text).toBe("second.toml (second): plimsoll added");
  expect(stderr).toContain('plimsoll: .first/mcp.json:2: is no JSON: unexpected "nonsense". Mend the file');
  expect(json).toMatchObject([
    { status: "failed", error: { code: "unreadable_input", file: ".first/mcp.json", line: 2 } },
    { status: "added", written: true },
  ]);
});

test("where no tool is in use, that is said with those that there are, and fails", async () => {
  const { failed, json } = await mcpInstall(call({}));
  expect([failed, json]).toEqual([true, []]);
  const told = "no AI tool with an MCP configuration was found here. Name one with --tool: ";
  expect(stderr).toMatch(new RegExp(`^plimsoll: ${told}amazon-q, .*claude-code, .*first, .*, zed\n$`));
  // A file of it is known under HOME alone.
  expect(stderr).not.toContain("rovo-dev");
});

test("the help names every tool that a server can be added to", () => {
  const wired = readEmbeddedContent<Adapter>().adapters.filter(({ mcpConfigs }) => mcpConfigs.length > 0);
  const [, listed = ""] = /--tool takes ([^.]*)\./.exec(mcpCommand.details ?? "") ?? [];
  expect(listed.split(/,\s+/)).toEqual(wired.map(({ id }) => id).sort());
});

test("a broken pack is told and stops nothing", async () => {
  put("project/.plimsoll/packs/p/pack.yaml", "id: [");
  const notes: string[] = [];
  const { cwd, env } = call({});
  const options = {
    tools: ["first"],
    global: false,
    dryRun: false,
    cwd,
    env,
    note: (text: string) => notes.push(text),
  };
  expect(await runMcpInstall(options)).toMatchObject([{ status: "added" }]);
  expect(notes.join("\n")).toContain(".plimsoll/packs/p/pack.yaml:1");
  expect(await runMcpUninstall(options)).toMatchObject([{ status: "deleted" }]);
});
