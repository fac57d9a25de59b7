import { spawnSync } from "node:child_process";
import { chmodSync, lstatSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createProject, type InjectProject } from "./inject-project.ts";
import { mainFile } from "./run-plimsoll.ts";

let project: InjectProject;
beforeEach(() => {
  project = createProject();
});
afterEach(() => project.remove());

const at = (path: string) => join(project.cwd, path);
const start = "<!-- plimsoll:start:context sha256=0123456789abcdef -->";
const end = "<!-- plimsoll:end:context -->";
const tools = [
  ...["agents-md", "claude-code", "cursor", "firebase-studio", "gemini-cli", "github-copilot"],
  ...["jetbrains-ai", "kiro", "qwen-code", "replit", "trae"],
].join(",");

/** Everything that must not be written, in one project. */
async function refusedTargets(): Promise<void> {
  project.keepOwnFiles();
  await project.call(["inject", "--tool", "replit", "-q"]);
  project.put("replit.md", project.read("replit.md").replace("Maintained by", "Edited by"));
  mkdirSync(at("../outside"));
  writeFileSync(at("../outside/file.md"), "Not yours.\n");
  symlinkSync("../outside/file.md", at("CLAUDE.md"));
  symlinkSync("../outside", at(".cursor"));
  mkdirSync(at("GEMINI.md"));
  project.put("QWEN.md", "Read only.\n");
  chmodSync(at("QWEN.md"), 0o444);
  project.put(".idx/airules.md", `Mine.\n${start}\nrest\n`);
  project.put(".trae/rules/project_rules.md", `${start}\na\n${end}\n\n${start}\nb\n${end}\n`);
  project.put(".kiro/steering/plimsoll.md", "Written by a person.\n");
  project.put(".aiassistant/rules/plimsoll.md", "\xff\xfeU\x00T\x00F\x00");
}

const reasons: Record<string, RegExp> = {
  "CLAUDE.md": /leads through a symbolic link out of /,
  ".cursor/rules/plimsoll.mdc": /leads through a symbolic link out of /,
  "GEMINI.md": /is a directory, not a file/,
  "QWEN.md": /is read-only \(mode 0444\)\. Allow writing/,
  "replit.md": /the block was edited by hand, so it was not changed\. .*--force/,
  ".idx/airules.md:2": /a start marker has no end marker/,
  ".trae/rules/project_rules.md:5": /there is a second block, or a marker left over from one/,
  ".kiro/steering/plimsoll.md": /plimsoll did not write this file, so it was not changed\. .*--force/,
  ".aiassistant/rules/plimsoll.md": /is UTF-16 text/,
};

test("each refused file is named with its reason, exit 1, and every other file is written", async () => {
  await refusedTargets();
  const before = project.identities();
  const run = await project.run(["inject", "--tool", tools, "--quiet"]);
  expect(run.code).toBe(1);
  const lines = run.stderr.trimEnd().split("\n");
  expect(lines).toHaveLength(Object.keys(reasons).length);
  for (const [place, reason] of Object.entries(reasons)) {
    expect(
      lines.find((line) => line.startsWith(`plimsoll: ${place}: `)),
      place,
    ).toMatch(reason);
  }
  expect(project.read("AGENTS.md")).toMatch(/^<!-- plimsoll:start:context /);
  expect(project.read(".github/copilot-instructions.md")).toMatch(/plimsoll:start:context /);
  const {
    "AGENTS.md": _agents,
    ".github": _folder,
    ".github/copilot-instructions.md": _copilot,
    ...after
  } = project.identities();
  expect(after).toEqual(before);
  expect(project.tree(at("../outside"))).toEqual({ "file.md": "Not yours.\n" });
});

test("a dry run, the status and JSON tell the same refusals", async () => {
  await refusedTargets();
  const before = project.identities();
  const dry = await project.call(["inject", "--tool", tools, "--dry-run", "--json"]);
  expect(dry.code).toBe(1);
  const rows: { adapter: string; status: string; written: boolean }[] = JSON.parse(dry.stdout);
  const failed = rows.filter(({ status }) => status === "failed").map(({ adapter }) => adapter);
  expect(failed.sort()).toEqual([
    "claude-code",
    "cursor",
    "firebase-studio",
    "gemini-cli",
    "jetbrains-ai",
    "kiro",
    "qwen-code",
    "replit",
    "trae",
  ]);
  const status = await project.call(["inject", "--tool", tools, "--status", "--json"]);
  expect(status.code).toBe(0);
  const states = JSON.parse(status.stdout).map((row: { path: string; state: string }) => [row.path, row.state]);
  expect(Object.fromEntries(states)).toMatchObject({
    "replit.md": "edited",
    ".idx/airules.md": "orphaned",
    ".trae/rules/project_rules.md": "orphaned",
    ".kiro/steering/plimsoll.md": "not injected",
    "AGENTS.md": "not found",
  });
  expect(await project.call(["inject", "--tool", tools, "--check"])).toMatchObject({ code: 1 });
  expect(project.identities()).toEqual(before);
});

