import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { pluginClients } from "../index.ts";
import { openCode } from "./opencode.ts";
import { changePlugin, installState, type PluginPlace, type PluginSettings } from "./plugin.ts";

let root: string;
let place: PluginPlace;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "plimsoll-plugin-"));
  place = { scope: "user", root, env: { HOME: root } };
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const change = async (client: string, action: "install" | "uninstall", maxResultTokens?: number) =>
  changePlugin(await pluginClients[client]!(), {
    ...{ action, place, dryRun: false },
    settings: { deltas: true, maxResultTokens },
  });

const names = Object.keys(pluginClients);

test.each(names)("%s: uninstall leaves the folder as it was before install", async (name) => {
  mkdirSync(join(root, ".claude"));
  writeFileSync(join(root, ".claude/settings.json"), '{\n  // mine\n  "model": "opus",\n}');
  const before = filesBelow(root);
  const installed = await change(name, "install");
  expect(installed.map(({ problem }) => problem)).toEqual(installed.map(() => undefined));
  expect(filesBelow(root)).not.toEqual(before);
  expect(await installState(await pluginClients[name]!(), place)).toBe("installed");
  await change(name, "uninstall");
  expect(filesBelow(root)).toEqual(before);
});

test.each(names)(
  "%s: a second install writes nothing, and one with other settings replaces the files",
  async (name) => {
    await change(name, "install");
    expect((await change(name, "install")).some(({ change }) => change?.written)).toBe(false);
    expect((await change(name, "install", 4_000)).some(({ change }) => change?.written)).toBe(true);
    await change(name, "uninstall");
    expect(filesBelow(root)).toEqual({});
  },
);

test.each(names)("%s: an install with other settings is known as installed, with these settings", async (name) => {
  const client = await pluginClients[name]!();
  const settings = {
    ...{ deltas: name === "gemini-cli", maxResultTokens: 4_000 },
    ...(client.canTrim === true && { trim: "window" as const }),
    ...(client.canLeaveOutImages === true && { images: 3 }),
    ...(client.canGuard === true && { guard: true }),
  };
  expect(await installState(client, place)).toBe("absent");
  const [first] = await changePlugin(client, { action: "install", place, settings, dryRun: false });
  expect(await installState(client, place)).toBe("installed");
  expect(client.installedSettings(place)).toEqual(settings);
  writeFileSync(first!.path, "changed");
  expect(await installState(client, place)).toBe("other");
});

test("a file that a person changed is neither overwritten nor removed", async () => {
  await change("claude-code", "install");
  const file = join(root, ".claude/skills/plimsoll/.mcp.json");
  writeFileSync(file, "{}");
  for (const action of ["install", "uninstall"] as const) {
    const reports = await change("claude-code", action);
    expect(reports.at(-1)?.problem).toMatchObject({ code: "refused_target", file });
    expect(readFileSync(file, "utf8")).toBe("{}");
  }
});

test("a manifest that names a file outside of the folder removes nothing there", async () => {
  await change("claude-code", "install");
  const folder = join(root, ".claude/skills/plimsoll");
  writeFileSync(join(root, "mine.txt"), "");
  const manifest = JSON.parse(readFileSync(join(folder, "plimsoll.json"), "utf8"));
  manifest.files["../../../mine.txt"] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
  writeFileSync(join(folder, "plimsoll.json"), JSON.stringify(manifest));
  await change("claude-code", "uninstall");
  expect(existsSync(join(root, "mine.txt"))).toBe(true);
  expect(existsSync(folder)).toBe(false);
});

function filesBelow(folder: string): Record<string, string> {
  const paths = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  // Locks are in the state folder.
  const own = paths.map((entry) => join(entry.parentPath, entry.name)).filter((path) => !path.includes("/.local/"));
  return Object.fromEntries(own.sort().map((path) => [path, readFileSync(path, "latin1")]));
}

test("a client is asked only for what it can do", async () => {
  const settings = { deltas: true, trim: 100_000 };
  const install = async (name: string, where: PluginPlace) =>
    changePlugin(await pluginClients[name]!(), { action: "install", place: where, settings, dryRun: false });
  await expect(install("gemini-cli", place)).rejects.toThrow("does not trim histories");
  const images = { action: "install", place, settings: { deltas: true, images: 2 }, dryRun: false } as const;
  await expect(changePlugin(await pluginClients["gemini-cli"]!(), images)).rejects.toMatchObject({
    ...{ code: "usage", message: expect.stringContaining("cannot change images"), hint: "Leave out --images." },
  });
  await expect(change("gemini-cli", "install")).resolves.toHaveLength(3);
  const project = { ...place, scope: "project" } as const;
  const gemini = await pluginClients["gemini-cli"]!();
  const inProject = { action: "install", place: project, settings: { deltas: true }, dryRun: false } as const;
  await expect(changePlugin(gemini, inProject)).rejects.toThrow("gemini-cli loads no plugins from a project");
  await install("opencode", place);
  expect(readFileSync(join(root, ".config/opencode/plugins/plimsoll.js"), "utf8")).toContain('"trim":100000');
});

