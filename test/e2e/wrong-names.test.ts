/** Names that do not exist: every place refuses them in the same way, and every place accepts the same ones. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createProject, type InjectProject } from "./inject-project.ts";

let project: InjectProject;
beforeEach(() => {
  project = createProject();
});
afterEach(() => project.remove());

function configure(text: string): void {
  project.put(".plimsoll/config.yaml", text);
}

describe("languages", () => {
  test.each([
    ["inject", "--dry-run"],
    ["packs", "list"],
    ["packs", "show", "base"],
  ])("%s %s refuses an unknown --lang and lists the known ones", async (...command) => {
    const { code, stdout, stderr } = await project.call([...command, "--lang", "xx"]);
    expect({ code, stdout, stderr }).toEqual({
      ...{ code: 2, stdout: "", stderr: 'plimsoll: unknown language "xx". Languages are de, en.\n' },
    });
  });

  test("a language of the configuration is refused with its line", async () => {
    configure("title: T\nlanguage: xx\n");
    const { code, stderr } = await project.call(["inject", "--dry-run"]);
    expect(code).toBe(1);
    expect(stderr).toContain('.plimsoll/config.yaml:2: unknown language "xx"');
  });

  test.each(["de", "de-AT", "DE", "en", "en-GB"])("%s is known", async (language) => {
    expect((await project.call(["inject", "--dry-run", "--lang", language])).code).toBe(0);
  });

  test("a language is known if one pack has it", async () => {
    project.pack("ours", "## Ours\n");
    project.put(".plimsoll/packs/ours/context.pt-br.md", "## Nosso\n");
    expect((await project.call(["inject", "--dry-run", "--lang", "pt-BR"])).code).toBe(0);
  });
});

describe("tools", () => {
  test.each([
    ["claude", "claude-code"],
    ["cluade", "claude-code"],
    ["copilot", "copilot-cli"],
    ["codex", "codex-cli"],
    ["windsurf", "devin-desktop"],
    ["jetbrains", "jetbrains-ai"],
    ["agents", "agents-md"],
    ["qwen", "qwen-code"],
  ])("%s suggests %s", async (wrong, right) => {
    for (const command of [
      ["inject", "--dry-run"],
      ["audit", "-q"],
    ]) {
      const { code, stderr } = await project.call([...command, "--tool", wrong]);
      expect({ code, stderr }).toEqual({
        ...{ code: 2, stderr: `plimsoll: unknown tool "${wrong}". Did you mean "${right}"?\n` },
      });
    }
  });

  test.each([
    ["tools: [claude]\n", 1],
    ["title: T\ntools:\n  - claude\n", 3],
    ["own_files: [claude]\n", 1],
    ["budgets:\n  claude: 2000\n", 2],
    ["verbosity: { claude: minimal }\n", 1],
  ])("%j is refused with its file and line", async (text, line) => {
    configure(text);
    const { code, stderr } = await project.call(["inject", "--dry-run"]);
    expect(code).toBe(1);
    // A list is reported at its key or at its first item.
    expect(stderr).toMatch(new RegExp(`config\\.yaml:(${line}|${line - 1}): unknown tool "claude"`));
    expect(stderr).toContain('Did you mean "claude-code"?');
  });

  test.each(["claude-code", "agents-md", "cline", "codex-cli", "cursor", "chatgpt"])(
    "%s is known wherever a tool can be named",
    async (id) => {
      for (const command of [["inject", "--dry-run"], ["audit"]]) {
        expect(await project.call([...command, "--tool", id])).toMatchObject({ code: 0 });
      }
      for (const line of [
        `tools: [${id}]`,
        `own_files: [${id}]`,
        `budgets: { ${id}: 5000 }`,
        `verbosity: { ${id}: full }`,
      ]) {
        configure(`${line}\n`);
        expect({ line, ...(await project.call(["inject", "--dry-run"])) }).toMatchObject({ line, code: 0 });
      }
    },
  );

  test("audit --tool agents-md shows the tools that read AGENTS.md", async () => {
    project.put("AGENTS.md", "# Rules\n");
    const { stdout } = await project.call(["audit", "--tool", "agents-md", "--json"]);
    const ids = JSON.parse(stdout).tools.map(({ id }: { id: string }) => id);
    expect(ids).toContain("codex-cli");
    expect(ids).not.toContain("claude-code");
  });

  test("the verbosity of a tool that reads AGENTS.md counts for AGENTS.md", async () => {
    configure("tools: [agents-md]\nverbosity: { cline: minimal }\n");
    const { stdout } = await project.call(["inject", "--dry-run", "--json"]);
    expect(JSON.parse(stdout)[0]).toMatchObject({ adapter: "agents-md", verbosity: "minimal" });
  });
});

test("a profile of the configuration is refused with its line", async () => {
  configure("profile: fronted\n");
  const { code, stderr } = await project.call(["inject", "--dry-run"]);
  expect(code).toBe(1);
  expect(stderr).toContain('.plimsoll/config.yaml:1: unknown profile "fronted". Did you mean "frontend"?');
});

test("packs list refuses an unknown pack of the configuration with its line", async () => {
  configure("packs: { exclude: [pyton] }\n");
  const { code, stderr } = await project.call(["packs", "list"]);
  expect(code).toBe(1);
  expect(stderr).toContain('.plimsoll/config.yaml:1: unknown pack "pyton". Did you mean "python"?');
});
