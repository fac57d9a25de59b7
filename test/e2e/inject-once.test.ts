/** Each tool gets our text once, in the files that it reads together; and what was written before is found again. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createProject, type InjectProject } from "./inject-project.ts";

let project: InjectProject;
beforeEach(() => {
  project = createProject();
});
afterEach(() => project.remove());

const files = () =>
  Object.entries(project.tree())
    .filter(([path, text]) => text !== "(directory)" && !path.startsWith(".plimsoll"))
    .map(([path]) => path);
const config = (text: string) => project.put(".plimsoll/config.yaml", text);
const check = (...more: string[]) => project.call(["inject", "--check", ...more]);
const inject = (...more: string[]) => project.call(["inject", ...more]);

/** What git tracks is looked through: without a repository there is nothing to look through. */
function track(): void {
  rmSync(join(project.cwd, ".git"), { recursive: true, force: true });
  for (const args of [
    ["init", "-q"],
    ["add", "-A", "-f"],
  ])
    execFileSync("git", args, { cwd: project.cwd, env: { ...project.env, PATH: process.env.PATH } });
}

describe("a tool that reads AGENTS.md", () => {
  test("gets no copy in a file of its own, and audit has nothing against it", async () => {
    config("tools: [agents-md, cursor, github-copilot]\n");
    const run = await inject();
    expect(run.code).toBe(0);
    expect(run.stdout).toMatch(/^AGENTS\.md \(agents-md, cursor, github-copilot\): created/);
    expect(files()).toEqual(["AGENTS.md"]);
    expect(await check()).toMatchObject({ code: 0, stderr: "" });
    const { tools } = JSON.parse((await project.call(["audit", "--json"])).stdout);
    const advice = tools.flatMap((tool: { advice: string[] }) => tool.advice);
    expect(advice.filter((sentence: string) => sentence.includes("Plimsoll's block"))).toEqual([]);
    const rows = JSON.parse((await inject("--json")).stdout);
    expect(rows.map(({ adapter, paths }: { adapter: string; paths: string[] }) => [adapter, paths])).toEqual([
      ["agents-md", ["AGENTS.md"]],
      ["cursor", ["AGENTS.md"]],
      ["github-copilot", ["AGENTS.md"]],
    ]);
  });

  test("keeps its own file where the configuration says so, or where AGENTS.md is not written", async () => {
    await inject("--tool", "cursor", "-q");
    expect(files()).toEqual([".cursor/rules/plimsoll.mdc"]);
    expect(await check("--tool", "cursor")).toMatchObject({ code: 0 });
    config("tools: [agents-md, cursor]\nown_files: [cursor]\n");
    await inject("-q");
    expect(files()).toEqual([".cursor/rules/plimsoll.mdc", "AGENTS.md"]);
    expect(await check()).toMatchObject({ code: 0 });
    config("tools: [agents-md, cursor]\nown_files: [cursro]\n");
    expect(await inject()).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('config.yaml:2: unknown tool "cursro". Did you mean "cursor"?'),
    });
  });

  test("is served by AGENTS.md though the run names only the tool", async () => {
    await inject("-q");
    project.pack("own", "## Own\n\nOurs.\n");
    const run = await inject("--tool", "cursor");
    expect(run.stderr).toContain("cursor gets no separate file, because it reads the file of agents-md");
    expect(project.read("AGENTS.md")).toContain("## Own");
    expect(files()).toEqual(["AGENTS.md", "CLAUDE.md"]);
  });

  test("is served through its import of AGENTS.md though the run names only the tool", async () => {
    project.put("CLAUDE.md", "@AGENTS.md\n\nOurs.\n");
    config("tools: [agents-md, claude-code]\n");
    await inject("-q");
    const run = await inject("--tool", "claude-code");
    expect(run.stdout).toContain("CLAUDE.md (claude-code): imports AGENTS.md, which holds the block");
    expect(project.read("CLAUDE.md")).toBe("@AGENTS.md\n\nOurs.\n");
    expect(await check("--tool", "claude-code")).toMatchObject({ code: 0 });
    expect(await check()).toMatchObject({ code: 0 });
    // Only the named tool's part is removed.
    await inject("--uninstall", "--tool", "claude-code", "-q");
    expect(files()).toEqual(["AGENTS.md", "CLAUDE.md"]);
    expect(project.read("AGENTS.md")).toContain("plimsoll:start");
  });

  test.each(["import", "link"])("limits AGENTS.md with its budget in a run for another tool: %s", async (kind) => {
    config("tools: [agents-md, claude-code]\nbudgets: { claude-code: 1500, codex-cli: 1600 }\n");
    if (kind === "link") symlinkSync("AGENTS.md", join(project.cwd, "CLAUDE.md"));
    else project.put("CLAUDE.md", "@AGENTS.md\n");
    await inject("-q");
    const text = project.read("AGENTS.md");
    for (const tool of ["agents-md", "claude-code", "cursor", "codex-cli"]) {
      await inject("--tool", tool, "-q");
      expect({ tool, text: project.read("AGENTS.md") }).toEqual({ tool, text });
    }
    expect(await check()).toMatchObject({ code: 0 });
    expect(files()).toEqual(["AGENTS.md", "CLAUDE.md"]);
  });

  test("loses an own block once it imports AGENTS.md, in a run for AGENTS.md alone", async () => {
    project.put("CLAUDE.md", "@AGENTS.md\n");
    await inject("--tool", "claude-code", "-q");
    expect(project.read("CLAUDE.md")).toContain("plimsoll:start");
    await inject("--tool", "agents-md", "-q");
    expect(project.read("CLAUDE.md")).toBe("@AGENTS.md\n");
    expect(await check()).toMatchObject({ code: 0 });
  });

  test("has its own file under HOME, where none reads that of another", async () => {
    const both = ["--global", "--tool", "agents-md,github-copilot"];
    const run = await inject(...both);
    expect(run.stderr).not.toContain("gets no separate file");
    expect(run.stdout).toMatch(/^~\/\.agents\/AGENTS\.md \(agents-md\): created/m);
    expect(run.stdout).toMatch(/^~\/\.copilot\/copilot-instructions\.md \(github-copilot\): created/m);
    const alone = await inject("--global", "--tool", "github-copilot");
    expect(alone.stdout).toBe("~/.copilot/copilot-instructions.md (copilot-cli, github-copilot): already current\n");
  });

  test("is chosen from other content though that knows not every tool of the configuration", async () => {
    config("tools: [agents-md, cursor]\n");
    const content = fileURLToPath(new URL("../../examples/sap/sets/plain", import.meta.url));
    expect(await inject("--content", content, "--tool", "claude-code", "-q")).toMatchObject({
      ...{ code: 0, stderr: "" },
    });
  });

  test("has the smallest budget of those that share the file, and none of their limits on other files", async () => {
    project.speakEveryLanguage();
    config("tools: [agents-md, devin-desktop]\nverbosity: { devin-desktop: standard }\n");
    const rows = JSON.parse((await inject("--json", "--dry-run")).stdout);
    expect(rows[1]).toMatchObject({ adapter: "devin-desktop", verbosity: "standard", dropped: [] });
    expect(rows[1].renderedBytes).toBeGreaterThan(12_000);
  });
});

