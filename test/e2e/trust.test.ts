/** What a repository may do by what it contains, seen through the built command. */
import { execFileSync } from "node:child_process";
import {
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createProject, type InjectProject } from "./inject-project.ts";

let project: InjectProject;
beforeEach(() => {
  project = createProject();
});
afterEach(() => project.remove());

const beside = (path: string) => join(dirname(project.cwd), path);
const trustFile = () => join(project.home, ".local/state/plimsoll/trust.json");

function writeBeside(path: string, text: string): void {
  mkdirSync(dirname(beside(path)), { recursive: true });
  writeFileSync(beside(path), text);
}

function companyPack(folder: string, text: string): void {
  writeBeside(`${folder}/packs/shared/pack.yaml`, "id: shared\nname: Shared\nweight: 900\n");
  writeBeside(`${folder}/packs/shared/context.md`, text);
}

/** A project that names packs outside of itself. */
function projectWithCompany(): void {
  companyPack("company", "Company rules.\n");
  project.put(".plimsoll/config.yaml", "title: Ours\ncompany: { source: ../company }\n");
}

describe("a company that the project names", () => {
  test.each([
    ["inject"],
    ["inject", "--dry-run"],
    ["inject", "--status"],
    ["inject", "--check"],
    ["inject", "--watch"],
  ])("%s %s stops before it writes, and names file, line, key and command", { timeout: 20_000 }, async (...args) => {
    projectWithCompany();
    const before = project.tree();
    const { code, stdout, stderr } = await (args.length === 1 ? project.run(args) : project.call(args));
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toContain(".plimsoll/config.yaml:2: ");
    expect(stderr).toContain("company");
    expect(stderr).toContain('"plimsoll trust"');
    expect(project.tree()).toEqual(before);
  });

  test("run stops before it starts the agent", async () => {
    projectWithCompany();
    const { code, stderr } = await project.call(["run", "x", "--agent-command", "touch started"]);
    expect(code).toBe(1);
    expect(stderr).toContain(".plimsoll/config.yaml:2: ");
    expect(existsSync(join(project.cwd, "started"))).toBe(false);
  });

  test("the error is JSON for programs", async () => {
    projectWithCompany();
    const { stdout } = await project.call(["inject", "--json"]);
    expect(JSON.parse(stdout)).toMatchObject({
      error: { code: "untrusted", file: ".plimsoll/config.yaml", line: 2, hint: expect.any(String) },
    });
  });

  test("counts once it was trusted, for this command alone with --trust, and in CI with PLIMSOLL_TRUST=1", async () => {
    projectWithCompany();
    const once = await project.call(["inject", "--dry-run", "--trust"]);
    expect(once).toMatchObject({ code: 0, stdout: expect.stringContaining("Company rules.") });
    expect((await project.call(["inject", "--dry-run"])).code).toBe(1);
    expect((await project.call(["inject", "--dry-run"], { env: { PLIMSOLL_TRUST: "1" } })).code).toBe(0);
    expect(existsSync(trustFile())).toBe(false);

    const trusted = await project.run(["trust"]);
    expect(trusted).toMatchObject({ code: 0, stderr: "" });
    expect(trusted.stdout).toContain(".plimsoll/config.yaml:2");
    expect(trusted.stdout).toContain('{"source":"../company"}');
    const { code } = await project.run(["inject"]);
    expect(code).toBe(0);
    expect(project.read("CLAUDE.md")).toContain("Company rules.");
    const state = dirname(trustFile());
    expect([statSync(trustFile()).mode & 0o777, statSync(state).mode & 0o777]).toEqual([0o600, 0o700]);
  });

  test("asks again when its value changes, and when a link leads it elsewhere, but not when its line does", async () => {
    projectWithCompany();
    companyPack("other", "Other rules.\n");
    await project.call(["trust"]);
    project.put(".plimsoll/config.yaml", "# one line more\n\ncompany: { source: ../company }\n");
    expect((await project.call(["inject", "--dry-run"])).code).toBe(0);
    project.put(".plimsoll/config.yaml", "company: { source: ../other }\n");
    expect((await project.call(["inject", "--dry-run"])).stderr).toContain(".plimsoll/config.yaml:1: ");

    project.put(".plimsoll/config.yaml", "company: { source: ./link }\n");
    symlinkSync("../company", join(project.cwd, "link"));
    await project.call(["trust"]);
    expect((await project.call(["inject", "--dry-run"])).code).toBe(0);
    rmSync(join(project.cwd, "link"));
    symlinkSync("../other", join(project.cwd, "link"));
    expect((await project.call(["inject", "--dry-run"])).code).toBe(1);
  });

  test.each([
    [["packs", "list"]],
    [["packs", "show", "base"]],
    [["packs", "lint"]],
    [["sync"]],
    [["config"]],
    [["audit"]],
    [["mcp", "install", "--tool", "claude-code", "--dry-run"]],
  ])("%j leaves it out and says so in one note", async (args) => {
    projectWithCompany();
    const { code, stdout, stderr } = await project.call(args);
    expect(code, stderr).toBe(0);
    expect(stdout).not.toContain("company:");
    expect(stderr.match(/not trusted/g)).toHaveLength(1);
    expect(stderr).toContain("company (.plimsoll/config.yaml:2)");
    expect((await project.call(args, { env: { PLIMSOLL_TRUST: "1" } })).stderr).not.toContain("not trusted");
  });

  test("is named once, also by a command that ends without a result", async () => {
    projectWithCompany();
    const { code, stderr } = await project.call(["mcp", "install", "--dry-run"]);
    expect([code, stderr.match(/not trusted/g)]).toEqual([1, ["not trusted"]]);
  });

  test("of the user's own configuration needs no trust", async () => {
    companyPack("company", "Company rules.\n");
    writeBeside("home/.config/plimsoll/config.yaml", `company: { source: ${beside("company")} }\n`);
    const { code, stdout } = await project.call(["packs", "show", "shared"]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining("Company rules.") });
  });
});