test("with --force an edited block and a foreign file are overwritten, with a copy; broken markers and links never", async () => {
  await refusedTargets();
  const edited = project.read("replit.md");
  const run = await project.call(["inject", "--tool", tools, "--force", "-q"]);
  expect(run.code).toBe(1);
  expect(run.stderr).not.toMatch(/replit|kiro/);
  expect(run.stderr.trimEnd().split("\n")).toHaveLength(Object.keys(reasons).length - 2);
  expect(project.read("replit.md")).not.toContain("Edited by");
  expect(project.read("replit.md.bak")).toBe(edited);
  expect(project.read(".kiro/steering/plimsoll.md.bak")).toBe("Written by a person.\n");
  expect(await project.call(["inject", "--tool", "kiro,replit", "--check"])).toMatchObject({ code: 0 });
  expect(project.tree(at("../outside"))).toEqual({ "file.md": "Not yours.\n" });
});

test("CLAUDE.md that is a link to AGENTS.md stays a link, and the file gets one block for both tools", async () => {
  project.put("AGENTS.md", "# Mine\n");
  symlinkSync("AGENTS.md", at("CLAUDE.md"));
  for (const tool of ["claude-code", "agents-md,claude-code"]) {
    expect(await project.call(["inject", "--tool", tool, "-q"])).toMatchObject({ code: 0, stderr: "" });
    expect(lstatSync(at("CLAUDE.md")).isSymbolicLink()).toBe(true);
    expect(project.read("AGENTS.md").split("plimsoll:start:")).toHaveLength(2);
    expect(await project.call(["inject", "--tool", tool, "--check"])).toMatchObject({ code: 0 });
  }
  await project.call(["inject", "--uninstall", "-q"]);
  expect(project.tree()).toEqual({ "AGENTS.md": "# Mine\n", "CLAUDE.md": "-> AGENTS.md" });
});

test("CLAUDE.md that imports AGENTS.md gets no block of its own, and that is said", async () => {
  project.put("CLAUDE.md", "# Mine\n\n@AGENTS.md\n");
  const both = ["--tool", "agents-md,claude-code"];
  const run = await project.call(["inject", ...both, "--stats"]);
  expect(run.stdout).toMatch(/^claude-code .*OK \(imports AGENTS\.md\)$/m);
  expect((await project.call(["inject", ...both])).stdout).toContain(
    "CLAUDE.md (claude-code): imports AGENTS.md, which holds the block\n",
  );
  expect(project.read("CLAUDE.md")).toBe("# Mine\n\n@AGENTS.md\n");
  expect(await project.call(["inject", ...both, "--check"])).toMatchObject({ code: 0 });
  // Without a block in AGENTS.md it has nothing else to show.
  await project.call(["inject", "--uninstall", "-q"]);
  await project.call(["inject", "--tool", "claude-code", "-q"]);
  expect(project.read("CLAUDE.md")).toContain("plimsoll:start:context");
});

test("an import in code, or of another file, is no import", async () => {
  const text = "Write `@AGENTS.md` here:\n\n```\n@AGENTS.md\n```\nSee @docs/AGENTS.md and mail@AGENTS.md.\n";
  project.put("CLAUDE.md", text);
  await project.call(["inject", "--tool", "agents-md,claude-code", "-q"]);
  expect(project.read("CLAUDE.md").slice(text.length)).toContain("plimsoll:start:context");
});

// Permissions do not bind root: there the command runs as nobody, if setpriv is present and nobody can reach the build.
const asNobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
const isRoot = process.getuid?.() === 0;
const nobodyWorks =
  isRoot && spawnSync(asNobody[0]!, [...asNobody.slice(1), process.execPath, mainFile, "-V"]).status === 0;

test.skipIf(isRoot && !nobodyWorks)(
  "a file and a folder without permission to write are named, the others written",
  async () => {
    chmodSync(at(".."), 0o755);
    project.keepOwnFiles();
    project.put("CLAUDE.md", "Not yours.\n");
    project.put(".kiro/steering/other.md", "");
    chmodSync(at("CLAUDE.md"), 0o444);
    chmodSync(at(".kiro/steering"), 0o555);
    chmodSync(at("."), 0o777);
    mkdirSync(at("../state"));
    chmodSync(at("../state"), 0o777);
    const run = await project.run(["inject", "--tool", "agents-md,claude-code,kiro", "-q"], {
      wrapper: isRoot ? asNobody : [],
      env: { XDG_STATE_HOME: at("../state") },
    });
    expect(run.code).toBe(1);
    expect(run.stderr.trimEnd().split("\n")).toEqual([
      "plimsoll: CLAUDE.md: is read-only (mode 0444). Allow writing: chmod u+w.",
      "plimsoll: .kiro/steering/plimsoll.md: no permission to write in its directory",
    ]);
    expect(project.read("AGENTS.md")).toMatch(/^<!-- plimsoll:start:context /);
    expect(project.read("CLAUDE.md")).toBe("Not yours.\n");
  },
);

test("a link to a file that usually holds secrets is refused, and its contents are neither shown nor changed", async () => {
  project.put(".env", "TOKEN=abc\n");
  symlinkSync(".env", at("AGENTS.md"));
  for (const flags of [["--dry-run"], []]) {
    const { code, stdout, stderr } = await project.call(["inject", "--tool", "agents-md", ...flags]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/AGENTS\.md: is a link to .*\.env, which usually holds secrets/);
    expect(stdout + stderr).not.toContain("TOKEN=abc");
  }
  expect(project.read(".env")).toBe("TOKEN=abc\n");
});
