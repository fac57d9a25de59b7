/** The built command against a real server on loopback and a real git repository. */
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { caseCount } from "../case-count.ts";
import { createSandbox, mainFile, runProcess, type Sandbox } from "./run-plimsoll.ts";

const isDeep = process.env.PLIMSOLL_DEEP === "1";
const kills = caseCount({ few: 1, deep: 20, long: 60 });

let sandbox: Sandbox;
let server: Server;
let origin: string;
let notes: string | undefined;
beforeEach(async () => {
  sandbox = createSandbox();
  sandbox.env.PLIMSOLL_TRUST = "1";
  // The server of these tests is on this machine.
  const { call, run } = sandbox;
  const allowed = (args: readonly string[]) => (args[0] === "sync" ? [...args, "--allow-private"] : args);
  sandbox.call = (args, options) => call(allowed(args), options);
  sandbox.run = (args, options) => run(allowed(args), options);
  notes = "# Notes\n\n1\n2\n3\n";
  server = createServer(({ url }, response) => {
    if (url === "/page") {
      response.setHeader("content-type", "text/html");
      response.end("<nav>menu</nav><main><h2>Page</h2><ul><li>one</li></ul></main>");
    } else if (url === "/notes.md" && notes !== undefined) response.end(notes);
    else if (url === "/loop") response.writeHead(302, { location: "/loop" }).end();
    else if (url === "/invalid") response.end(Buffer.from([0x61, 0xff, 0x62]));
    else if (url === "/huge") response.end("a line of text\n".repeat(100_000));
    else if (url === "/stalled") response.write("a");
    else response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
  sandbox.remove();
});

const marker = (path: string, more = "") => `<!-- sync:fetch url="${origin}${path}" ${more} -->`;

function writePack(id: string, context: string): void {
  sandbox.write(`.plimsoll/packs/${id}/pack.yaml`, `id: ${id}\nname: ${id}\n`);
  sandbox.write(`.plimsoll/packs/${id}/context.md`, context);
}

test("the help is as pinned", async () => {
  const help = await sandbox.call(["sync", "--help"]);
  expect(help).toMatchObject({ code: 0, stderr: "" });
  await expect(help.stdout).toMatchFileSnapshot("golden/help-sync.txt");
});

test("without company and markers there is nothing to do", async () => {
  expect(await sandbox.call(["sync"])).toEqual({
    code: 0,
    stderr: "",
    stdout: "Nothing to sync: no company's packs and no skills are configured, and no pack has a sync:fetch marker.\n",
  });
  expect(JSON.parse((await sandbox.call(["sync", "--json"])).stdout)).toEqual({
    company: null,
    texts: [],
    skills: [],
    problems: [],
  });
  expect(existsSync(join(sandbox.home, ".cache"))).toBe(false);
  expect(existsSync(join(sandbox.cwd, ".plimsoll"))).toBe(false);
});

test("without leave nothing is fetched from this machine", async () => {
  writePack("web", `${marker("/page")}\n`);
  const plain = { cwd: sandbox.cwd, env: sandbox.env };
  const { code, stderr } = await runProcess([process.execPath, mainFile, "sync"], plain);
  expect(code).toBe(1);
  expect(stderr).toBe(
    `plimsoll: ${origin}/page: 127.0.0.1 is not a public address. Use --allow-private to fetch from it\n`,
  );
});

test("texts are fetched once, then fresh, and by force again", async () => {
  writePack("web", `${marker("/page", 'selector="main"')}\n${marker("/notes.md", 'max_lines="3"')}\n`);
  const table = (status: string, space: string) => `${"status".padEnd(status.length)}  bytes  packs  from
${status}${space}15  web    ${origin}/page
${status}${space}11  web    ${origin}/notes.md
`;
  const written = "Wrote 2 texts to .plimsoll/fetched. Commit this folder, so everyone injects the same text.\n";
  const fetched = { code: 0, stderr: "", stdout: table("fetched", " ".repeat(5)) + written };
  expect(await sandbox.run(["sync"])).toEqual(fetched);
  expect((await sandbox.call(["sync"])).stdout).toBe(table("fresh", " ".repeat(6)));
  expect(await sandbox.call(["sync", "--force"])).toEqual(fetched);
});

test("what fails is told, exits 1, and keeps neither the rest nor the last good text from being used", async () => {
  const paths = ["/gone", "/loop", "/invalid", "/huge", "/notes.md", "/page"];
  writePack("web", paths.map((path) => marker(path, 'ttl_hours="0"')).join("\n\n"));
  const { code, stdout, stderr } = await sandbox.call(["sync"]);
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: `plimsoll: ${origin}/gone: HTTP 404
plimsoll: ${origin}/loop: more than 5 redirects
plimsoll: ${origin}/invalid: is not valid UTF-8
plimsoll: ${origin}/huge: longer than 1 MiB, so the rest is left out
`,
  });
  const statuses = stdout
    .split("\n")
    .slice(1, -2)
    .map((line) => line.split(/\s+/)[0]);
  expect(statuses).toEqual(["failed", "failed", "failed", "fetched", "fetched", "fetched"]);
  notes = undefined;
  const again = await sandbox.call(["sync", "--json"]);
  expect(again.code).toBe(1);
  const { texts } = JSON.parse(again.stdout);
  expect(texts[4]).toMatchObject({
    url: `${origin}/notes.md`,
    status: "kept",
    reason: "HTTP 404",
    bytes: 15,
  });
  expect(texts[0]).toMatchObject({ status: "failed", bytes: 0 });
  expect(texts[3].bytes).toBeLessThanOrEqual(1024 * 1024);
});

