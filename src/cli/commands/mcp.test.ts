import {
  existsSync,
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
import { parse } from "smol-toml";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createOutput } from "../../host/index.ts";
import type { Adapter } from "../../rules/index.ts";
import { loadMcpInstall, readEmbeddedContent } from "../../rules/index.ts";
import type { Call, CommandResult, OptionValues } from "../command.ts";
import { mcpCommand } from "./mcp.ts";

const { runMcpInstall, runMcpUninstall } = await loadMcpInstall();

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
function call(options: Readonly<Record<string, unknown>>, folder = ""): Call {
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
    ...{ arguments: [], options: options as OptionValues, cwd: join(base, "project", folder), env, commands: [] },
    ...{ stdin: process.stdin, stdinKind: "other" },
    output: createOutput({ ...streams, env, json: false, quiet: false }),
  };
}

const run = (action: string) => (given: Call) =>
  mcpCommand.run({ ...given, arguments: [action] }) as Promise<CommandResult>;
const [mcpInstall, mcpUninstall] = [run("install"), run("uninstall")];

const both = ["first", "second"];

test("the server is added, found again, and removed", async () => {
  put("project/second.toml", "# mine\n");
  const added = await mcpInstall(call({ tool: both }));
  expect(added.text).toBe(".first/mcp.json (first): plimsoll added\nsecond.toml (second): plimsoll added");
  expect(added.failed).toBe(false);
  expect(stderr).toContain('plimsoll is not on PATH, so AI tools cannot start it. Run "npm link" in its clone');
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
  expect(await mcpUninstall(call({}))).toEqual({ json: [], text: "found nothing that Plimsoll wrote" });
});

test("a dry run shows a diff with paths relative to the current folder", async () => {
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
  expect(stderr).toContain('plimsoll: .first/mcp.json:2: is not valid JSON: unexpected "nonsense". Repair the file');
  expect(json).toMatchObject([
    { status: "failed", error: { code: "unreadable_input", file: ".first/mcp.json", line: 2 } },
    { status: "added", written: true },
  ]);
});

test("without a tool in use it fails and lists the known tools", async () => {
  const { failed, json } = await mcpInstall(call({}));
  expect([failed, json]).toEqual([true, []]);
  const told = "found no AI tool with an MCP configuration here. Name one with --tool: ";
  expect(stderr).toMatch(new RegExp(`^plimsoll: ${told}amazon-q, .*claude-code, .*first, .*, zed\n$`));
  // A file of it is known under HOME alone.
  expect(stderr).not.toContain("rovo-dev");
});

test("the help names every tool that a server can be added to", () => {
  const wired = readEmbeddedContent<Adapter>().adapters.filter(({ mcpConfigs }) => mcpConfigs.length > 0);
  const [, listed = ""] = /--tool takes ([^.]*)\./.exec(mcpCommand.actions?.install?.details ?? "") ?? [];
  expect(listed.split(/,\s+/)).toEqual(wired.map(({ id }) => id).sort());
});

