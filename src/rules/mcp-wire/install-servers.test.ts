import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Adapter } from "../adapters/adapter.ts";
import { findsCommand, installServers, type ServersOptions, uninstallServers } from "./install-servers.ts";

let base: string;
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "plimsoll-wire-")));
  for (const folder of ["project", "home", "bin"]) mkdirSync(join(base, folder));
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

const at = (path: string) => join(base, path);
const read = (path: string) => readFileSync(at(path), "latin1");
function put(path: string, content: string): void {
  mkdirSync(dirname(at(path)), { recursive: true });
  writeFileSync(at(path), Buffer.from(content, "latin1"));
}

function adapter(id: string, more: Partial<Adapter>): Adapter {
  return {
    ...{ id, name: id, type: "mcp-wire", targets: [], format: "markdown", instructions: "" },
    ...{ detect: [], limits: [], reads: [], imports: false, mcpConfigs: [], ...more },
  };
}

const claude = adapter("claude-code", {
  targets: [{ scope: "project", path: "CLAUDE.md", mode: "replace-section", section: "context" }],
  detect: [{ path: "~/.claude" }],
  mcpConfigs: [{ path: ".mcp.json" }, { path: "~/.claude.json", format: "json", key: "mcpServers" }],
});
const codex = adapter("codex-cli", {
  detect: [{ command: "codex --version" }],
  mcpConfigs: [
    { path: "~/.codex/config.toml", key: "mcp_servers" },
    { path: ".codex/config.toml", format: "toml", key: "mcp_servers" },
  ],
});
const opencode = adapter("opencode", {
  mcpConfigs: [
    { path: "opencode.json", key: "mcp" },
    { path: "opencode.jsonc", format: "jsonc", key: "mcp" },
  ],
});
const amp = adapter("amp", { mcpConfigs: [{ path: ".amp/settings.json", key: '"amp.mcpServers"' }] });
const goose = adapter("goose", { mcpConfigs: [{ path: ".goose.yaml", format: "yaml", key: "extensions" }] });
const twin = adapter("twin", { mcpConfigs: [{ path: ".mcp.json", key: "mcpServers" }] });
const plain = adapter("agents-md", { reads: ["aider"] });
const all = [claude, codex, opencode, amp, goose, twin, plain];

function options(tools?: readonly string[], more: Partial<ServersOptions> = {}): ServersOptions {
  const env = { HOME: at("home"), PATH: at("bin"), XDG_STATE_HOME: at("state") };
  const places = { scope: "project", root: at("project"), home: at("home") } as const;
  return { adapters: all, places, env, dryRun: false, tools, ...more };
}
const globally = { places: { scope: "global", root: "", home: "" } } as const;
const under = (more: Partial<ServersOptions> = {}): Partial<ServersOptions> => ({
  ...more,
  places: { ...globally.places, root: at("home"), home: at("home") },
});
const told = (results: Awaited<ReturnType<typeof installServers>>) =>
  results.map(({ adapters, path, change, problem }) => [
    adapters.map(({ id }) => id).join(),
    path.slice(base.length + 1),
    problem?.code ?? (change!.written ? "written" : "as it was"),
  ]);