test("a project without powerful settings notices nothing", async () => {
  project.pack("mine", "Mine.\n");
  project.put(".plimsoll/config.yaml", "title: Ours\nprices: {}\n");
  expect(await project.call(["inject", "--dry-run"])).toMatchObject({
    code: 0,
    stderr: expect.not.stringContaining("trust"),
  });
  const { code, stdout } = await project.call(["trust"]);
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining("nothing to trust") });
  expect(existsSync(trustFile())).toBe(false);
});

test("prices of a project are left out of a replay until they are trusted", async () => {
  project.put(".plimsoll/config.yaml", "prices: { some-model: { input: 0 } }\n");
  const untrusted = await project.call(["config", "--json"]);
  expect(JSON.parse(untrusted.stdout).values.prices).toEqual({});
  expect(untrusted.stderr).toContain("prices (.plimsoll/config.yaml:1)");
  await project.call(["trust"]);
  const trusted = await project.call(["config", "--json"]);
  expect(JSON.parse(trusted.stdout).values.prices).toEqual({ "some-model": { input: 0 } });
});

describe("the store", () => {
  test("is never taken from a project, trusted or not", async () => {
    project.put(".plimsoll/config.yaml", "title: x\nstore: planted.db\n");
    project.put("plan/nebula.toml", '[nebula]\nname = "n"\n');
    project.put("plan/a.md", '+++\nid = "a"\ntitle = "A"\n+++\n\nDo it.\n');
    await project.call(["trust"]);
    const apply = ["nebula", "apply", "plan", "--agent-command", "cat", "--trust"];
    const { code, stderr } = await project.call(apply);
    expect(code).toBe(0);
    expect(stderr).toContain(".plimsoll/config.yaml:2: store is left out");
    expect(stderr).toContain("PLIMSOLL_STORE");
    expect(existsSync(join(project.cwd, "planted.db"))).toBe(false);
    expect(existsSync(join(project.home, ".local/state/plimsoll/state.db"))).toBe(true);
  });

  test("is taken from PLIMSOLL_STORE by every command, below --store", { tags: ["deep"] }, async () => {
    project.put("plan/nebula.toml", '[nebula]\nname = "n"\n');
    project.put("plan/a.md", '+++\nid = "a"\ntitle = "A"\n+++\n\nDo it.\n');
    const env = { PLIMSOLL_STORE: join(project.home, "mine.db") };
    const apply = ["nebula", "apply", "plan", "--agent-command", "cat"];
    await project.run(apply, { env });
    expect(existsSync(env.PLIMSOLL_STORE)).toBe(true);
    expect((await project.call(["session", "list"], { env })).stderr).toContain("mine.db");
    await project.run([...apply, "--store", "flag.db"], { env });
    expect(existsSync(join(project.cwd, "flag.db"))).toBe(true);
  });
});

