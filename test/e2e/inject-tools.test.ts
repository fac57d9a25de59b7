/** The built command: packs that only some AI tools get. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createSandbox, type Sandbox } from "./run-plimsoll.ts";

let sandbox: Sandbox;
beforeEach(() => {
  sandbox = createSandbox();
});
afterEach(() => sandbox.remove());

const read = (path: string) => readFileSync(join(sandbox.cwd, path), "utf8");

function setUp(tools: string, packs: Record<string, string>): void {
  sandbox.write(".plimsoll/config.yaml", `tools: [${tools}]\npacks: { built_in: [] }\n`);
  for (const [id, lines] of Object.entries(packs)) {
    sandbox.write(`.plimsoll/packs/${id}/pack.yaml`, `id: ${id}\n${lines}`);
    sandbox.write(`.plimsoll/packs/${id}/context.md`, `Rule of ${id}.\n`);
  }
}

test("a pack with tools or not_tools is only in the files of its tools", async () => {
  setUp("gemini-cli, claude-code", {
    all: "",
    claude: "tools: [claude-code]\n",
    others: "not_tools: [claude-code]\n",
  });
  expect(await sandbox.run(["inject"])).toMatchObject({ code: 0 });
  expect(read("CLAUDE.md")).toContain("Rule of all.");
  expect(read("CLAUDE.md")).toContain("Rule of claude.");
  expect(read("CLAUDE.md")).not.toContain("Rule of others.");
  expect(read("GEMINI.md")).toContain("Rule of others.");
  expect(read("GEMINI.md")).not.toContain("Rule of claude.");
  expect(await sandbox.call(["inject", "--check"])).toMatchObject({ code: 0 });
});

test("a tool that shares its file gets its pack in a rule file that only it reads", async () => {
  setUp("agents-md, cursor", { all: "", cursor: "tools: [cursor]\n" });
  expect(await sandbox.call(["inject"])).toMatchObject({ code: 0, stderr: "" });
  expect(read("AGENTS.md")).not.toContain("Rule of cursor.");
  expect(read(".cursor/rules/plimsoll-cursor.mdc")).toMatch(
    /^---\n[\s\S]*alwaysApply: true\n---\n[\s\S]*Rule of cursor\./,
  );
  expect(await sandbox.call(["inject", "--check"])).toMatchObject({ code: 0 });
  await sandbox.call(["inject", "--uninstall"]);
  expect(existsSync(join(sandbox.cwd, ".cursor"))).toBe(false);
});

test("names a tool that cannot get its pack because others read the same file", async () => {
  setUp("agents-md", { all: "", codex: "tools: [codex-cli]\n" });
  const { stderr } = await sandbox.call(["inject"]);
  expect(stderr).toContain("codex-cli does not get the pack codex: it shares AGENTS.md with agents-md");
  expect(read("AGENTS.md")).not.toContain("Rule of codex.");
});

test("writes no empty file for a tool without packs, and removes one that became empty", async () => {
  setUp("gemini-cli, claude-code", { all: "" });
  await sandbox.call(["inject"]);
  expect(existsSync(join(sandbox.cwd, "GEMINI.md"))).toBe(true);
  sandbox.write(".plimsoll/packs/all/pack.yaml", "id: all\nnot_tools: [gemini-cli]\n");
  await sandbox.call(["inject", "--prune"]);
  expect(existsSync(join(sandbox.cwd, "GEMINI.md"))).toBe(false);
  expect(existsSync(join(sandbox.cwd, "CLAUDE.md"))).toBe(true);
});

test("an empty title leaves only the packs", async () => {
  setUp("gemini-cli", { all: "" });
  sandbox.write(".plimsoll/config.yaml", 'tools: [gemini-cli]\ntitle: ""\npacks: { built_in: [] }\n');
  await sandbox.call(["inject"]);
  expect(read("GEMINI.md")).toMatch(/^<!-- plimsoll:start:\S+ \S+ -->\nRule of all\.\n<!-- plimsoll:end:\S+ -->\n$/);
  expect(await sandbox.call(["inject", "--check"])).toMatchObject({ code: 0 });
});

test("lint reports unknown tools, and a pack that no tool gets", async () => {
  setUp("agents-md", { a: "tools: [claude-cod]\n", b: "tools: [cursor]\nnot_tools: [cursor]\n" });
  const { code, stdout } = await sandbox.call(["packs", "lint"]);
  expect(code).toBe(1);
  expect(stdout).toContain('no AI tool has the id "claude-cod". Did you mean "claude-code"?');
  expect(stdout).toContain("tools and not_tools name the same tools, so no tool gets the pack");
});
