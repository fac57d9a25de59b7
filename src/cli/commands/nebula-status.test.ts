/** A run with real agents (small shell commands), looked at through the frame. */

import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createCounter } from "../../core/tokens/index.ts";
import { withStore } from "../../host/index.ts";
import { applyNebula, loadNebula } from "../../plans/nebula/index.ts";
import { runCli } from "../run-cli.ts";

let base: string;
beforeAll(async () => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "plimsoll-status-")));
  for (const folder of ["plan", "home"]) mkdirSync(join(base, folder));
  writeFileSync(join(base, "plan/nebula.toml"), '[nebula]\nname = "plan"\ncolour = 1\n');
  writePhase("api");
  writePhase("docs");
  writePhase("page", "docs");
  await apply({ api: "printf 'Made api,\\n\\nwhole.'", docs: "echo 'no such table' >&2; exit 3" });
});
afterAll(() => rmSync(base, { recursive: true, force: true }));

function writePhase(id: string, ...needs: string[]): void {
  const front = `id = "${id}"\ntitle = "The ${id}"\ndepends_on = ${JSON.stringify(needs)}`;
  writeFileSync(join(base, `plan/${id}.md`), `+++\n${front}\n+++\nMake the ${id}.\n`);
}

const stateFile = () => join(base, "home/.local/state/plimsoll/state.db");
const env = () => ({ HOME: join(base, "home"), PATH: process.env.PATH ?? "", NO_COLOR: "1" });

async function apply(agents: Record<string, string>, store = stateFile()): Promise<void> {
  const { nebula } = await loadNebula(join(base, "plan"));
  const counter = await createCounter("bytes/4");
  await withStore(store, (opened) =>
    applyNebula(nebula!, {
      ...{ store: opened, storeFile: store, counter, cwd: base, env: env(), maxWorkers: 2 },
      maxContextTokens: 0,
      command: ({ id }) => agents[id] ?? "true",
    }),
  );
}

async function run(args: readonly string[], more: Record<string, string> = {}) {
  const said = { stdout: "", stderr: "" };
  const stream = (name: keyof typeof said) => ({
    write(text: string) {
      said[name] += text;
    },
  });
  const code = await runCli(["nebula", ...args], {
    env: { ...env(), ...more },
    stdin: Readable.from([]),
    stdinKind: "other",
    cwd: () => base,
    stdout: stream("stdout"),
    stderr: stream("stderr"),
  });
  return { code, ...said };
}

const status = (...args: string[]) => run(["status", "plan", ...args]);
const warning = "plan/nebula.toml:3: ";

describe("the state of the last run", () => {
  test("is the table that apply ends with, and no failure whatever it says", async () => {
    const { code, stdout, stderr } = await status();
    expect(code).toBe(0);
    expect(stdout.split("\n")).toEqual([
      expect.stringMatching(/^api +completed +1 attempt +\d\.\d s +\d+ tokens +not checked$/),
      expect.stringMatching(/^docs +failed +1 attempt .* The agent ended with exit code 3\.$/),
      expect.stringMatching(/^page +blocked +docs did not complete\.$/),
      "3 phases: 1 completed, 1 failed, 1 blocked",
      "",
    ]);
    expect(stderr).toMatch(/^plimsoll: plan\/nebula\.toml:3: .*colour.*\n$/);
  });

  test("has the same JSON as apply", async () => {
    const { stdout } = await status("--json");
    expect(JSON.parse(stdout).phases).toMatchObject([
      { id: "api", state: "completed", attempts: 1, promptTokens: expect.any(Number) },
      { id: "docs", state: "failed", error: expect.stringContaining("no such table") },
      { id: "page", state: "blocked", attempts: 0, seconds: 0 },
    ]);
  });

  test("of a nebula that never ran is reported without creating a store", async () => {
    const { code, stdout, stderr } = await status("--store", "none.db");
    expect(code).toBe(0);
    expect(stdout).toContain("3 phases: 3 waiting");
    expect(stderr).toContain("none.db has no run of this nebula yet");
    expect(existsSync(join(base, "none.db"))).toBe(false);
  });

  test("is looked up in the store of the phase that asks", async () => {
    expect((await run(["status", "plan"], { PLIMSOLL_STORE: join(base, "none.db") })).stdout).toContain("3 waiting");
  });
});

describe("the answer of a phase", () => {
  test("is printed exactly, and as JSON with the state of the phase", async () => {
    expect(await status("api")).toMatchObject({ code: 0, stdout: "Made api,\n\nwhole." });
    const { id, state, attempts, answer } = JSON.parse((await status("api", "--json")).stdout);
    expect({ id, state, attempts, answer }).toEqual({
      ...{ id: "api", state: "completed", attempts: 1 },
      answer: "Made api,\n\nwhole.",
    });
  });

  test("that does not exist is an error with the reason and the file of the agent's output", async () => {
    const { code, stdout, stderr } = await status("docs");
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(
      /: phase docs has not answered yet: it failed after \d\.\d s\. The agent ended with exit code 3\.\nno such table\nIts whole output on stderr: home\/\.local\/.*\/stderr\nSee "plimsoll nebula status plan"\.\n$/,
    );
    expect((await status("page")).stderr).toContain(
      'phase page has not answered yet: it is blocked. docs did not complete. See "plimsoll nebula',
    );
    expect((await status("api", "--store", "none.db")).stderr).toContain("it is waiting. See");
  });

  test("of an earlier run is marked as such", async () => {
    const store = join(base, "other.db");
    await apply({ api: "echo first" }, store);
    await apply({ api: "exit 1" }, store);
    const { code, stdout, stderr } = await status("api", "--store", "other.db");
    expect({ code, stdout }).toEqual({ code: 0, stdout: "first\n" });
    expect(stderr).toMatch(/phase api has not completed since it gave this answer: it failed after .* exit code 1\n$/);
    expect((await status("docs", "--store", "other.db")).stderr).toContain("the answer of phase docs is empty");
  });

  test("of a phase that there is not is wrong usage, with the ids that there are", async () => {
    const { code, stdout, stderr } = await status("dosc");
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain('the nebula has no phase "dosc". Did you mean "docs"? Its phases: api, docs, page.');
  });
});

test("apply --json prints warnings and notes as events, show as notes", async () => {
  const plan = ["apply", "plan", "--dry-run", "--counter", "auto"];
  const { code, stderr } = await run([...plan, "--json"]);
  expect(code).toBe(0);
  const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT/);
  const events = stderr.trimEnd().split("\n");
  expect(events.map((line) => JSON.parse(line))).toEqual([
    {
      ...{ time, event: "warning", file: "plan/nebula.toml", line: 3, rule: "unknown-key" },
      message: expect.stringContaining("colour"),
    },
    { time, event: "notice", message: expect.stringContaining("no --model given") },
  ]);
  expect((await run([...plan, "--json", "--quiet"])).stderr).toBe("");
  expect((await run(plan)).stderr).toContain(`plimsoll: ${warning}`);
  expect((await run(["show", "plan", "--json"])).stderr).toContain(`plimsoll: ${warning}`);
});
