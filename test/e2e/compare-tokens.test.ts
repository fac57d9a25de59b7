/** The work of action.yml, in repositories with a base and a head, as a runner starts it. The only server is a GitHub on loopback. */
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createSandbox, mainFile, type Sandbox } from "./run-plimsoll.ts";

const script = fileURLToPath(new URL("../../scripts/compare-tokens.mjs", import.meta.url));
const action = readFileSync(new URL("../../action.yml", import.meta.url), "utf8");

const marker = "<!-- plimsoll: tokens of a pull request -->";

let sandbox: Sandbox;
let root: string;
beforeEach(() => {
  sandbox = createSandbox();
  root = join(sandbox.cwd, "repository");
  mkdirSync(root);
  git("init", "--quiet", "--initial-branch=main");
});
afterEach(() => sandbox.remove());

function git(...args: string[]): string {
  const identity = ["-c", "user.name=T", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"];
  const result = spawnSync("git", [...identity, ...args], { cwd: root, env: environment(), encoding: "utf8" });
  expect(result.stderr + result.status).toMatch(/0$/);
  return result.stdout.trim();
}

function environment(): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, TMPDIR: process.env.TMPDIR, ...sandbox.env };
}

function put(path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

/** Commits what is there, and returns the commit. */
function commit(): string {
  git("add", "--all");
  git("commit", "--quiet", "--message", "Change");
  return git("rev-parse", "HEAD");
}

function inject(): void {
  const result = spawnSync(process.execPath, [mainFile, "inject"], { cwd: root, env: environment() });
  expect(result.status).toBe(0);
}

/** Runs the script for a pull request. */
async function compare(
  base: string,
  { head = "team/app", ...more }: { head?: string; title?: string; api?: string } = {},
) {
  const event = join(sandbox.cwd, "event.json");
  const summary = join(sandbox.cwd, "summary.md");
  rmSync(summary, { force: true });
  const pull = { number: 7, title: more.title, base: { sha: base }, head: { repo: { full_name: head } } };
  writeFileSync(event, JSON.stringify({ pull_request: pull, repository: { full_name: "team/app" } }));
  const env = {
    ...environment(),
    ...{ GITHUB_EVENT_PATH: event, GITHUB_STEP_SUMMARY: summary, GITHUB_TOKEN: "secret-token" },
    // Nobody listens at port 9, so a request that should not be sent becomes a message.
    GITHUB_API_URL: more.api ?? "http://127.0.0.1:9",
  };
  const child = spawn(process.execPath, [script], { cwd: root, env });
  const output = { stdout: "", stderr: "" };
  for (const stream of ["stdout", "stderr"] as const) child[stream].on("data", (data) => (output[stream] += data));
  const code = await new Promise((done) => child.on("close", done));
  return { code, ...output, summary: existsSync(summary) ? readFileSync(summary, "utf8") : "" };
}

test("prints the change in tokens of each tool and file, and leaves nothing behind", async () => {
  put(".plimsoll/config.yaml", "tools: [agents-md, claude-code]\npacks: { built_in: [] }\n");
  put(".plimsoll/packs/own/pack.yaml", "id: own\nname: Own\n");
  put(".plimsoll/packs/own/context.md", "One rule.\n");
  put("AGENTS.md", "# Team\n");
  inject();
  const base = commit();
  put(".plimsoll/packs/own/context.md", `One rule.\n\n${"A long rule about our work. ".repeat(40)}\n`);
  put(".claude/skills/release/SKILL.md", "---\nname: release\ndescription: How we release\n---\n\nSteps.\n");
  put(".mcp.json", '{ "mcpServers": { "shop|db": { "command": "false" } } }\n');
  inject();
  commit();
  const { code, stdout, stderr, summary } = await compare(base, { head: "someone/app" });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(summary.trim()).toBe(stdout.trim());
  const [, rules, skills, now, change] = /<code>claude-code<\/code>[^|]* \| (\S+) \| (\S+) \| (\S+) \| (\S+) \|/.exec(
    stdout,
  )!;
  expect(Number(rules)).toBeGreaterThan(200);
  expect(Number(skills)).toBeGreaterThan(3);
  expect(Number(change)).toBe(Number(rules) + Number(skills));
  expect(Number(now)).toBeGreaterThan(Number(change));
  expect(stdout).toMatch(/<code>codex-cli<\/code>[^|]* \| \+\d+ \| 0 \|/);
  expect(stdout).toMatch(/\| <code>AGENTS\.md<\/code> \| \d+ \| \+\d+ \|/);
  expect(stdout).toContain("MCP servers: added <code>shop&#124;db</code>.");
  expect(stdout).toContain("`plimsoll inject --check` passes.");
  expect(git("worktree", "list").split("\n")).toHaveLength(1);
  expect(git("status", "--porcelain")).toBe("");
});

test("fails where the check fails, and says nothing to GitHub for a fork", async () => {
  put("AGENTS.md", "# Team\n");
  put(".plimsoll/config.yaml", "tools: [agents-md]\n");
  inject();
  const base = commit();
  put("AGENTS.md", readFileSync(join(root, "AGENTS.md"), "utf8").replace("Maintained by", "<b>Edited</b> by"));
  commit();
  const { code, stdout, stderr, summary } = await compare(base, { head: "someone/app" });
  expect({ code, stderr }).toEqual({ code: 1, stderr: "" });
  expect(stdout).toContain("**`plimsoll inject --check` fails:**");
  expect(summary).toMatch(/^edited +AGENTS\.md/m);
});

test("writes one comment and replaces it; no name starts a command or becomes Markdown", async () => {
  put("CLAUDE.md", "# Team\n");
  const base = commit();
  git("checkout", "--quiet", "-b", "x$(>pwned);`>pwned`");
  const hostile = ".claude/rules/a|b `touch pwned` $(touch pwned) <img src=x> @team [x](y).md";
  put(hostile, "Hostile.\n");
  put(".claude/rules/\u202Eabc\n| forged | row |.md", "Hostile.\n");
  commit();
  const github = await startGitHub();
  const title = '"; touch pwned; $(touch pwned) `touch pwned`';
  const first = await compare(base, { title, api: github.address });
  const second = await compare(base, { title, api: github.address });
  github.stop();
  expect(first.stderr + second.stderr).toBe("");
  expect(github.requests.map(({ method, url }) => `${method} ${url}`)).toEqual([
    "GET /repos/team/app/issues/7/comments?per_page=100",
    "POST /repos/team/app/issues/7/comments",
    "GET /repos/team/app/issues/7/comments?per_page=100",
    "PATCH /repos/team/app/issues/comments/2",
  ]);
  const body: string = JSON.parse(github.requests[1]!.body).body;
  expect(body.trim()).toBe(`${marker}\n${first.stdout.trim()}`);
  expect(body).toContain("a&#124;b &#96;touch pwned&#96; &#36;&#40;touch pwned&#41; &#60;img src&#61;x&#62; &#64;team");
  expect(body).not.toMatch(/<img|@team|^\| forged|\u202E/m);
  expect(existsSync(join(root, "pwned"))).toBe(false);
});

test("a commit that is not there, or an option in its place, is refused", async () => {
  put("CLAUDE.md", "# Team\n");
  commit();
  for (const name of ["--upload-pack=touch pwned", "nothing"]) {
    expect(await compare(name)).toMatchObject({ code: 2, stdout: "" });
  }
  expect(existsSync(join(root, "pwned"))).toBe(false);
});

test("the action gives values to its script as variables only", () => {
  const programs = action.split("\n").filter((line) => /^ +(run:|cd |command )/.test(line));
  expect(programs.length).toBeGreaterThan(2);
  expect(programs.filter((line) => line.includes("${{"))).toEqual([]);
});

interface Request {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly body: string;
}

/** Keeps the comments of a pull request. The first one is by a person who copied our first line. */
async function startGitHub() {
  const requests: Request[] = [];
  const comments: unknown[] = [{ id: 1, user: { type: "User" }, body: marker }];
  const server = createServer(async (request, response) => {
    const body = await readBody(request);
    requests.push({ method: request.method, url: request.url, body });
    if (request.method === "POST") comments.push({ id: 2, user: { type: "Bot" }, ...JSON.parse(body) });
    response.end(JSON.stringify(request.method === "GET" ? comments : {}));
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  return { requests, address: `http://127.0.0.1:${port}`, stop: () => server.close() };
}

async function readBody(request: IncomingMessage): Promise<string> {
  let body = "";
  for await (const chunk of request) body += chunk;
  return body;
}
