import { mkdirSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createProject, type InjectProject } from "./inject-project.ts";
import { runProcess } from "./run-plimsoll.ts";

const deep = process.env.PLIMSOLL_DEEP === "1";

let project: InjectProject;
beforeEach(() => {
  project = createProject();
});
afterEach(() => project.remove());

const tools = [
  ...["agents-md", "amazon-q", "augment", "claude-code", "continue", "cursor", "devin-desktop", "firebase-studio"],
  ...["gemini-cli", "github-copilot", "jetbrains-ai", "kiro", "qwen-code", "replit", "trae"],
];
const row = [
  ...["adapter", "paths", "packs", "scoped", "dropped", "thinned", "leftOut", "approxTokens", "renderedBytes"],
  ...["counter", "budget", "verbosity", "status", "written"],
];

test("the help is as pinned", async () => {
  const help = await project.call(["inject", "--help"]);
  expect(help).toMatchObject({ code: 0, stderr: "" });
  await expect(help.stdout).toMatchFileSnapshot("golden/help-inject.txt");
});

test("without a tool in use, CLAUDE.md and AGENTS.md are written; a second run writes nothing", async () => {
  expect(await project.call(["inject", "--check", "-q"])).toMatchObject({ code: 1 });
  const first = await project.run(["inject", "-q"]);
  expect(first).toMatchObject({ code: 0, stderr: "" });
  expect(Object.keys(project.tree())).toEqual(["AGENTS.md", "CLAUDE.md"]);
  const before = project.identities();
  const second = await project.run(["inject"]);
  expect(second.stdout).toBe("AGENTS.md (agents-md): already current\nCLAUDE.md (claude-code): already current\n");
  expect(await project.call(["inject", "--force", "-q"])).toMatchObject({ code: 0 });
  expect(project.identities()).toEqual(before);
  expect(await project.call(["inject", "--check", "-q"])).toMatchObject({ code: 0, stderr: "" });
});

/** Sets of tools, and what people have in their files already. */
const sets = fc.sample(
  fc.record({
    tools: fc.subarray(tools, { minLength: 1 }),
    flags: fc.subarray([
      ["--verbosity", "minimal"],
      ["--on-overflow", "thin"],
      ["--counter", "estimate:claude-5"],
      ["--lang", "de"],
    ]),
    own: fc.dictionary(
      fc.constantFrom("AGENTS.md", "CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md"),
      fc.constantFrom(
        "",
        "# Mine\n",
        "# Mine\r\n\r\ncaf\xe9",
        "\xef\xbb\xbfx",
        `${"long ".repeat(4_000)}\n`,
        "@AGENTS.md\n",
      ),
    ),
  }),
  deep ? 60 : 3,
);

const isText = (text: string | undefined) => text !== undefined && text.trim() !== "";

const importers = [
  { tool: "claude-code", path: "CLAUDE.md" },
  { tool: "gemini-cli", path: "GEMINI.md" },
];

test.each([{ tools, flags: [], own: {} as Record<string, string> }, ...sets])(
  "right after inject everything is current, nothing is left to write: $tools.length tools, $flags",
  async ({ tools: chosen, flags, own }) => {
    for (const [path, bytes] of Object.entries(own)) project.put(path, bytes);
    const args = ["inject", "--tool", chosen.join(","), "-q", ...flags.flat()];
    const first = await project.call(args);
    expect(first).toMatchObject({ code: 0, stderr: "" });
    const before = project.identities();
    const [status, check, again] = await Promise.all([
      project.call([...args, "--status", "--json"]),
      project.call([...args, "--check"]),
      project.call([...args, "--json"]),
    ]);
    const rows: { adapter: string; state: string }[] = JSON.parse(status.stdout);
    expect(rows.filter(({ state }) => state !== "current")).toEqual([]);
    // A tool whose file imports AGENTS.md shares the block there, so its budget counts and its file is listed.
    const importing = importers.filter(({ path }) => own[path]?.startsWith("@") && chosen.includes("agents-md"));
    // A new CLAUDE.md would hide the team's AGENTS.md from Claude Code, so the block goes there.
    const isShared = chosen.includes("claude-code") && isText(own["AGENTS.md"]) && !isText(own["CLAUDE.md"]);
    const listed = [...chosen, ...importing.map(({ tool }) => tool), ...(isShared ? ["agents-md"] : [])];
    expect(rows.map(({ adapter }) => adapter).sort()).toEqual([...new Set(listed)].sort());
    expect(check).toMatchObject({ code: 0, stderr: "" });
    expect(JSON.parse(again.stdout).filter(({ written }: { written: boolean }) => written)).toEqual([]);
    expect(project.identities()).toEqual(before);
  },
);

test("a changed pack makes a file stale, a lost file is not found, a file without a block is not injected", async () => {
  const args = ["--tool", "claude-code,gemini-cli,qwen-code"];
  project.put("QWEN.md", "Mine.\n");
  project.pack("own", "## Own\n\nOne.\n");
  await project.call(["inject", "--tool", "claude-code", "-q"]);
  project.pack("own", "## Own\n\nTwo.\n");
  const before = project.identities();
  const status = await project.call(["inject", "--status", ...args]);
  expect(status.code).toBe(0);
  expect(status.stdout).toMatch(/^stale +CLAUDE\.md .*\nnot found +GEMINI\.md .*\nnot injected +QWEN\.md /m);
  expect(await project.call(["inject", "--check", ...args])).toMatchObject({
    code: 1,
    stdout: status.stdout,
  });
  expect(project.identities()).toEqual(before);
});