test("adapters that name different sections of one file share one block, also after a change", async () => {
  await inject("--tool", "claude-code", "-q");
  mkdirSync(join(project.cwd, "../company/adapters"), { recursive: true });
  const target = "{ scope: project, path: CLAUDE.md, section: company }";
  writeFileSync(
    join(project.cwd, "../company/adapters/acme.yaml"),
    `id: acme\ntype: file-inject\ntargets:\n  - ${target}\n`,
  );
  project.env.PLIMSOLL_TRUST = "1";
  config("company: { source: ../company }\ntools: [claude-code, acme]\n");
  expect(await inject("-q")).toMatchObject({ code: 0, stderr: "" });
  expect(project.read("CLAUDE.md").match(/plimsoll:start:\w+/g)).toEqual(["plimsoll:start:company"]);
  expect(await check()).toMatchObject({ code: 0 });
  config("tools: [claude-code]\n");
  expect((await inject("--status")).stdout).toMatch(/^stale +CLAUDE\.md/m);
  await inject("-q");
  expect(project.read("CLAUDE.md").match(/plimsoll:start:\w+/g)).toEqual(["plimsoll:start:context"]);
  expect((await inject("--uninstall")).stdout).toBe("CLAUDE.md: deleted\n");
});

describe("what is left over", () => {
  test("of a tool that is no longer chosen is told, fails a check and goes when asked", async () => {
    project.put("GEMINI.md", "# Mine\r\n\r\nNo end");
    config("tools: [claude-code, gemini-cli, amazon-q]\n");
    await inject("-q");
    config("tools: [claude-code]\n");
    const run = await inject();
    expect(run.code).toBe(0);
    expect(run.stderr).toContain("GEMINI.md. Remove it with plimsoll inject --prune");
    const failed = await check();
    expect(failed.code).toBe(1);
    expect(failed.stdout).toMatch(/^left over +\.amazonq\/rules\/plimsoll\.md +amazon-q /m);
    expect(failed.stdout).toMatch(/^left over +GEMINI\.md +gemini-cli /m);
    expect(JSON.parse((await inject("--status", "--json")).stdout)).toContainEqual({
      ...{ adapter: "gemini-cli", scope: "project", path: "GEMINI.md" },
      ...{ state: "left over", bytes: 0, limit: null, dropped: [], required: [] },
    });
    const dry = await inject("--prune", "--dry-run");
    expect(dry.stdout).toMatch(/^GEMINI\.md: would restore$/m);
    expect(dry.stdout).toContain("+++ GEMINI.md");
    const pruned = await inject("--prune", "--json");
    expect(JSON.parse(pruned.stdout).slice(1)).toMatchObject([
      { adapter: "amazon-q", paths: [".amazonq/rules/plimsoll.md"], status: "removed", written: true },
      { adapter: "gemini-cli", paths: ["GEMINI.md"], status: "removed", written: true },
    ]);
    expect(project.read("GEMINI.md")).toBe("# Mine\r\n\r\nNo end");
    expect(files()).toEqual(["CLAUDE.md", "GEMINI.md"]);
    expect(existsSync(join(project.cwd, ".amazonq"))).toBe(false);
    expect(await check()).toMatchObject({ code: 0, stderr: "" });
  });

  test("of a tool that AGENTS.md serves now is a copy too many", async () => {
    await inject("--tool", "cursor", "-q");
    config("tools: [agents-md, cursor]\n");
    await inject("-q");
    expect((await check()).stdout).toMatch(/^left over +\.cursor\/rules\/plimsoll\.mdc +cursor /m);
    await inject("--prune", "-q");
    expect(files()).toEqual(["AGENTS.md"]);
    expect(await check()).toMatchObject({ code: 0 });
  });

  test("of content that is gone is found by its markers in every tracked text file", async () => {
    config("tools: [claude-code]\n");
    project.put("docs/AI notes.txt", "Mine.\n");
    project.write(
      ".plimsoll/adapters/notes.yaml",
      "id: notes\ntype: file-inject\ntargets:\n  - { scope: project, path: docs/AI notes.txt, section: Für alle }\n",
    );
    project.put(
      ".plimsoll/adapters/whole.yaml",
      "id: whole\ntype: file-inject\ntargets:\n  - { scope: project, path: rules/ours.md, mode: replace-file }\n",
    );
    expect(await inject("--tool", "notes,whole,claude-code", "-q")).toMatchObject({ code: 0, stderr: "" });
    rmSync(join(project.cwd, ".plimsoll/adapters"), { recursive: true });
    track();
    const failed = await check("--json");
    expect(failed.code).toBe(1);
    expect(JSON.parse(failed.stdout).slice(1)).toMatchObject([
      { adapter: null, path: "docs/AI notes.txt", state: "left over" },
      { adapter: null, path: "rules/ours.md", state: "left over" },
    ]);
    expect((await inject("--uninstall")).stdout).toBe(
      "CLAUDE.md: deleted\ndocs/AI notes.txt: restored\nrules/ours.md: deleted\n",
    );
    expect(project.read("docs/AI notes.txt")).toBe("Mine.\n");
    expect(files()).toEqual(["docs/AI notes.txt"]);
  });

  test("is neither an example in a fence, nor a block with another hash, nor that of a project further down", async () => {
    config("tools: [claude-code]\n");
    await inject("-q");
    const block = project.read("CLAUDE.md");
    project.put("docs/example.md", `Like this:\n\n\`\`\`\`html\n${block}\`\`\`\`\n`);
    project.put("docs/edited.md", block.replace("Maintained by", "Written by"));
    project.put("docs/unfinished.md", block.slice(0, -40));
    project.put(".plimsoll/packs/own/context.md", block);
    project.put("packages/a/.plimsoll/config.yaml", "tools: [claude-code]\n");
    project.put("packages/a/CLAUDE.md", block);
    project.put("node_modules/b/CLAUDE.md", block);
    track();
    execFileSync("git", ["rm", "-q", "--cached", "-r", "node_modules"], { cwd: project.cwd });
    rmSync(join(project.cwd, ".plimsoll/packs"), { recursive: true });
    expect(await check()).toMatchObject({ code: 0, stderr: "" });
    const before = project.identities();
    expect((await inject("--prune")).stdout).toBe("CLAUDE.md (claude-code): already current\n");
    expect(project.identities()).toEqual(before);
  });

  test("and edited stays until it is forced", async () => {
    config("tools: [claude-code, gemini-cli]\n");
    await inject("-q");
    project.put("GEMINI.md", project.read("GEMINI.md").replace("Maintained by", "Written by"));
    config("tools: [claude-code]\n");
    expect((await check()).stdout).toMatch(/^left over +GEMINI\.md/m);
    const run = await inject("--prune");
    expect(run).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("GEMINI.md: the block was edited by hand"),
    });
    expect(await inject("--prune", "--force", "-q")).toMatchObject({ code: 0 });
    expect(files()).toEqual(["CLAUDE.md", "GEMINI.md.bak"]);
  });
});

