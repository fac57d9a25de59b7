/** Mistakes that leave a file or a setting without effect. Each is reported with the name that was meant. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { createProject, type InjectProject } from "./inject-project.ts";

let project: InjectProject;
beforeEach(() => {
  project = createProject();
});
afterEach(() => project.remove());

const dryRun = ["inject", "--dry-run", "--stats"];

test("warns about a name in .plimsoll that is close to one that is read", async () => {
  project.put(".plimsoll/confg.yaml", "budgets: {}\n");
  project.put(".plimsoll/pack/team/pack.yaml", "id: team\n");
  project.put(".plimsoll/README.md", "About this folder.\n");
  const { code, stderr } = await project.call(dryRun);
  expect(code).toBe(0);
  expect(stderr).toContain('.plimsoll/confg.yaml:1: is not read. Did you mean "config.yaml"?');
  expect(stderr).toContain('.plimsoll/pack:1: is not read. Did you mean "packs"?');
  expect(stderr).not.toContain("README");
  const lint = await project.call(["packs", "lint"]);
  expect(lint.stdout).toContain(
    '.plimsoll/confg.yaml:1: warning unknown-file: is not read. Did you mean "config.yaml"?',
  );
});

test("says that pack.yml must be renamed", async () => {
  project.put(".plimsoll/packs/team/pack.yml", "id: team\n");
  project.put(".plimsoll/packs/team/context.md", "## Team\n");
  const { code, stderr } = await project.call(dryRun);
  expect(code).toBe(1);
  expect(stderr).toContain(
    ".plimsoll/packs/team/pack.yaml:1: is missing, so the folder is not a pack. Rename pack.yml to pack.yaml.",
  );
});

test("packs lint reports a pack of the configuration that does not exist", async () => {
  project.put(".plimsoll/config.yaml", "title: T\npacks: { include: [typscript] }\n");
  const { code, stdout } = await project.call(["packs", "lint"]);
  expect(code).toBe(1);
  expect(stdout).toContain(
    '.plimsoll/config.yaml:2: error unknown-pack: unknown pack "typscript". Did you mean "typescript"?',
  );
});

test("warns about a model whose name looks misspelt", async () => {
  project.put(".plimsoll/config.yaml", "model: claude-sonet-5\n");
  const misspelt = await project.call(dryRun);
  expect(misspelt.stderr).toContain('model "claude-sonet-5" looks misspelt. Did you mean "claude-sonnet-5"?');
  for (const model of ["claude-sonnet-5", "us.anthropic.claude-opus-4-8-v1:0", "openai/gpt-5.1-codex-mini"]) {
    expect((await project.call([...dryRun, "--model", model])).stderr, model).not.toContain("misspelt");
  }
  expect((await project.call([...dryRun, "--model", "cluade-sonnet-5"])).stderr).toContain(
    'Did you mean "claude-sonnet-5"?',
  );
});

test("warns about a comma between two globs in one text", async () => {
  project.pack("api", "## API\n", 'globs: ["src/a,lib/b/**", "src/*.{ts,tsx}"]');
  const { stderr } = await project.call(dryRun);
  expect(stderr).toContain(
    '.plimsoll/packs/api/pack.yaml:5: the glob "src/a,lib/b/**" has a comma. Write 2 globs: ["src/a", "lib/b/**"].',
  );
  expect(stderr).not.toContain("tsx");
});

test("names the wrong key of a budget", async () => {
  project.put(".plimsoll/config.yaml", "budgets: { cursor: { max_token: 5 } }\n");
  expect((await project.call(dryRun)).stderr).toContain(
    '.plimsoll/config.yaml:1: unknown key "budgets.cursor.max_token". Did you mean "max_tokens"?',
  );
});

test("names the SKILL.md that a skill's warning is about", async () => {
  project.pack("api", "## API\n");
  project.put(".plimsoll/packs/api/skills/deploy/SKILL.md", "no front matter\n");
  const { stderr } = await project.call(dryRun);
  expect(stderr).toContain(
    ".plimsoll/packs/api/skills/deploy/SKILL.md:1: the skill is left out: it needs front matter with a description",
  );
});

test("says that globs and skills have no effect with --global", async () => {
  const pack = "id: api\nname: API\ndescription: d\nglobs: [src/**]\n";
  project.write("../home/.config/plimsoll/packs/api/pack.yaml", pack);
  project.write("../home/.config/plimsoll/packs/api/context.md", "## API\n");
  const { stderr } = await project.call([...dryRun, "--global", "--tool", "claude-code"]);
  expect(stderr).toContain("with --global, the globs of api have no effect: every session loads the whole pack");
});

test("says that a budget is shared only if the budgets differ", async () => {
  const shared = "AGENTS.md is shared by";
  project.put(".plimsoll/config.yaml", "tools: [cursor, codex-cli]\nbudgets: { '*': 4000 }\n");
  expect((await project.call(dryRun)).stderr).not.toContain(shared);
  project.put(".plimsoll/config.yaml", "tools: [cursor, codex-cli]\nbudgets: { cursor: 2000, '*': 4000 }\n");
  expect((await project.call(dryRun)).stderr).toContain(shared);
});

test("packs list and packs show have the globs and skills of a pack", async () => {
  project.pack("api", "## API\n", 'globs: ["services/api/**"]\nnested: true');
  project.put(".plimsoll/packs/api/skills/deploy/SKILL.md", "---\nname: deploy\ndescription: d\n---\nx\n");
  const list = await project.call(["packs", "list", "--json"]);
  const api = JSON.parse(list.stdout).find(({ id }: { id: string }) => id === "api");
  expect(api).toMatchObject({ globs: ["services/api/**"], nested: true, skills: ["deploy"] });
  const text = (await project.call(["packs", "list"])).stdout;
  expect(text.split("\n")[0]).toMatch(/globs +skills/);
  expect(text).toContain("services/api/**");
  const { stdout } = await project.call(["packs", "show", "api"]);
  expect(stdout).toMatch(/^globs +services\/api\/\*\*, nested$/m);
  expect(stdout).toMatch(/^skills +deploy$/m);
});

test("--max-tokens does not exceed what the clipboard of a tool takes", async () => {
  const run = await project.call(["inject", "--global", "--tool", "chatgpt", "--max-tokens", "5000", "--json"]);
  const [row] = JSON.parse(run.stdout);
  expect(row).toMatchObject({ adapter: "chatgpt", budget: { value: 1400, unit: "bytes" } });
  expect(row.renderedBytes).toBeLessThanOrEqual(1400);
});

test("warns about a code block above the rules that is never closed", async () => {
  project.put("CLAUDE.md", "# Mine\n\n```sh\nnpm start\n");
  const open = await project.call(["inject", "--tool", "claude-code"]);
  expect(open.stderr).toContain(
    "CLAUDE.md:3: this code block is never closed, so the rules below it look like code. Close it with ```",
  );
  project.put("CLAUDE.md", "# Mine\n\n```sh\nnpm start\n```\n");
  expect((await project.call(["inject", "--tool", "claude-code"])).stderr).not.toContain("never closed");
});