describe("installing", () => {
  test("every tool that is asked for gets the entry in its own shape, once", async () => {
    const tools = ["claude-code", "codex-cli", "opencode", "amp"];
    const expected = [
      ["claude-code", "project/.mcp.json", "written"],
      ["codex-cli", "project/.codex/config.toml", "written"],
      ["opencode", "project/opencode.json", "written"],
      ["amp", "project/.amp/settings.json", "written"],
    ];
    expect(told(await installServers(options(tools)))).toEqual(expected);
    const entry = { command: "plimsoll", args: ["mcp"] };
    expect(JSON.parse(read("project/.mcp.json"))).toEqual({ mcpServers: { plimsoll: entry } });
    expect(JSON.parse(read("project/.amp/settings.json"))).toEqual({ "amp.mcpServers": { plimsoll: entry } });
    expect(JSON.parse(read("project/opencode.json"))).toEqual({
      mcp: { plimsoll: { type: "local", command: ["plimsoll", "mcp"], enabled: true } },
    });
    expect(read("project/.codex/config.toml")).toBe('[mcp_servers.plimsoll]\ncommand = "plimsoll"\nargs = ["mcp"]\n');
    utimesSync(at("project/.mcp.json"), 1, 1);
    const again = await installServers(options(tools));
    expect(again.map(({ change }) => change!.written)).toEqual([false, false, false, false]);
    expect(statSync(at("project/.mcp.json")).mtimeMs).toBe(1_000);
    expect(told(await uninstallServers(options()))).toEqual([
      expected[0]!.with(0, "claude-code,twin"),
      ...expected.slice(1),
    ]);
    expect(readdirSync(at("project"))).toEqual([]);
    expect(await uninstallServers(options())).toEqual([]);
  });

  test("a tool whose file has another name gets it there", async () => {
    put("project/opencode.jsonc", "{ /* mine */ }\n");
    expect(told(await installServers(options(["opencode"])))).toEqual([
      ["opencode", "project/opencode.jsonc", "written"],
    ]);
    expect(told(await uninstallServers(options(["opencode"])))).toHaveLength(1);
    expect(read("project/opencode.jsonc")).toBe("{ /* mine */ }\n");
  });

  test("two tools that read one file are one result", async () => {
    const results = await installServers(options(["twin", "claude-code"]));
    expect(told(results)).toEqual([["twin,claude-code", "project/.mcp.json", "written"]]);
  });

  test("under HOME it goes to the files under HOME, with their modes", async () => {
    put("home/.claude.json", '{"numStartups": 3}');
    chmodSync(at("home/.claude.json"), 0o600);
    const results = await installServers(options(["claude-code", "codex-cli"], under()));
    expect(told(results)).toEqual([
      ["claude-code", "home/.claude.json", "written"],
      ["codex-cli", "home/.codex/config.toml", "written"],
    ]);
    expect(statSync(at("home/.claude.json")).mode & 0o777).toBe(0o600);
    expect(told(await uninstallServers(options(undefined, under())))).toHaveLength(2);
    expect(read("home/.claude.json")).toBe('{"numStartups": 3}');
    expect(existsSync(at("home/.codex"))).toBe(false);
    expect(existsSync(at("home"))).toBe(true);
  });

  test("a dry run tells the change and writes nothing", async () => {
    put("project/.mcp.json", "{}\n");
    const [result] = await installServers(options(["claude-code"], { dryRun: true }));
    expect(result!.change).toMatchObject({ before: "{}\n", written: false });
    expect(result!.change!.after).toContain('"plimsoll"');
    expect(read("project/.mcp.json")).toBe("{}\n");
    expect(existsSync(at("state"))).toBe(false);
  });
});

describe("choosing", () => {
  const found = async (more?: Partial<ServersOptions>) =>
    (await installServers(options(undefined, { dryRun: true, ...more }))).map(({ adapters }) => adapters[0]!.id);

  test("without a name, the tools that are in use in the project", async () => {
    expect(await found()).toEqual([]);
    put("project/CLAUDE.md", "");
    mkdirSync(at("project/.codex"));
    expect(await found()).toEqual(["claude-code", "codex-cli"]);
    put("project/opencode.jsonc", "{}");
    expect(await found()).toEqual(["claude-code", "codex-cli", "opencode"]);
  });

  test("without a name, the tools that are in use on the machine", async () => {
    expect(await found(under())).toEqual([]);
    mkdirSync(at("home/.claude"));
    expect(await found(under())).toEqual(["claude-code"]);
    put("bin/codex", "#!/bin/sh\n");
    chmodSync(at("bin/codex"), 0o755);
    expect(await found(under())).toEqual(["claude-code", "codex-cli"]);
  });

  test("the configuration's tools go before what is found, as far as they have such a file", async () => {
    put("project/CLAUDE.md", "");
    expect(await found({ configured: ["agents-md", "opencode"] })).toEqual(["opencode"]);
  });

  test.each([
    ["opencod", 'unknown tool "opencod"', 'Did you mean "opencode"?'],
    [
      "agents-md",
      "no file in a project is known that agents-md reads MCP servers from",
      "The AI tools that plimsoll can be added to here: claude-code",
    ],
    ["aider", "no file in a project is known that aider reads MCP servers from", "can be added to here: claude-code"],
  ])("%s is wrong usage", async (tool, message, hint) => {
    const problem = { code: "usage", message, hint: expect.stringContaining(hint) };
    await expect(installServers(options([tool]))).rejects.toMatchObject(problem);
    await expect(uninstallServers(options([tool]))).rejects.toMatchObject(problem);
  });

  test("whether the command can be found is looked up on PATH", async () => {
    const { env } = options();
    expect(await findsCommand(env)).toBe(false);
    put("bin/plimsoll", "#!/bin/sh\n");
    chmodSync(at("bin/plimsoll"), 0o755);
    expect(await findsCommand(env)).toBe(true);
  });
});