describe("files further down", () => {
  const text = (bytes: number) => `${"x".repeat(99)}\n`.repeat(bytes / 100);

  test("keep their room: what a tool read in a folder before, it reads there still", async () => {
    config("tools: [agents-md]\n");
    project.put("AGENTS.md", text(5_000));
    project.put("services/api/AGENTS.md", text(15_000));
    project.put("services/api/deep/AGENTS.md", text(5_000));
    project.put("services/web/AGENTS.md", text(9_000));
    const run = await inject();
    expect(run.code).toBe(0);
    expect(run.stderr).toContain(
      "agents-md: shortened to the tool's own limit of 32,768 bytes for all files that it reads in services/api/deep",
    );
    expect(project.read("AGENTS.md").length).toBeLessThanOrEqual(32_768 - 20_000);
    expect(await check()).toMatchObject({ code: 0, stderr: "" });
    const audited = await project.call(["audit", "services/api/deep"]);
    expect(audited.stdout).not.toContain("OVER THE LIMIT");
  });

  test("count before git knows them, and never where git ignores them", async () => {
    project.speakEveryLanguage();
    config("tools: [agents-md]\n");
    project.put(".gitignore", "build-*\n");
    track();
    project.put("build-1/AGENTS.md", text(20_000));
    project.put("node_modules/package/AGENTS.md", text(20_000));
    await inject("-q");
    expect(project.read("AGENTS.md").length).toBeGreaterThan(20_000);
    project.put("services/api/AGENTS.md", text(20_000));
    expect(await check()).toMatchObject({ code: 1, stdout: expect.stringContaining("over the limit") });
    await inject("-q");
    expect(project.read("AGENTS.md").length).toBeLessThanOrEqual(12_768);
    expect(await check()).toMatchObject({ code: 0 });
  });

  test("that leave no room for any block are named, and the file stays as it is", async () => {
    config("tools: [codex-cli]\n");
    project.put("AGENTS.md", text(5_000));
    project.put("services/api/AGENTS.md", text(27_700));
    const run = await inject("-q");
    expect(run.code).toBe(1);
    expect(run.stderr).toMatch(
      /exceeded even without packs \([\d,]+ of 32,768 bytes for all files that it reads in services\/api\)/,
    );
    expect(project.read("AGENTS.md")).toBe(text(5_000));
  });

  test("make a check fail wherever audit says that a limit is broken", async () => {
    project.speakEveryLanguage();
    config("tools: [agents-md]\n");
    await inject("-q");
    project.put("services/api/AGENTS.md", text(15_000));
    const failed = await check();
    expect(failed.code).toBe(1);
    expect(failed.stdout).toMatch(/^over the limit +services\/api\/AGENTS\.md +codex-cli +[\d,]+ +32,768 bytes$/m);
    const audited = await project.call(["audit", "services/api"]);
    expect(audited.stdout).toContain("OVER THE LIMIT");
    // The status tells the same and does not fail.
    expect(await inject("--status")).toMatchObject({ code: 0, stdout: failed.stdout });
    await inject("-q");
    expect(await check()).toMatchObject({ code: 0 });
  });

  test("that only say what is known at second hand break nothing", async () => {
    config("tools: [github-copilot]\n");
    await inject("-q");
    expect(await check()).toMatchObject({ code: 0 });
    const audited = await project.call(["audit"]);
    expect(audited.stdout).toContain("over a limit that a third party reports: ");
  });
});