test("a broken pack is reported and stops nothing", async () => {
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

test("says what the person does before the tool uses the server, once", async () => {
  const place = { path: ".third/mcp.json", format: "json", key: "mcpServers", next: "approve it in Third" };
  adapter("third", JSON.stringify(place));
  const { json } = await mcpInstall(call({ tool: ["third"] }));
  expect(stderr).toContain("next: approve it in Third");
  expect(json).toMatchObject([{ status: "added", next: ["approve it in Third"] }]);
  await mcpInstall(call({ tool: ["third"] }));
  expect(stderr).not.toContain("next:");
});

test("without files of any tool in the project, the tools under HOME count", async () => {
  put("project/.plimsoll/adapters/third.yaml", "id: third\ntype: mcp-wire\nmcp_config: { path: .third/mcp.json }\n");
  expect((await mcpInstall(call({}))).failed).toBe(true);
  put("home/.third/settings", "");
  put(
    "project/.plimsoll/adapters/third.yaml",
    "id: third\ntype: mcp-wire\nmcp_config: { path: .third/mcp.json }\ndetect: [{ path: ~/.third }]\n",
  );
  const { text } = await mcpInstall(call({}));
  expect(text).toBe(".third/mcp.json (third): plimsoll added");
});

describe("with --wrap", () => {
  const json = `{\n  // mine\n  "mcpServers": {\n    "files": { "command": "npx", /* y */ "args": ["-y", "files", "."], "env": { "A": "b" } },\n    "bare":  {"command":"run"},\n    "web": { "type": "http", "url": "https://x.example/mcp" },\n  },\n}\n`;
  const toml = `[servers.files] # mine\ncommand = "npx"\nargs = [ "-y", # yes\n  "files" ]\n\n[servers.files.env]\nA = "b"\n\n[servers.bare]\ncommand = 'run'\n`;
  const wrap = (names: readonly string[], more: Readonly<Record<string, unknown>> = {}) =>
    mcpInstall(call({ tool: both, wrap: names, ...more }));
  beforeEach(() => {
    put("project/.first/mcp.json", json);
    put("project/second.toml", toml);
  });

  test("entries go through wrap with everything else as it was, and uninstall gives the bytes back", async () => {
    const done = await wrap(["files", "bare"]);
    expect(done.text).toBe(".first/mcp.json (first): wrapped\nsecond.toml (second): wrapped");
    expect(read("project/.first/mcp.json")).toBe(
      json
        .replace('"npx"', '"plimsoll"')
        .replace('["-y", "files", "."]', '["mcp", "wrap", "--as", "files", "--", "npx", "-y", "files", "."]')
        .replace('"command":"run"', '"command": "plimsoll", "args": ["mcp", "wrap", "--as", "bare", "--", "run"]'),
    );
    const wrapped = parse(read("project/second.toml"));
    expect(wrapped).toEqual({
      servers: {
        files: {
          command: "plimsoll",
          args: ["mcp", "wrap", "--as", "files", "--", "npx", "-y", "files"],
          env: { A: "b" },
        },
        bare: { command: "plimsoll", args: ["mcp", "wrap", "--as", "bare", "--", "run"] },
      },
    });
    await expect(wrap(["files"])).rejects.toThrow("no server files that can be wrapped was found");
    expect((await mcpUninstall(call({}))).text).toBe(
      ".first/mcp.json (first): restored\nsecond.toml (second): restored",
    );
    expect([read("project/.first/mcp.json"), read("project/second.toml")]).toEqual([json, toml]);
    expect(readdirSync(join(base, "state/plimsoll"))).not.toContain("mcp-entries.json");
  });

  test("our own entry and wrapped ones are both undone, and a changed one is kept and named", async () => {
    await mcpInstall(call({ tool: both }));
    await wrap(["files"]);
    const changed = read("project/second.toml").replace('"files"]', '"files", "x"]');
    put("project/second.toml", changed);
    const undone = await mcpUninstall(call({}));
    expect(undone.failed).toBe(true);
    expect(stderr).toContain("servers.files has changed since it was wrapped");
    expect([read("project/.first/mcp.json"), read("project/second.toml")]).toEqual([json, changed]);
  });

  test("a dry run writes nothing, and a server over HTTP cannot be wrapped", async () => {
    const dry = await wrap(["files"], { "dry-run": true });
    expect(dry.text).toContain('+    "files": { "command": "plimsoll"');
    expect(read("project/.first/mcp.json")).toBe(json);
    await expect(wrap(["web"])).rejects.toThrow("no server web that can be wrapped was found");
    await expect(wrap(["nobody"])).rejects.toThrow(
      "no server nobody that can be wrapped was found; read .first/mcp.json, second.toml",
    );
  });

  test("a wrap that finds no file says so and creates none", async () => {
    for (const file of ["project/.first/mcp.json", "project/second.toml"]) rmSync(join(base, file));
    await expect(wrap(["files"])).rejects.toThrow("was found; no file with MCP servers is here");
    expect(existsSync(join(base, "project/.first/mcp.json"))).toBe(false);
    expect(existsSync(join(base, "project/second.toml"))).toBe(false);
  });

  test.each([
    ["project/.claude/settings.json", '{"permissions":{"allow":["mcp__files__read_file"]}}', true],
    ["home/.claude/settings.json", '{"permissions":{"deny":["mcp__files__write_file"]}}', true],
    [
      "project/.claude/settings.json",
      '{"permissions":{"allow":["mcp__files__*","mcp__files","mcp__other__x"]}}',
      false,
    ],
  ])("--lazy is refused if %s has %s: %s", async (path, rules, isRefused) => {
    put(path, rules);
    const done = await wrap(["files"], { lazy: true });
    expect(done.failed).toBe(isRefused);
    if (isRefused) {
      expect(stderr).toContain("a permission rule names a tool of files, which --lazy hides: mcp__files__");
      expect(read("project/.first/mcp.json")).toBe(json);
      expect((await wrap(["files"])).failed).toBe(false);
      await mcpUninstall(call({}));
      expect((await wrap(["files"], { lazy: true, force: true })).failed).toBe(false);
    }
    expect(read("project/.first/mcp.json")).toContain(
      isRefused ? '"wrap", "--lazy", "--as", "files", "--", "npx"' : '"--lazy"',
    );
  });
});