test.runIf(isDeep)("a page that never ends is given up after 10 seconds", async () => {
  writePack("web", `${marker("/stalled")}\n${marker("/page")}\n`);
  const { code, stdout, stderr } = await sandbox.call(["sync"]);
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: `plimsoll: ${origin}/stalled: no answer within 10 s\n`,
  });
  expect(stdout).toContain(`fetched     21  web    ${origin}/page`);
});

test("offline, what was fetched is kept, and what is fresh is no failure", async () => {
  writePack("web", marker("/page"));
  await sandbox.call(["sync"]);
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  expect((await sandbox.call(["sync"])).code).toBe(0);
  const forced = await sandbox.call(["sync", "--force"]);
  expect(forced.code).toBe(1);
  expect(forced.stderr).toMatch(/\/page: the connection was refused \(the text of \d{4}-.*Z is kept\)\n$/);
});

test("another machine without network and trust injects the same bytes, and --check agrees", async () => {
  writePack("web", `## Page\n\n${marker("/page")}\n`);
  sandbox.write(".plimsoll/config.yaml", "tools: [agents-md]\n");
  const early = await sandbox.call(["inject"]);
  expect(early.code).toBe(1);
  expect(early.stderr).toContain(`.plimsoll/packs/web/context.md:3: the text of ${origin}/page was never fetched.`);
  expect(existsSync(join(sandbox.cwd, "AGENTS.md"))).toBe(false);
  await sandbox.call(["sync"]);
  await sandbox.call(["inject"]);
  const written = readFileSync(join(sandbox.cwd, "AGENTS.md"), "utf8");
  expect(written).toContain("- one");
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));

  const other = createSandbox();
  try {
    for (const name of [".plimsoll", "AGENTS.md"])
      cpSync(join(sandbox.cwd, name), join(other.cwd, name), { recursive: true });
    expect(await other.call(["inject", "--check"])).toMatchObject({ code: 0, stderr: "" });
    rmSync(join(other.cwd, "AGENTS.md"));
    await other.run(["inject"]);
    expect(readFileSync(join(other.cwd, "AGENTS.md"), "utf8")).toBe(written);

    const fetched = join(other.cwd, ".plimsoll/fetched");
    const [name = ""] = readdirSync(fetched).filter((each) => each.endsWith(".md"));
    writeFileSync(join(fetched, name), "edited\n");
    const edited = await other.call(["inject", "--check"]);
    expect(edited.code).toBe(1);
    expect(edited.stderr).toContain(`.plimsoll/fetched/${name}:1: differs from its hash in index.json`);
  } finally {
    other.remove();
  }
});

/** Starts a program that has no network at all, not even this machine's. Not every system lets a user do so. */
const noNetwork = ["unshare", "--net", "--map-root-user"];
const canCutNetwork = spawnSync(noNetwork[0]!, [...noNetwork.slice(1), "true"]).status === 0;

