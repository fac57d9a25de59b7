/** Whatever is kept in the user's state and cache directories is for the user alone, whatever the umask. */
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join, relative } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { connectLines, plimsoll } from "./mcp-clients.ts";
import { createSandbox, type Run, type Sandbox } from "./run-plimsoll.ts";

let sandbox: Sandbox;
beforeEach(() => {
  sandbox = createSandbox();
});
afterEach(() => sandbox.remove());

const openUmask = ["sh", "-c", 'umask 000; exec "$@"', "-"];
const run = (args: readonly string[]): Promise<Run> =>
  sandbox.run(args, { wrapper: openUmask, env: { PLIMSOLL_TRUST: "1" } });

/** What others may do with files and directories, by path. */
function openPaths(directory: string): string[] {
  const all = readdirSync(directory, { recursive: true, withFileTypes: true });
  return [directory, ...all.map(({ parentPath, name }) => join(parentPath, name))].flatMap((path) => {
    const mode = statSync(path).mode & 0o777;
    const wanted = statSync(path).isDirectory() ? 0o700 : 0o600;
    return mode === wanted ? [] : [`${relative(sandbox.home, path)} ${mode.toString(8)}`];
  });
}

function commitCompany(): void {
  const cwd = join(dirname(sandbox.cwd), "company");
  mkdirSync(join(cwd, "packs/team"), { recursive: true });
  writeFileSync(join(cwd, "packs/team/pack.yaml"), "id: team\nname: team\n");
  writeFileSync(join(cwd, "packs/team/context.md"), "# Team\n\nWrite tests.\n");
  writeFileSync(join(cwd, "packs/team/run.sh"), "#!/bin/sh\n");
  chmodSync(join(cwd, "packs/team/run.sh"), 0o755);
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=x", "-c", "user.email=x@example.com", ...args], { cwd });
  git("init", "-q", "-b", "main");
  git("add", ".");
  git("commit", "-qm", "one");
}

test("the state of servers, installs, agents and locks", async () => {
  const server = connectLines([...openUmask, ...plimsoll("mcp", "--http", "0")], sandbox);
  await expect.poll(server.stderr, { timeout: 20_000 }).toMatch(/serving on http/);
  server.child.kill("SIGTERM");
  await server.exit;
  const client = connectLines([...openUmask, ...plimsoll("mcp")], sandbox);
  await client.initialize();
  sandbox.write("a.txt", "text\n".repeat(9_000));
  await client.call("read_file", { path: "a.txt" });
  // While it runs, so that the store's log is there.
  const state = join(sandbox.home, ".local/state/plimsoll");
  expect(existsSync(join(state, "state.db-wal"))).toBe(true);
  expect((await run(["mcp", "install", "--tool", "claude-code"])).code).toBe(0);
  sandbox.write("plan/nebula.toml", '[nebula]\nname = "plan"\n');
  sandbox.write("plan/api.md", '+++\nid = "api"\ntitle = "The api"\n+++\nMake it.\n');
  // A failed attempt keeps its folder.
  await run(["nebula", "apply", "plan", "--agent-command", "false"]);
  expect(openPaths(join(sandbox.home, ".local"))).toEqual([]);
  expect(readdirSync(state)).toEqual(
    expect.arrayContaining(["locks", "mcp-entries.json", "mcp-token", "runs", "state.db"]),
  );
  await client.end();
});

test("the caches of texts and of a company's packs", async () => {
  const server = createServer((_request, response) => response.end("# Page\n\ntext\n"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  commitCompany();
  sandbox.write(".plimsoll/config.yaml", "company: { source: ../company, revision: main }\n");
  sandbox.write(".plimsoll/packs/web/pack.yaml", "id: web\nname: web\n");
  sandbox.write(
    ".plimsoll/packs/web/context.md",
    `# Web\n\n<!-- sync:fetch url="http://127.0.0.1:${port}/page.md" -->\n`,
  );
  await run(["sync"]);
  server.closeAllConnections();
  server.close();
  const cache = join(sandbox.home, ".cache");
  expect(readdirSync(join(cache, "plimsoll"))).toContain("company");
  expect(openPaths(cache)).toEqual([]);
});