describe("problems", () => {
  test("a file that fails stops no other, and is told with its line", async () => {
    put("project/.mcp.json", '{\n  "a": \n}');
    put("project/.codex/config.toml", "a = 1\nb\n");
    const results = await installServers(options(["claude-code", "codex-cli", "goose", "amp"]));
    expect(told(results)).toEqual([
      ["claude-code", "project/.mcp.json", "unreadable_input"],
      ["codex-cli", "project/.codex/config.toml", "unreadable_input"],
      ["goose", "project/.goose.yaml", "refused_target"],
      ["amp", "project/.amp/settings.json", "written"],
    ]);
    expect(results[0]!.problem).toMatchObject({ file: at("project/.mcp.json"), line: 3 });
    expect(results[1]!.problem).toMatchObject({ file: at("project/.codex/config.toml"), line: 2 });
    expect(read("project/.mcp.json")).toBe('{\n  "a": \n}');
  });

  test("uninstalling does not mind a broken file that has never heard of us", async () => {
    put("project/.mcp.json", "{ broken");
    mkdirSync(at("project/opencode.json"));
    symlinkSync("../../elsewhere", at("project/.amp"));
    expect(await uninstallServers(options())).toEqual([]);
    put("project/.mcp.json", '{ "plimsoll');
    expect(told(await uninstallServers(options()))).toEqual([
      ["claude-code,twin", "project/.mcp.json", "unreadable_input"],
    ]);
  });

  test("an entry that was edited stays, both ways", async () => {
    const edited = '{"mcpServers": {"plimsoll": {"command": "plimsoll", "args": ["mcp", "--total", "9"]}}}';
    put("project/.mcp.json", edited);
    for (const run of [installServers, uninstallServers]) {
      expect(told(await run(options(["claude-code"])))).toEqual([
        ["claude-code", "project/.mcp.json", "refused_target"],
      ]);
    }
    expect(read("project/.mcp.json")).toBe(edited);
  });

  test("an entry that a person wrote stays, even where it is the same as ours", async () => {
    const theirs = '{"mcpServers":{"plimsoll":{"command":"plimsoll","args":["mcp"]}}}';
    const toml = '[mcp_servers.plimsoll]\ncommand = "plimsoll"\nargs = ["mcp"]\n';
    const tools = ["claude-code", "codex-cli"];
    for (const isInstalled of [false, true]) {
      put("project/.mcp.json", theirs);
      put("project/.codex/config.toml", toml);
      if (isInstalled)
        expect(told(await installServers(options(tools))).map(([, , what]) => what)).toEqual([
          "as it was",
          "as it was",
        ]);
      const results = await uninstallServers(options());
      expect(results.map(({ problem }) => problem?.message)).toEqual([
        'mcpServers.plimsoll was not written by "plimsoll mcp install" here, so it was not changed',
        'mcp_servers.plimsoll was not written by "plimsoll mcp install" here, so it was not changed',
      ]);
      expect([read("project/.mcp.json"), read("project/.codex/config.toml")]).toEqual([theirs, toml]);
    }
  });

  test("an entry of ours can be taken out after its file was written anew, and is not ours any more then", async () => {
    put("project/.mcp.json", "{}");
    await installServers(options(["claude-code"]));
    await installServers(options(["claude-code"]));
    put("project/.mcp.json", JSON.stringify(JSON.parse(read("project/.mcp.json")), null, 4));
    const written = read("project/.mcp.json");
    symlinkSync(at("project"), at("link"));
    const places = { ...options().places, root: at("link") };
    expect((await uninstallServers(options(undefined, { places, dryRun: true }))).length).toBe(1);
    expect(told(await uninstallServers(options(undefined, { places })))[0]?.[2]).toBe("written");
    expect(read("project/.mcp.json")).not.toContain("plimsoll");
    put("project/.mcp.json", written);
    expect((await uninstallServers(options()))[0]?.problem?.code).toBe("refused_target");
    expect(existsSync(at("state/plimsoll/mcp-entries.json"))).toBe(false);
  });

  test("a link out of the project is refused", async () => {
    put("elsewhere/mcp.json", "{}");
    symlinkSync("../elsewhere/mcp.json", at("project/.mcp.json"));
    expect(told(await installServers(options(["claude-code"])))).toEqual([
      ["claude-code", "project/.mcp.json", "refused_target"],
    ]);
    expect(read("elsewhere/mcp.json")).toBe("{}");
  });

  test("an adapter whose key is none is told", async () => {
    const broken = adapter("broken", { mcpConfigs: [{ path: "x.json", key: "a..b" }] });
    const [result] = await installServers(options(["broken"], { adapters: [broken] }));
    expect(result!.problem).toMatchObject({
      code: "invalid_content",
      message: expect.stringContaining("a..b"),
    });
  });
});