test("a check reads nothing outside of the project, so that it says the same on every machine", async () => {
  config("tools: [claude-code, agents-md]\n");
  await inject("-q");
  const there = (path: string, value: string) => {
    mkdirSync(join(project.home, path, ".."), { recursive: true });
    writeFileSync(join(project.home, path), value);
  };
  there(".config/plimsoll/config.yaml", "title: Mine\ncounter: auto\ntools: [gemini-cli]\nlanguage: de\n");
  there(".codex/AGENTS.md", "x".repeat(40_000));
  there(".claude/CLAUDE.md", "x".repeat(5_000_000));
  there(".gemini/GEMINI.md", project.read("CLAUDE.md"));
  expect(await check()).toMatchObject({ code: 0, stderr: "" });
  expect((await inject()).stdout.match(/already current/g)).toHaveLength(2);
});

test("a file in the place of a tool's folder stops nothing", async () => {
  for (const name of [".github", ".cursor", ".kiro"]) project.put(name, "");
  expect(await inject("--tool", "claude-code", "-q")).toMatchObject({ code: 0, stderr: "" });
  expect((await inject("--uninstall")).stdout).toBe("CLAUDE.md: deleted\n");
});

test("a project is written though HOME cannot be", async () => {
  for (const home of ["/proc/self", "/dev/null"]) {
    const run = await project.run(["inject", "--tool", "claude-code", "-q"], {
      env: { HOME: home, XDG_STATE_HOME: "", TMPDIR: project.home },
      wrapper: ["timeout", "20"],
    });
    expect(run).toMatchObject({ code: 0, stderr: "" });
    await project.call(["inject", "--uninstall", "-q"]);
  }
});