test.skipIf(!canCutNetwork)(
  "a clone with another HOME and no network injects the same bytes (skipped where unshare cannot cut the network)",
  async () => {
    writePack("web", `## Page\n\n${marker("/page")}\n`);
    sandbox.write(".plimsoll/config.yaml", "tools: [agents-md, claude-code]\n");
    sandbox.write("package.json", "{}");
    await sandbox.call(["sync"]);
    await sandbox.call(["inject"]);
    const git = (...args: string[]) =>
      execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@example.com", ...args], { cwd: sandbox.cwd });
    for (const args of [
      ["init", "-q"],
      ["add", "-A"],
      ["commit", "-qm", "all"],
    ])
      git(...args);

    const other = createSandbox();
    try {
      const names = ["AGENTS.md", "CLAUDE.md"];
      rmSync(other.cwd, { recursive: true });
      execFileSync("git", ["clone", "-q", sandbox.cwd, other.cwd]);
      // The person there has settings and packs of their own.
      const own = join(other.home, ".config/plimsoll");
      mkdirSync(join(own, "packs/mine"), { recursive: true });
      writeFileSync(join(own, "config.yaml"), "title: Mine\nmodel: gpt-5\n");
      writeFileSync(join(own, "packs/mine/pack.yaml"), "id: mine\nname: Mine\n");
      writeFileSync(join(own, "packs/mine/context.md"), "Mine.\n");
      const alone = { wrapper: noNetwork };
      const reach = `fetch("${origin}/page").then(() => process.exit(0), () => process.exit(7))`;
      expect(spawnSync(noNetwork[0]!, [...noNetwork.slice(1), process.execPath, "-e", reach]).status).toBe(7);
      expect(await other.run(["inject", "--check"], alone)).toMatchObject({ code: 0, stderr: "" });
      for (const name of names) rmSync(join(other.cwd, name));
      expect((await other.run(["inject"], alone)).code).toBe(0);
      for (const name of names)
        expect(readFileSync(join(other.cwd, name), "latin1")).toBe(readFileSync(join(sandbox.cwd, name), "latin1"));
    } finally {
      other.remove();
    }
  },
);

test("texts of the user's packs are pinned beside them, for inject --global", async () => {
  const own = join(sandbox.home, ".config/plimsoll");
  mkdirSync(join(own, "packs/mine"), { recursive: true });
  writeFileSync(join(own, "packs/mine/pack.yaml"), "id: mine\nname: Mine\n");
  writeFileSync(join(own, "packs/mine/context.md"), `${marker("/notes.md")}\n`);
  expect((await sandbox.call(["inject", "--global", "--tool", "claude-code"])).code).toBe(1);
  await sandbox.call(["sync"]);
  expect(existsSync(join(sandbox.cwd, ".plimsoll"))).toBe(false);
  expect(readdirSync(join(own, "fetched"))).toContain("index.json");
  await sandbox.call(["inject", "--global", "--tool", "claude-code"]);
  expect(readFileSync(join(sandbox.home, ".claude/CLAUDE.md"), "utf8")).toContain("# Notes");
});

test("odd markers and broken packs are told with file and line, and the other packs are fetched", async () => {
  writePack("web", `x\n<!-- sync:fetch label="a" -->\n${marker("/page")}\n`);
  sandbox.write(".plimsoll/packs/bad/pack.yaml", "id: bad\nwieght: 3\n");
  const { code, stdout, stderr } = await sandbox.call(["sync"]);
  expect(code).toBe(1);
  expect(stderr).toContain('plimsoll: .plimsoll/packs/bad/pack.yaml:2: unknown key "wieght". Did you mean "weight"?');
  expect(stderr).toContain("plimsoll: .plimsoll/packs/web/context.md:2: sync:fetch: the marker has no url");
  expect(stdout).toContain(`${origin}/page`);
});

test("the packs of --content are looked through", async () => {
  sandbox.write("other/packs/p/pack.yaml", "id: p\nname: P\n");
  sandbox.write("other/packs/p/context.md", marker("/page"));
  expect((await sandbox.call(["sync", "--content", "other"])).stdout).toContain(`${origin}/page`);
  const missing = await sandbox.call(["sync", "--content", "nowhere"]);
  expect(missing).toMatchObject({ code: 1, stderr: expect.stringContaining("nowhere:1: no such directory") });
});

function git(...args: string[]): string {
  const cwd = join(dirname(sandbox.cwd), "company");
  mkdirSync(cwd, { recursive: true });
  const settings = ["-c", "user.name=T", "-c", "user.email=t@example.com", "-c", "maintenance.auto=false"];
  // An empty GIT_TEMPLATE_DIR leaves out the sample hooks.
  const options = { cwd, env: { ...sandbox.env, GIT_TEMPLATE_DIR: "" }, encoding: "utf8" } as const;
  return execFileSync("git", [...settings, ...args], options).trim();
}