test("Claude Code's module names its events as the client needs it, that of requests only with --trim or --images", async () => {
  const file = join(root, ".claude/skills/plimsoll/hooks/register.js");
  const eventsWith = async (more: Pick<PluginSettings, "trim" | "images">) => {
    const settings = { deltas: true, ...more };
    await changePlugin(await pluginClients["claude-code"]!(), { action: "install", place, settings, dryRun: false });
    const module = readFileSync(file, "utf8");
    // The client does not load a module in which the name of an event is a variable.
    expect(module).not.toMatch(/\bon\((?!\s*")/);
    return [...module.matchAll(/\bon\(\s*"([\w.]+)"/g)].map(([, name]) => name);
  };
  const usual = ["session.start", "session.append", "session.append", "session.append"];
  expect(await eventsWith({})).toEqual(usual);
  expect(await eventsWith({ trim: 100_000 })).toEqual([...usual, "http.fetch"]);
  expect(readFileSync(file, "utf8")).toContain("const chosen = { trims: true, images: 0 };");
  expect(await eventsWith({ images: 3 })).toEqual([...usual, "http.fetch"]);
  expect(readFileSync(file, "utf8")).toContain("const chosen = { trims: false, images: 3 };");
});

test("opencode's own packages are neither overwritten nor removed", async () => {
  const lock = join(root, ".config/opencode/package-lock.json");
  mkdirSync(join(root, ".config/opencode/node_modules/zod"), { recursive: true });
  writeFileSync(lock, "{}");
  const written = await change("opencode", "install");
  expect(written.map(({ path }) => path)).toEqual([join(root, ".config/opencode/plugins/plimsoll.js")]);
  await change("opencode", "uninstall");
  expect(readFileSync(lock, "utf8")).toBe("{}");
  expect(existsSync(join(root, ".config/opencode/node_modules/zod"))).toBe(true);
});

test("the spend guard is a hook of Claude Code, only on request", async () => {
  const hooks = join(root, ".claude/skills/plimsoll/hooks/hooks.json");
  const install = async (name: string, guard: boolean) =>
    changePlugin(await pluginClients[name]!(), {
      ...{ action: "install" as const, place, dryRun: false },
      settings: { deltas: true, guard },
    });
  await install("claude-code", false);
  expect(readFileSync(hooks, "utf8")).not.toContain("plimsoll guard");
  await install("claude-code", true);
  expect(JSON.parse(readFileSync(hooks, "utf8")).hooks.PreToolUse.at(-1)).toEqual({
    matcher: "^(?!mcp__plugin_plimsoll_plimsoll__recall$)",
    hooks: [{ type: "command", command: "plimsoll guard --hook", timeout: 10 }],
  });
  await expect(install("pi", true)).rejects.toMatchObject({ code: "usage", hint: "Leave out --guard." });
});

test("the script of opencode loads plimsoll from no folder of the project", async () => {
  const project = join(root, "hostile");
  mkdirSync(join(project, "bundle"), { recursive: true });
  writeFileSync(join(project, "plimsoll"), "");
  writeFileSync(join(project, "bundle/plugin-hooks.js"), 'export const openHooks = () => ({ loaded: "planted" });');
  const place = { scope: "project", root: project, env: {} } as const;
  const [script] = await openCode.files(place, { deltas: true });
  writeFileSync(join(project, "plugin.mjs"), script!.install(undefined)!, "latin1");
  const program = 'import("./plugin.mjs").then(async ({ Plimsoll }) => console.log(JSON.stringify(await Plimsoll())))';
  for (const PATH of ["", ":.", "bundle/.."]) {
    const { stdout } = spawnSync(process.execPath, ["-e", program], { cwd: project, env: { PATH }, encoding: "utf8" });
    expect(stdout).toBe("{}\n");
  }
});

test("an install beside files of somebody else changes nothing, so that they do not become a plugin", async () => {
  for (const name of [".mcp.json", "hooks/other.json", "skills/a/SKILL.md"]) {
    const folder = join(root, ".claude/skills/plimsoll");
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), "{}");
    const before = filesBelow(root);
    const reports = await change("claude-code", "install");
    expect(reports).toMatchObject([{ problem: { code: "refused_target", file: join(folder, name) } }]);
    expect(filesBelow(root)).toEqual(before);
    rmSync(folder, { recursive: true });
  }
});

test("a manifest that names files behind a link deletes none of them", async () => {
  const folder = join(root, ".claude/skills/plimsoll");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(root, "mine.txt"), "");
  symlinkSync("../../..", join(folder, "link"));
  const empty = createHash("sha256").update("").digest("hex");
  const files = { "link/mine.txt": empty, "../../../mine.txt": empty };
  writeFileSync(join(folder, "plimsoll.json"), JSON.stringify({ files }));
  await change("claude-code", "uninstall");
  expect(existsSync(join(root, "mine.txt"))).toBe(true);
  expect((await change("claude-code", "install"))[0]?.problem?.file).toBe(join(folder, "link"));
});