test("a checkout with other line ends makes no file stale", async () => {
  const args = ["--tool", "claude-code,cursor", "-q"];
  await project.call(["inject", ...args]);
  for (const path of ["CLAUDE.md", ".cursor/rules/plimsoll.mdc"]) {
    project.put(path, project.read(path).replaceAll("\n", "\r\n"));
  }
  const before = project.identities();
  expect(await project.call(["inject", "--check", ...args])).toMatchObject({ code: 0, stderr: "" });
  await project.call(["inject", ...args]);
  expect(project.identities()).toEqual(before);
});

test("the diff of a dry run is what the real run changes, and the dry run writes nothing", async () => {
  project.put("AGENTS.md", "# Mine\n\nNo final line break");
  project.put("CLAUDE.md", "# Windows\r\n\r\nText.\r\n");
  project.put("QWEN.md", "\xef\xbb\xbf# Mark\n");
  await project.call(["inject", "--tool", "replit,cursor", "--verbosity", "minimal", "-q"]);
  const args = ["inject", "--tool", "agents-md,claude-code,cursor,gemini-cli,kiro,qwen-code,replit"];
  const before = project.identities();
  const dry = await project.call([...args, "--dry-run", "--stats", "--diff"]);
  expect(dry.code).toBe(0);
  expect(project.identities()).toEqual(before);
  const copy = join(project.cwd, "../copy");
  mkdirSync(copy);
  await runProcess(["cp", "-r", `${project.cwd}/.`, copy], {});
  const patched = await runProcess(["git", "apply", "-p0", "--whitespace=nowarn"], {
    cwd: copy,
    env: { ...project.env, GIT_DIR: "none" },
    input: dry.stdout,
  });
  expect(patched).toEqual({ code: 0, stdout: "", stderr: "" });
  expect(await project.call([...args, "-q"])).toMatchObject({ code: 0 });
  expect(project.tree()).toEqual(project.tree(copy));
  const nothing = await project.call([...args, "--dry-run"]);
  expect(nothing.stdout).not.toContain("@@");
});

test("the diff names paths as the current directory sees them, in a project below HOME too", async () => {
  project.put("sub/file", "");
  const { stdout } = await project.call(["inject", "--tool", "claude-code", "--dry-run", "-q"], {
    cwd: join(project.cwd, "sub"),
    env: { HOME: join(project.cwd, "..") },
  });
  expect(/^\+\+\+ (\S+)/m.exec(stdout)?.[1]).toBe("../CLAUDE.md");
});

test("JSON has these keys and nothing else on stdout", async () => {
  project.put("AGENTS.md", `${"x".repeat(80)}\n`.repeat(350));
  project.pack("huge", `## Huge\n\n${"y".repeat(40_000)}\n`, "weight: 0");
  project.pack("covered", "## Covered\n", "weight: 0\noverlaps: [security]");
  const dry = await project.call(["inject", "--tool", "agents-md,gemini-cli", "--dry-run", "--json"]);
  expect(dry.code).toBe(0);
  const [agents, gemini] = JSON.parse(dry.stdout);
  expect(Object.keys(agents)).toEqual([...row, "diff"]);
  const { diff, ...rest } = gemini;
  expect(diff).toMatch(/^--- \/dev\/null.*\n\+\+\+ GEMINI\.md/m);
  expect(rest).toMatchObject({
    ...{ adapter: "gemini-cli", paths: ["GEMINI.md"], thinned: [], counter: "estimate:claude-5", budget: null },
    ...{ verbosity: "full", status: "OK (1 pack trimmed)", written: false },
    dropped: [{ id: "covered", reason: "overlap", by: "security" }],
  });
  expect(gemini.packs).toContain("huge");
  expect(gemini.approxTokens).toBeGreaterThan(gemini.renderedBytes / 4);
  expect(agents.dropped).toContainEqual({ id: "huge", reason: "budget" });
  expect(agents.thinned).toContainEqual({ id: "base", tier: "extended" });
  const real = JSON.parse((await project.call(["inject", "--tool", "gemini-cli", "--json"])).stdout);
  expect(real).toEqual([{ ...rest, written: true }]);
  const status = await project.call(["inject", "--status", "--tool", "agents-md,gemini-cli", "--json"]);
  expect(JSON.parse(status.stdout)).toEqual([
    {
      ...{ adapter: "agents-md", scope: "project", path: "AGENTS.md", state: "not injected" },
      ...{ bytes: agents.renderedBytes, limit: { value: 32_768, unit: "bytes", kind: "hard" } },
      dropped: agents.dropped.flatMap(({ id, reason }: { id: string; reason: string }) =>
        reason === "budget" ? [id] : [],
      ),
      required: [],
    },
    {
      ...{ adapter: "gemini-cli", scope: "project", path: "GEMINI.md", state: "current" },
      ...{ bytes: gemini.renderedBytes, limit: null, dropped: [], required: [] },
    },
  ]);
});

test("what a pack says about imports does not turn its file into an importing one", async () => {
  const tool = ["--tool", "agents-md,claude-code", "-q"];
  project.pack("own", "## Own\n\nPut @AGENTS.md into CLAUDE.md. One.\n");
  await project.call(["inject", ...tool]);
  project.pack("own", "## Own\n\nPut @AGENTS.md into CLAUDE.md. Two.\n");
  await project.call(["inject", ...tool]);
  expect(project.read("CLAUDE.md")).toContain("Two.");
  expect(await project.call(["inject", "--check", ...tool])).toMatchObject({ code: 0 });
});