describe("addresses that a project's packs fetch", () => {
  let server: Server;
  let asked: string[];
  beforeEach(async () => {
    asked = [];
    server = createServer(({ url = "" }, response) => {
      asked.push(url);
      response.writeHead(200, { "content-type": "text/plain" }).end("Fetched text.\n");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/page`;
    project.pack("web", `Rules.\n\n<!-- sync:fetch url="${url}" format="raw" -->\n`);
  });
  afterEach(() => server.close());

  test("are not asked until they are trusted, and need no trust once their text is in the project", async () => {
    const untrusted = await project.call(["sync", "--allow-private"]);
    expect(untrusted.stderr).toContain("sync:fetch (.plimsoll/packs/web/context.md:3)");
    expect(untrusted.stdout).toBe("Nothing was fetched: this project's sources are not trusted.\n");
    expect(asked).toEqual([]);
    const refused = await project.call(["inject"]);
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toMatch(
      /\.plimsoll\/packs\/web\/context\.md:3: the text of .*\/page was never fetched\. Run `plimsoll sync`/,
    );
    expect(existsSync(join(project.cwd, "CLAUDE.md"))).toBe(false);

    expect((await project.call(["sync", "--trust", "--allow-private"])).code).toBe(0);
    expect(asked).toEqual(["/page"]);
    const shown = await project.call(["packs", "show", "web"]);
    expect(shown.stdout).toContain("Fetched text.");
    expect(shown.stderr).toBe("");
    expect((await project.call(["inject"])).code).toBe(0);
    expect(readFileSync(join(project.cwd, "AGENTS.md"), "utf8")).toContain("Fetched text.");

    // A sync would ask the address again.
    const again = await project.call(["sync", "--force", "--allow-private"]);
    expect(again.stderr).toContain("not trusted");
    expect(asked).toEqual(["/page"]);
    expect((await project.call(["inject", "--check"])).code).toBe(0);
    expect((await project.call(["trust"])).stdout).toContain("127.0.0.1");
  });
});

describe("plimsoll trust", () => {
  test("--list shows what was trusted, --revoke takes it away", async () => {
    projectWithCompany();
    expect(JSON.parse((await project.call(["trust", "--list", "--json"])).stdout)).toEqual([]);
    const made = JSON.parse((await project.call(["trust", "--json"])).stdout);
    const path = realpathSync(project.cwd);
    const settings = [{ file: ".plimsoll/config.yaml", key: "company", value: '{"source":"../company"}' }];
    expect(made).toEqual({
      path,
      trusted: true,
      settings: [{ ...settings[0], line: 2, target: join(dirname(path), "company") }],
    });
    expect(JSON.parse((await project.call(["trust", "--list", "--json"])).stdout)).toEqual([
      { path, settings, trustedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT/) },
    ]);
    expect((await project.call(["trust", "--list"])).stdout).toContain(path);
    expect(await project.call(["trust", "--revoke"])).toMatchObject({ code: 0 });
    expect(JSON.parse((await project.call(["trust", "--list", "--json"])).stdout)).toEqual([]);
    expect((await project.call(["inject", "--dry-run"])).code).toBe(1);
  });

  test("shows a password in an address to nobody, and tells two passwords apart", async () => {
    const config = (word: string) => `company: { source: "https://me:${word}@git.example/x.git" }\n`;
    project.put(".plimsoll/config.yaml", config("secret"));
    const { stdout } = await project.call(["trust"]);
    expect(stdout).toContain("https://git.example/x.git");
    expect(stdout + readFileSync(trustFile(), "utf8")).not.toContain("secret");
    expect((await project.call(["config"])).stderr).not.toContain("not trusted");
    project.put(".plimsoll/config.yaml", config("other"));
    expect((await project.call(["config"])).stderr).toContain("not trusted");
  });

  test("of a folder that lies elsewhere is of that project", async () => {
    projectWithCompany();
    expect((await project.call(["trust", "project"], { cwd: dirname(project.cwd) })).code).toBe(0);
    expect((await project.call(["inject", "--dry-run"])).code).toBe(0);
  });

  test("of a folder that is not there is an error, and leads to no other project", async () => {
    projectWithCompany();
    const { code, stderr } = await project.call(["trust", "typo"]);
    expect({ code, stderr }).toEqual({ code: 1, stderr: "plimsoll: typo: no such directory\n" });
    await project.call(["trust"]);
    expect((await project.call(["trust", "--revoke", "typo"])).stdout).toContain("was not trusted");
    expect((await project.call(["inject", "--dry-run"])).code).toBe(0);
    rmSync(project.cwd, { recursive: true });
    const gone = await project.call(["trust", "--revoke", "project"], { cwd: dirname(project.cwd) });
    expect(gone.stdout).toContain("is no longer trusted");
  });

  test("a record that is damaged is an error that says what to do", async () => {
    projectWithCompany();
    writeBeside("home/.local/state/plimsoll/trust.json", "{");
    const { code, stderr } = await project.call(["inject"]);
    expect(code).toBe(1);
    expect(stderr).toContain("trust.json");
    expect(stderr).toContain("Delete it");
  });
});

describe("the user's own directories", () => {
  const mine = () => writeBeside("home/.config/plimsoll/packs/private/pack.yaml", "id: private\nname: P\n");

  test.each([
    ["~/.config/plimsoll", "itself"],
    ["~/.config/plimsoll/packs", "a folder in it"],
    ["~/.config", "a folder around it"],
    ["./link", "a link to it"],
    ["~/.local/state/plimsoll", "the state"],
    ["~/.cache/plimsoll", "the cache"],
  ])("are no company's packs, trusted or not: %s, %s", async (source) => {
    mine();
    for (const name of [".local/state", ".cache"])
      mkdirSync(join(project.home, name, "plimsoll/packs"), { recursive: true });
    symlinkSync(join(project.home, ".config/plimsoll"), join(project.cwd, "link"));
    project.put(".plimsoll/config.yaml", `company: { source: ${source} }\n`);
    const { code, stdout, stderr } = await project.call(["inject", "--dry-run", "--trust"]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toContain("your own");
    const sync = await project.call(["sync", "--trust"]);
    expect(sync.code).toBe(1);
  });

  test.each(["", "file://"])("are none as a repository either: %s", async (scheme) => {
    mine();
    execFileSync("git", ["init", "--quiet", join(project.home, ".config/plimsoll")]);
    const source = `${scheme}${project.home}/.config/plimsoll`;
    project.put(".plimsoll/config.yaml", `company: { source: "${source}", revision: main }\n`);
    const { code, stderr } = await project.call(["sync", "--trust"]);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining("your own") });
  });
});

describe("links that lead out of the project", () => {
  test("to a configuration are named and not read", async () => {
    writeBeside("secret.yaml", "title: Secret\n");
    mkdirSync(join(project.cwd, ".plimsoll"));
    symlinkSync(beside("secret.yaml"), join(project.cwd, ".plimsoll/config.yaml"));
    const { code, stdout, stderr } = await project.call(["config"]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(/^plimsoll: \.plimsoll\/config\.yaml: .*symbolic link/);
  });

  test("to notes are named and not read", async () => {
    writeBeside("secret.yaml", "notes: [Secret]\n");
    mkdirSync(join(project.cwd, ".plimsoll"));
    symlinkSync(beside("secret.yaml"), join(project.cwd, ".plimsoll/notes.yaml"));
    for (const args of [
      ["notes", "list"],
      ["inject", "--dry-run"],
    ]) {
      const { code, stdout, stderr } = await project.call(args);
      expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
      expect(stderr).toContain(".plimsoll/notes.yaml");
    }
  });

  test.each([".plimsoll", ".plimsoll/packs", ".plimsoll/packs/shared", ".plimsoll/packs/shared/context.md"])(
    "in the place of %s are named and not read",
    async (place) => {
      companyPack("elsewhere", "Secret rules.\n");
      const inside = place.replace(/^\.plimsoll\/?/, "");
      mkdirSync(dirname(join(project.cwd, place)), { recursive: true });
      if (place.endsWith(".md")) project.put(".plimsoll/packs/shared/pack.yaml", "id: shared\nname: S\n");
      symlinkSync(join(beside("elsewhere"), inside), join(project.cwd, place));
      const { code, stdout, stderr } = await project.call(["inject", "--dry-run"]);
      expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
      expect(stderr).toContain("symbolic link");
      expect(stderr).toContain(".plimsoll");
    },
  );

  test("in a company's layer are named and not read", async () => {
    companyPack("company", "Company rules.\n");
    writeBeside("secret.md", "Secret rules.\n");
    symlinkSync(beside("secret.md"), beside("company/packs/shared/constraints.md"));
    project.put(".plimsoll/config.yaml", "company: { source: ../company }\n");
    const { code, stdout, stderr } = await project.call(["inject", "--dry-run", "--trust"]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toContain("constraints.md");
  });

  test("in the place of a phase are named and not read", async () => {
    writeBeside("secret.md", '+++\nid = "a"\ntitle = "A"\n+++\n\nSecret task.\n');
    project.put("plan/nebula.toml", '[nebula]\nname = "n"\n');
    symlinkSync(beside("secret.md"), join(project.cwd, "plan/a.md"));
    const { code, stdout, stderr } = await project.call(["nebula", "apply", "plan", "--agent-command", "cat"]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toContain("plan/a.md:1: ");
    expect(stderr).toContain("symbolic link");
  });
});

describe("what a nebula says of agents", () => {
  function nebula(manifest: string, ...lines: string[]): void {
    project.put("plan/nebula.toml", `[nebula]\nname = "n"\n${manifest}`);
    project.put("plan/a.md", ["+++", 'id = "a"', 'title = "A"', ...lines, "+++", "", "Do it."].join("\n"));
  }
  const agent = ["--agent-command", "pwd > where; cat > /dev/null"];

  test("a model needs trust before an agent starts", async () => {
    nebula("", 'model = "opus"');
    const refused = await project.run(["nebula", "apply", "plan", ...agent]);
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toContain('plan/a.md:4: the project sets model to "opus"');
    expect(refused.stderr).toContain('"plimsoll trust plan"');
    expect(existsSync(join(project.cwd, "where"))).toBe(false);
    expect((await project.call(["trust"])).stdout).toContain("plan/a.md:4");
    expect((await project.call(["nebula", "apply", "plan", ...agent])).code).toBe(0);
    nebula('[execution]\nmodel = "haiku"\n');
    expect((await project.call(["nebula", "apply", "plan", ...agent])).stderr).toContain(
      'plan/nebula.toml:4: the project sets execution.model to "haiku"',
    );
  });

  test("a plan that git ignores is trusted by its folder", { tags: ["deep"] }, async () => {
    project.put(".gitignore", "plan\n");
    nebula("", 'model = "opus"');
    expect((await project.call(["trust"])).stdout).toContain("nothing to trust");
    expect((await project.call(["trust", "plan"])).stdout).toContain("plan/a.md:4");
    expect((await project.run(["nebula", "apply", "plan", ...agent])).code).toBe(0);
    // It is known by now.
    expect((await project.call(["trust"])).stdout).toContain("plan/a.md:4");
  });

  test("a model that begins with a dash is refused with file and line, trusted or not", async () => {
    nebula("", 'model = "--yolo"');
    for (const args of [["validate"], ["show"], ["apply", "--trust", "--agent", "opencode"]]) {
      const { code, stdout, stderr } = await project.call(["nebula", args[0]!, "plan", ...args.slice(1)]);
      expect(code).toBe(1);
      expect(stdout + stderr).toMatch(/plan\/a\.md:4: .*model.*starts with "-"/);
    }
    expect(await project.call(["run", "x", "--agent", "pi", "--model=--yolo", "--dry-run"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('starts with "-"'),
    });
  });

  test.each([
    ["absolute", () => beside("elsewhere")],
    ["upward", () => "../elsewhere"],
    ["a link", () => "link"],
  ])("a working directory outside of the project needs trust: %s", async (_, value) => {
    mkdirSync(beside("elsewhere"));
    symlinkSync(beside("elsewhere"), join(project.cwd, "link"));
    nebula(`[context]\nworking_dir = "${value()}"\n`);
    const refused = await project.call(["nebula", "apply", "plan", ...agent]);
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toContain("plan/nebula.toml:4: the project sets context.working_dir to");
    expect(refused.stderr).toContain(realpathSync(beside("elsewhere")));
    expect(existsSync(join(beside("elsewhere"), "where"))).toBe(false);
    const shown = await project.call(["nebula", "show", "plan"]);
    expect(shown).toMatchObject({ code: 0, stdout: expect.stringContaining("../elsewhere") });
    await project.call(["trust"]);
    expect((await project.call(["nebula", "apply", "plan", ...agent])).code).toBe(0);
    expect(existsSync(join(beside("elsewhere"), "where"))).toBe(true);
  });

  test("a working directory inside of the project needs no trust", async () => {
    mkdirSync(join(project.cwd, "src"));
    nebula('[context]\nworking_dir = "src"\n');
    expect((await project.call(["nebula", "apply", "plan", ...agent])).code).toBe(0);
    expect(existsSync(join(project.cwd, "src/where"))).toBe(true);
  });

  test("what a phase allows its agent needs trust, unless it only reads", async () => {
    nebula("", 'allow = "all"');
    const refused = await project.call(["nebula", "apply", "plan", ...agent]);
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('the project sets allow to "all"') });
    expect(existsSync(join(project.cwd, "where"))).toBe(false);
    nebula("", 'allow = "read"');
    expect((await project.call(["nebula", "apply", "plan", ...agent])).code).toBe(0);
    const claude = ["nebula", "show", "plan", "--agent", "claude", "--json"];
    const permissions = async (...more: string[]) =>
      JSON.parse((await project.call([...claude, ...more])).stdout).phases[0].permissions;
    expect(await permissions()).toBe("read");
    expect(await permissions("--allow", "edit")).toBe("edit");
  });

  test("gemini gets no trust for a working directory with settings of its own", async () => {
    mkdirSync(join(project.cwd, "src"));
    nebula('[context]\nworking_dir = "src"\n');
    for (const args of [["validate"], ["show"], ["apply", "--dry-run"]]) {
      const shown = async () =>
        (await project.call(["nebula", args[0]!, "plan", "--agent", "gemini", ...args.slice(1)])).stdout;
      expect(await shown()).toContain("gemini --approval-mode=auto_edit --skip-trust");
      project.put("src/.gemini/settings.json", "{}");
      expect(await shown()).not.toContain("--skip-trust");
      rmSync(join(project.cwd, "src/.gemini"), { recursive: true });
    }
  });

  test("validate, show and --dry-run show where each phase works, its command and its permissions", async () => {
    mkdirSync(join(project.cwd, "src"));
    nebula('[context]\nworking_dir = "src"\n', 'model = "opus"');
    project.put("plan/b.md", '+++\nid = "b"\ntitle = "B"\n+++\n\nDo it.\n');
    const rows = [
      "a src claude -p --verbose --output-format=stream-json --permission-mode=acceptEdits --model=opus edit",
      "b src claude -p --verbose --output-format=stream-json --permission-mode=acceptEdits edit",
    ];
    const claude = ["--agent", "claude"];
    for (const args of [["validate"], ["show"], ["apply", "--dry-run", "--trust"]]) {
      const { stdout } = await project.call(["nebula", args[0]!, "plan", ...claude, ...args.slice(1)]);
      const lines = stdout.split("\n").map((line) => line.trim().replaceAll(/ {2,}/g, " "));
      for (const row of rows) expect(lines).toContain(row);
    }
    const { stdout } = await project.call(["nebula", "show", "plan", "--json", ...claude]);
    expect(JSON.parse(stdout).phases[0]).toMatchObject({
      workingDirectory: "src",
      model: "opus",
      command: "claude -p --verbose --output-format=stream-json --permission-mode=acceptEdits --model=opus",
      permissions: "edit",
    });
    const plain = await project.call(["nebula", "validate", "plan"]);
    expect(plain.stdout).toContain("(no agent chosen, use --agent), model opus");
    const run = await project.call(["run", "x", "--dry-run", "--model", "opus", ...claude]);
    expect(run.stderr).toContain("--permission-mode=acceptEdits --model=opus, permissions: edit");
  });
});

const isRoot = process.geteuid?.() === 0;
describe.skipIf(!isRoot)("a directory of another user (skipped unless root, who alone can give files away)", () => {
  const other = 54_321;
  beforeEach(() => {
    project.put(".plimsoll/config.yaml", "title: Planted\n");
    mkdirSync(join(project.cwd, "sub"));
    for (const path of ["", ".plimsoll", ".plimsoll/config.yaml", ".git"])
      chownSync(join(project.cwd, path), other, other);
  });
  const inSub = () => ({ cwd: join(project.cwd, "sub") });

  test("gives no configuration, above and in it, and the error says what to do", async () => {
    for (const cwd of [project.cwd, join(project.cwd, "sub")]) {
      for (const args of [["config"], ["inject"], ["notes", "list"], ["count", "."]]) {
        const { code, stderr } = await project.call(args, { cwd });
        expect(code, args.join(" ")).toBe(1);
        expect(stderr).toContain(`belongs to user ${other}`);
        expect(stderr).toContain("plimsoll trust");
      }
    }
  });

  test("is refused also where it has only a .plimsoll folder of theirs, without a configuration", async () => {
    rmSync(join(project.cwd, ".plimsoll/config.yaml"));
    expect((await project.call(["inject"], inSub())).code).toBe(1);
    chownSync(join(project.cwd, ".plimsoll"), 0, 0);
    chownSync(project.cwd, 0, 0);
    expect((await project.call(["inject"], inSub())).code).toBe(0);
  });

  test("counts where PLIMSOLL_TRUST, plimsoll trust, safe.directory or sudo's own user says so", async () => {
    const titled = async (env: Record<string, string> = {}) =>
      (await project.call(["config"], { ...inSub(), env })).stdout.includes("Planted");
    expect(await titled()).toBe(false);
    expect(await titled({ PLIMSOLL_TRUST: "1" })).toBe(true);
    expect(await titled({ SUDO_UID: String(other) })).toBe(true);
    expect(await titled({ SUDO_UID: "1" })).toBe(false);
    const named = (value: string) => writeBeside("home/.gitconfig", `[safe]\n\tdirectory = ${value}\n`);
    const real = realpathSync(project.cwd);
    for (const value of [real, "*", `${dirname(real)}/*`]) {
      named(value);
      expect(await titled(), value).toBe(true);
    }
    for (const value of [`${real}x`, dirname(real), `${real}\n\tdirectory =`]) {
      named(value);
      expect(await titled(), value).toBe(false);
    }
    expect((await project.call(["trust"], inSub())).stdout).toContain(`belongs to user ${other}`);
    expect(await titled()).toBe(true);
    await project.call(["trust", "--revoke"], inSub());
    expect(await titled()).toBe(false);
  });

  test("is no obstacle where it has no .plimsoll", async () => {
    rmSync(join(project.cwd, ".plimsoll"), { recursive: true });
    expect((await project.call(["inject", "--dry-run"])).code).toBe(0);
    expect((await project.call(["notes", "list"])).code).toBe(0);
  });
});

test("a project's allow shows no secret until it is trusted, and the command says that it is left out", async () => {
  project.put("package.json", '{ "name": "p" }\n');
  project.put(".env", "# Rules\n\nTOKEN=abc\n");
  symlinkSync(".env", join(project.cwd, "AGENTS.md"));
  project.put(".plimsoll/config.yaml", 'allow: [".env"]\n');
  const untrusted = await project.call(["snapshot"]);
  expect(untrusted.stdout).not.toContain("TOKEN=abc");
  expect(untrusted.stderr).toContain("left out, because this project is not trusted: allow (.plimsoll/config.yaml:1)");
  const trusted = await project.call(["snapshot"], { env: { PLIMSOLL_TRUST: "1" } });
  expect(trusted.stdout).toContain("TOKEN=abc");
  expect(trusted.stderr).not.toContain("left out");
});