function commitCompany(files: Record<string, string>): string {
  for (const [path, text] of Object.entries(files)) {
    const file = join(dirname(sandbox.cwd), "company", path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  git("add", ".");
  git("commit", "--quiet", "--message", "change");
  return git("rev-parse", "HEAD");
}

const fileCount = 60;

/** Every file says the same version, so that a mixture would show. */
const companyFiles = (version: number) => ({
  "packs/shared/pack.yaml": "id: shared\nname: Shared\n",
  ...Object.fromEntries(
    Array.from({ length: fileCount }, (_, index) => [`packs/shared/more/${index}.md`, `${version}\n`]),
  ),
  "packs/shared/context.md": `${version}\n${marker("/page")}\n`,
});

test("a company's repository is fetched at its revision, moves on with it, and its markers are fetched", async () => {
  git("init", "--quiet", "--initial-branch=main");
  const first = commitCompany(companyFiles(1));
  sandbox.write(".plimsoll/config.yaml", "company: { source: ../company, revision: main }\n");
  const { code, stdout, stderr } = await sandbox.call(["sync"]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toBe(`status   bytes  packs    from
updated         company  ../company main ${first.slice(0, 12)}
fetched     21  shared   ${origin}/page
Wrote 1 text to .plimsoll/fetched. Commit this folder, so everyone injects the same text.
`);
  const second = commitCompany(companyFiles(2));
  const { company } = JSON.parse((await sandbox.call(["sync", "--json"])).stdout);
  expect(company).toEqual({ source: "../company", revision: "main", commit: second, status: "updated" });
  rmSync(join(dirname(sandbox.cwd), "company/.git"), { recursive: true });
  mkdirSync(join(dirname(sandbox.cwd), "company/.git"));
  const gone = await sandbox.call(["sync"]);
  expect(gone.code).toBe(1);
  expect(gone.stderr).toMatch(/^plimsoll: company \.\.\/company: .* is kept\)\n$/);
  expect(gone.stdout).toContain(`${origin}/page`);
});

test("a sync without trust in the company keeps the texts of its packs", async () => {
  sandbox.write("../company/packs/shared/pack.yaml", "id: shared\nname: Shared\n");
  sandbox.write("../company/packs/shared/context.md", `${marker("/page")}\n`);
  sandbox.write(".plimsoll/config.yaml", "company: { source: ../company }\n");
  await sandbox.call(["sync"]);
  const files = () => readdirSync(join(sandbox.cwd, ".plimsoll/fetched"));
  expect(files()).toHaveLength(2);
  const { stderr } = await sandbox.call(["sync"], { env: { PLIMSOLL_TRUST: "" } });
  expect(stderr).toContain("not trusted");
  expect(files()).toHaveLength(2);
});

test("a source or revision that git would take for an option or a helper is refused", async () => {
  for (const company of [
    '{ source: "ext::sh -c date" }',
    '{ source: "--x" }',
    '{ source: "https://a.example", revision: "--x" }',
  ]) {
    sandbox.write(".plimsoll/config.yaml", `company: ${company}\n`);
    const { code, stderr } = await sandbox.call(["sync"]);
    expect(code).toBe(1);
    expect(stderr).toContain("plimsoll: company.");
  }
});

test("killed at any moment a sync leaves the old layer or the new one, and the next one is whole", {
  tags: ["deep"],
  timeout: kills * 20_000,
}, async () => {
  git("init", "--quiet", "--initial-branch=main");
  commitCompany(companyFiles(0));
  sandbox.write(".plimsoll/config.yaml", "company: { source: ../company, revision: main }\n");
  const start = performance.now();
  await sandbox.run(["sync"]);
  const wholeMs = performance.now() - start;
  for (let version = 1; version <= kills; version++) {
    commitCompany(companyFiles(version));
    const child = spawn(process.execPath, [mainFile, "sync", "--force", "--allow-private"], {
      cwd: sandbox.cwd,
      env: sandbox.env,
      stdio: "ignore",
    });
    const closed = once(child, "close");
    await sleep(wholeMs * (0.15 + (0.9 * version) / kills));
    child.kill("SIGKILL");
    await closed;
    const seen = currentLayer();
    expect([version - 1, version].map((each) => `${each}\n`)).toContain(seen[0]);
    expect(new Set(seen).size).toBe(1);
    expect(seen).toHaveLength(fileCount);
    expect((await sandbox.call(["sync"])).code).toBe(0);
    expect(currentLayer()[0]).toBe(`${version}\n`);
  }
  // The git of a killed sync may have outlived it for a moment, and a text's temporary file goes when the text is written again.
  await sandbox.call(["sync", "--force"]);
  const cache = join(sandbox.home, ".cache/plimsoll");
  const left = readdirSync(cache, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".tmp"));
  expect(left).toEqual([]);
});

/** The files of the layer that counts, read as the loader finds them. */
function currentLayer(): string[] {
  const company = join(sandbox.home, ".cache/plimsoll/company");
  const [key = ""] = readdirSync(company);
  const commit = readFileSync(join(company, key, "current"), "utf8").trim();
  const more = join(company, key, commit, "packs/shared/more");
  return readdirSync(more).map((name) => readFileSync(join(more, name), "utf8"));
}
