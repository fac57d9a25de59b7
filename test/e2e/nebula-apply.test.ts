import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createSandbox, mainFile, type Run, runProcess, type Sandbox } from "./run-plimsoll.ts";

const isDeep = process.env.PLIMSOLL_DEEP === "1";

/** Keeps what it was told, does what its phase is told to do in ACT_<phase>, and answers. */
const agent = `#!/bin/sh
echo "$PLIMSOLL_PHASE" >>"$HOME/started"
cat >"$HOME/prompt-$PLIMSOLL_PHASE"
mkdir -p "src/$PLIMSOLL_PHASE"
echo line >>"src/$PLIMSOLL_PHASE/file"
eval "act=\\$ACT_$PLIMSOLL_PHASE"
eval "$act"
echo "Made $PLIMSOLL_PHASE."
`;

let sandbox: Sandbox;
beforeEach(() => {
  sandbox = createSandbox();
  sandbox.write("agent.sh", agent);
  chmodSync(join(sandbox.cwd, "agent.sh"), 0o755);
  writeManifest();
  writePhase("api");
  writePhase("page", { needs: ["api"] });
  writePhase("docs");
});
afterEach(() => sandbox.remove());

function writeManifest(execution = ""): void {
  sandbox.write("plan/nebula.toml", `[nebula]\nname = "plan"\n[execution]\n${execution}\n`);
}

function writePhase(id: string, { needs = [] as string[], more = "", body = `Make the ${id}.` } = {}): void {
  const front = `id = "${id}"\ntitle = "The ${id}"\ndepends_on = ${JSON.stringify(needs)}\nscope = ["src/${id}/**"]\n${more}`;
  sandbox.write(`plan/${id}.md`, `+++\n${front}\n+++\n${body}\n`);
}

const words = (...more: readonly string[]) => ["nebula", "apply", "plan", "--agent-command", "./agent.sh", ...more];
/** The agents are processes in any case. */
const apply = (more: readonly string[] = [], env: Record<string, string> = {}): Promise<Run> =>
  isDeep ? sandbox.run(words(...more), { env }) : sandbox.call(words(...more), { env });
const read = (name: string) => readFileSync(join(sandbox.home, name), "utf8");
const started = () => (existsSync(join(sandbox.home, "started")) ? read("started").trimEnd().split("\n") : []);
const states = ({ stdout }: Run) =>
  Object.fromEntries(JSON.parse(stdout).phases.map(({ id, state }: { id: string; state: string }) => [id, state]));
const fabric = async () => JSON.parse((await sandbox.call(["fabric", "show", "--nebula", "plan", "--json"])).stdout);
const runsFolder = () => {
  const runs = join(sandbox.home, ".local/state/plimsoll/runs");
  return existsSync(runs) ? readdirSync(runs).map((name) => join(runs, name)) : [];
};

describe("some phases", () => {
  test("run again with --rerun, with what depends on them, and nothing else does", { tags: ["deep"] }, async () => {
    expect((await apply()).code).toBe(0);
    const run = await apply(["--rerun", "api"]);
    expect(run.code, run.stderr).toBe(0);
    expect(started().slice(3)).toEqual(["api", "page"]);
    expect(run.stderr).toContain("page completed in the last run and depends on api, so it runs again too");
    expect(run.stdout).toMatch(/^api +completed +2 attempts/m);
    const wrong = await apply(["--rerun", "apy"]);
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('Did you mean "api"?')]);
  });

  test("run alone with --only, once what they need has completed", { tags: ["deep"] }, async () => {
    const early = await apply(["--only", "page"]);
    expect([early.code, early.stderr]).toEqual([1, expect.stringContaining("phase page needs api, not completed yet")]);
    expect((await apply(["--only", "api"])).code).toBe(0);
    const run = await apply(["--only", "page"]);
    expect(run.code, run.stderr).toBe(0);
    expect(started()).toEqual(["api", "page"]);
    expect(run.stdout).toContain("3 phases: 2 completed, 1 waiting");
  });

  test("show their prompt and what their agent printed", { tags: ["deep"] }, async () => {
    const asked = await sandbox.call(["nebula", "prompt", "plan", "api"]);
    expect([asked.code, asked.stderr]).toEqual([
      0,
      expect.stringMatching(/^plimsoll: prompt: \d+ tokens \(bytes\/4\), \d+ of them context/),
    ]);
    expect((await sandbox.call(["nebula", "logs", "plan", "api"])).code).toBe(1);
    await apply([], { ACT_api: "echo looking >&2" });
    expect(read("prompt-api")).toBe(asked.stdout);
    const logs = await sandbox.call(["nebula", "logs", "plan", "api", "--follow"]);
    expect([logs.code, logs.stdout]).toEqual([0, "looking\nMade api.\n"]);
    // What the phases made was not there when the run began.
    rmSync(join(sandbox.cwd, "src"), { recursive: true });
    const next = JSON.parse((await sandbox.call(["nebula", "prompt", "plan", "page", "--json"])).stdout);
    expect(next.text).toBe(read("prompt-page"));
    expect(next.layers).toHaveLength(3);
  });

  test("show the prompt of a known agent, with its counter and without the conventions that it loads", async () => {
    sandbox.write("CLAUDE.md", "Use tabs.\n");
    sandbox.write("../home/bin/claude", "#!/bin/sh\nexec ./agent.sh\n");
    chmodSync(join(sandbox.home, "bin/claude"), 0o755);
    const env = { PATH: `${join(sandbox.home, "bin")}:${process.env.PATH}` };
    const shown = (...more: string[]) => sandbox.call(["nebula", "prompt", "plan", "api", ...more]);
    const asked = await shown("--agent", "claude");
    expect(asked.stderr).toMatch(/^plimsoll: prompt: \d+ tokens \(estimate:claude-5\), \d+ of them context/);
    expect(asked.stdout).not.toContain("Use tabs.");
    await sandbox.call(["nebula", "apply", "plan", "--agent", "claude"], { env });
    expect(read("prompt-api")).toBe(asked.stdout);
    rmSync(join(sandbox.cwd, "src"), { recursive: true });
    expect((await shown("--agent", "claude", "--with-conventions")).stdout).toContain("Use tabs.");
    expect(JSON.parse((await shown("--model", "gpt-5", "--json")).stdout)).toMatchObject({
      counter: "estimate:o200k",
      text: expect.stringContaining("Use tabs."),
    });
  });

  test("end with every process that they started", { tags: ["deep"], timeout: 20_000 }, async () => {
    const away = join(sandbox.home, "away.pid");
    const act = `sleep 60 & setsid sh -c 'echo $$ >"${away}"; exec sleep 60' >/dev/null 2>&1 & echo $! >"$HOME/near.pid"; sleep 0.3`;
    const run = await apply(["--only", "api"], { ACT_api: act });
    expect(run.code, run.stderr).toBe(0);
    const isAlive = (pid: number) =>
      existsSync(`/proc/${pid}`) && !/State:\tZ/.test(readFileSync(`/proc/${pid}/status`, "utf8"));
    for (const name of ["away.pid", "near.pid"]) expect(isAlive(Number(read(name)))).toBe(false);
  });
});

describe("worktrees", () => {
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=me", "-c", "user.email=me@x", ...args], {
      cwd: sandbox.cwd,
      encoding: "utf8",
    });
  const commits = 'git add -A && git -c user.name=a -c user.email=a@x commit -qm "$PLIMSOLL_PHASE did it"';
  const ids = ["one", "two", "three", "four"];
  const acts = Object.fromEntries(ids.map((id) => [`ACT_${id}`, `sleep 0.2; ${commits}`]));

  beforeEach(() => {
    for (const id of ["api", "page", "docs"]) rmSync(join(sandbox.cwd, `plan/${id}.md`));
    for (const id of ids) writePhase(id);
    writePhase("last", { needs: ids });
    sandbox.write(".gitignore", "secret\n");
    sandbox.write("secret", "kept");
    git("init", "-q", "-b", "main");
    git("add", "-A");
    git("commit", "-qm", "start");
  });

  test("keep four parallel commits apart, merge them, and leave the checked out branch alone", {
    timeout: 60_000,
  }, async () => {
    sandbox.write(".git/hooks/pre-merge-commit", `#!/bin/sh\ntouch ${join(sandbox.home, "hooked")}\n`);
    chmodSync(join(sandbox.cwd, ".git/hooks/pre-merge-commit"), 0o755);
    sandbox.write(".plimsoll/config.yaml", "nebula:\n  worktree_copy: [secret]\n");
    const last = 'ls src | tr "\\n" " " >seen; cat secret >>seen';
    const run = await apply(["--worktrees", "--max-workers", "4"], { ...acts, ACT_last: last });
    expect(run.code, run.stderr).toBe(0);
    const log = git("log", "--format=%s", "nebula/plan").trimEnd().split("\n");
    for (const id of ids) expect(log).toEqual(expect.arrayContaining([`${id} did it`, `Merge phase ${id}: The ${id}`]));
    expect(log[0]).toBe("Merge phase last: The last");
    expect(log).toContain("last: The last");
    expect(git("show", "nebula/plan:seen")).toBe("four last one three two kept");
    expect(git("log", "-1", "--format=%(trailers:key=Plimsoll-Phase,valueonly)", "nebula/plan^2").trim()).toBe("last");
    expect([git("rev-parse", "--abbrev-ref", "HEAD").trim(), git("status", "--porcelain", "-uno")]).toEqual([
      "main",
      "",
    ]);
    expect(git("worktree", "list").trimEnd().split("\n")).toHaveLength(1);
    expect(git("branch", "--list", "nebula-phase/*")).toBe("");
    expect(existsSync(join(sandbox.home, "hooked"))).toBe(false);
    const again = await apply(["--worktrees"]);
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining("the branch nebula/plan already exists")]);
  });

  test("name a conflict, run no merge driver, and refuse a dirty tree", {
    timeout: 60_000,
    tags: ["deep"],
  }, async () => {
    sandbox.write(".gitattributes", "* merge=evil\n");
    // Otherwise the agent is asked to resolve it.
    writeManifest("max_review_cycles = 1");
    sandbox.write("shared", "a\n");
    git("add", "-A");
    git("commit", "-qm", "attributes");
    git("config", "merge.evil.driver", `touch ${join(sandbox.home, "driven")}; false`);
    const write = (id: string, seconds: number) => `sleep ${seconds}; echo ${id} >shared`;
    const act = { ACT_one: write("one", 0.5), ACT_two: write("two", 2) };
    const run = await apply(["--worktrees", "--max-workers", "4"], act);
    expect(run.code).toBe(1);
    expect(run.stderr).toMatch(
      /two: running → conflict .*could not be merged into nebula\/plan: they conflict in shared\./,
    );
    expect(run.stdout).toMatch(/^last +blocked/m);
    expect(git("show", "nebula/plan:shared")).toBe("one\n");
    expect(existsSync(join(sandbox.home, "driven"))).toBe(false);
    git("branch", "-D", "nebula/plan");
    sandbox.write("shared", "mine\n");
    const dirty = await apply(["--worktrees"]);
    expect([dirty.code, dirty.stderr]).toEqual([1, expect.stringContaining("changes that are not committed: shared")]);
  });

  describe("of a run that was killed", { tags: ["deep"], timeout: 120_000 }, () => {
    let place: string;
    /** Fails in one phase, and leaves the folder of the merges as a killed run does. Returns git's folder for it. */
    const leaveRun = async (): Promise<string> => {
      expect((await apply(["--worktrees"], { ACT_one: "exit 1" })).code).toBe(1);
      const folder = join(sandbox.home, ".local/state/plimsoll/worktrees");
      place = join(folder, readdirSync(folder)[0]!);
      git("worktree", "add", "-q", join(place, "merged"), "nebula/plan");
      return git("-C", join(place, "merged"), "rev-parse", "--absolute-git-dir").trim();
    };
    const resume = () => apply(["--worktrees", "--resume"]);

    test("are made again if a git that was killed too has left its lock", async () => {
      writeFileSync(join(await leaveRun(), "index.lock"), "");
      const run = await resume();
      expect(run.code, run.stderr).toBe(0);
      expect(git("worktree", "list").trimEnd().split("\n")).toHaveLength(1);
    });

    test("are made again if git was killed while it made them", async () => {
      writeFileSync(join(await leaveRun(), "locked"), "initializing\n");
      rmSync(join(place, "merged"), { recursive: true });
      const run = await resume();
      expect(run.code, run.stderr).toBe(0);
    });

    test("name a lock in the folder of a phase, and what to do", async () => {
      await leaveRun();
      const lock = `${git("-C", join(place, "phases/one"), "rev-parse", "--absolute-git-dir").trim()}/index.lock`;
      writeFileSync(lock, "");
      const run = await resume();
      expect(run.code).toBe(1);
      expect(run.stderr).toContain(`git add failed: there is a lock, ${lock}.`);
      expect(run.stderr).toContain("If no git process is at work there, delete the file and use --resume");
      rmSync(lock);
      expect((await resume()).code).toBe(0);
    });
  });

  test("are not needed to be warned, nor to commit one phase after the other", {
    tags: ["deep"],
    timeout: 60_000,
  }, async () => {
    sandbox.write("plan/two.md", '+++\nid = "two"\ntitle = "The two"\n+++\nMake it.\n');
    git("commit", "-qam", "no scope");
    const warned = await apply(["--max-workers", "4"]);
    expect(warned.stderr).toMatch(
      /^plimsoll: two has no scope, or one that may overlap, .* Use --worktrees, or one worker$/m,
    );
    const both = await apply(["--max-workers", "2", "--commit"]);
    expect([both.code, both.stderr]).toEqual([2, expect.stringContaining("would mix their changes")]);
    const run = await apply(["--commit", "--max-workers", "1"]);
    expect(run.code, run.stderr).toBe(0);
    const committed = git("log", "-5", "--format=%s").trimEnd().split("\n");
    expect(committed).toEqual(["last", "two", "three", "one", "four"].map((id) => `${id}: The ${id}`));
  });
});

test("nebula init writes a nebula that validates, and changes no file", async () => {
  const run = await sandbox.call(["nebula", "init", "my plan"]);
  expect([run.code, run.stdout]).toEqual([0, expect.stringMatching(/^created .*nebula\.toml\ncreated .*first\.md\n/)]);
  const valid = await sandbox.call(["nebula", "validate", "my plan"]);
  expect([valid.code, valid.stdout]).toEqual([0, expect.stringContaining("2 phases: 0 errors, 0 warnings")]);
  const again = await sandbox.call(["nebula", "init", "my plan"]);
  expect([again.code, again.stderr]).toEqual([2, expect.stringContaining("my plan already has first.md, nebula.toml")]);
});

describe("a run", () => {
  test("tells each phase the project, the fabric and what its dependencies answered, then its task", async () => {
    const run = await sandbox.run(words());
    expect(run.code, run.stderr).toBe(0);
    expect(run.stdout).toMatch(/^api +completed +1 attempt +\d\.\d s +\d+ tokens +not checked$/m);
    expect(run.stdout).toContain("3 phases: 3 completed");
    expect(started()).toEqual(["api", "docs", "page"]);
    const prompt = read("prompt-page");
    expect(prompt.split("\n\n---\n\n")).toHaveLength(4);
    expect(prompt).toMatch(
      /## Structure[\s\S]*### Completed Phases\n- api: The api\n[\s\S]*### api: The api\n\n> Made api\.\n/,
    );
    expect(prompt).toMatch(/# The page\n[\s\S]*Make the page\.\n[\s\S]*## How to report/);
    expect(read("prompt-api")).not.toContain("Made");
  });

  test("says what happens on stderr, and with --json as events that tell the tokens of what was sent", async () => {
    const plain = await apply();
    expect(plain.stderr).toMatch(/plimsoll: api: waiting → running, prompt \d+ tokens\n/);
    expect(plain.stderr).toMatch(/plimsoll: api: running → completed, \d\.\d s, prompt \d+ tokens, not checked\n/);
    const run = await apply(["--json"]);
    const events = run.stderr
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(events.map(({ event, phase }) => `${event} ${phase}`)).toEqual([
      "notice undefined",
      ...["started api", "ended api", "started docs", "ended docs", "started page", "ended page"],
    ]);
    const tokens = Math.ceil(statSync(join(sandbox.home, "prompt-page")).size / 4);
    expect(events.at(-1)).toMatchObject({ state: "completed", promptTokens: tokens });
    expect(JSON.parse(run.stdout).phases[2]).toMatchObject({ id: "page", attempts: 1, promptTokens: tokens });
  });

  test("runs several at a time where it may", { tags: ["deep"] }, async () => {
    const busy = 'echo + >>"$HOME/trace"; sleep 0.3; echo - >>"$HOME/trace"';
    await apply(["--max-workers", "2"], { ACT_api: busy, ACT_docs: busy });
    expect(read("trace").replaceAll("\n", "")).toBe("++--");
  });

  test("takes the budget of the flag, else of the manifest; 0 injects nothing", { tags: ["deep"] }, async () => {
    writeManifest("max_context_tokens = 0");
    await apply();
    expect(read("prompt-page")).toMatch(/^# The page\n/);
    await apply(["--max-context-tokens", "40"]);
    const [context] = read("prompt-page").split("\n\n---\n\n# The page");
    expect(Math.ceil(Buffer.byteLength(context!) / 4)).toBeLessThanOrEqual(40);
    expect(read("prompt-page")).toContain("Make the page.");
    for (const wrong of ["-1", "1.5", "ten"]) {
      expect(await apply([`--max-context-tokens=${wrong}`])).toMatchObject({ code: 2 });
    }
  });

  test("works where the manifest says, and refuses what is no directory", { tags: ["deep"] }, async () => {
    writeManifest('[context]\nworking_dir = "src"');
    expect(await apply()).toMatchObject({ code: 1, stderr: expect.stringContaining("nebula.toml") });
    expect(started()).toEqual([]);
    sandbox.write("src/a.txt", "");
    const work = "mkdir -p src/$PLIMSOLL_PHASE; echo line >>src/$PLIMSOLL_PHASE/file";
    const run = await sandbox.run(["nebula", "apply", "plan", "--agent-command", `pwd >>$HOME/pwd; ${work}`]);
    expect(run.code, run.stderr).toBe(0);
    expect(read("pwd").split("\n")[0]).toBe(join(sandbox.cwd, "src"));
  });
});

describe("what phases report", () => {
  const block = (text: string) => `printf '~~~fabric\\n${text}\\n~~~\\n'`;

  test("goes into the fabric, from the answer and from plimsoll fabric add, and to the phases behind", async () => {
    const add = `"${process.execPath}" "${mainFile}" fabric add discovery "no index yet" --affects page`;
    const run = await apply([], { ACT_api: `${block('notes: ["uses REST"]')}; ${add}` });
    expect(run.code, run.stderr).toBe(0);
    const { discoveries, notes, claims } = await fabric();
    expect(discoveries).toMatchObject([{ detail: "no index yet", from: "api", affects: "page" }]);
    expect(notes).toMatchObject([{ text: "uses REST", from: "api", kind: "note" }]);
    expect(claims.map(({ owner }: { owner: string }) => owner)).toEqual(["api", "docs", "page"]);
    expect(read("prompt-page")).toContain("no index yet");
    expect(read("prompt-page")).toContain("uses REST");
    // The answer is what the agent said, not what the command said that it called.
    expect(read("prompt-page")).toContain("### api: The api\n\n> Made api.\n");
  });

  test("of a phase that there is not is told where it is added", { tags: ["deep"] }, async () => {
    const add = `"${process.execPath}" "${mainFile}" fabric add discovery "x" --affects pag >&2`;
    await apply([], { ACT_api: `${add} 2>"$HOME/said"` });
    expect(read("said")).toMatch(/"pag" is not a phase of this nebula\. Did you mean "page"\?/);
  });
});

describe("a phase that fails", () => {
  test("blocks what needs it and nothing else, names its stderr, and --resume runs only these", async () => {
    const run = await apply(["--json"], { ACT_api: 'echo "no such table" >&2; exit 3' });
    expect(run.code).toBe(1);
    expect(states(run)).toEqual({ api: "failed", docs: "completed", page: "blocked" });
    const failed = JSON.parse(run.stdout).phases[0];
    expect(failed.error).toMatch(/exit code 3[\s\S]*no such table/);
    const event = run.stderr.split("\n").find((line) => line.includes('"failed"'))!;
    expect(readFileSync(JSON.parse(event).stderr, "utf8")).toBe("no such table\n");
    const again = await apply(["--resume", "--json"]);
    expect(again.code).toBe(0);
    expect(JSON.parse(again.stdout).phases.map(({ attempts }: { attempts: number }) => attempts)).toEqual([2, 1, 1]);
    expect(started()).toEqual(["api", "docs", "api", "page"]);
  });

  test("people see its last words and where all of them are", { tags: ["deep"] }, async () => {
    const run = await apply([], { ACT_api: 'echo "no such table" >&2; exit 3' });
    expect(run.stderr).toMatch(
      /api: running → failed after .*exit code 3\.\nno such table\nIts whole output on stderr: .*stderr\n/,
    );
    expect(run.stderr).toContain("page: blocked: api did not complete");
  });

  const bad: [name: string, act: string, more: string[], error: RegExp][] = [
    ["dies", "kill -9 $$", [], /SIGKILL/],
    ["hangs", "sleep 60", ["--timeout", "2"], /after 2 s/],
    ["prints without end", "yes", [], /10,000,000 bytes/],
  ];
  // The tests of src/agent have the other ways to fail in every run.
  test.each(isDeep ? bad : bad.slice(0, 1))(
    "an agent that %s is told apart, and others go on",
    async (_, act, more, error) => {
      const run = await apply(["--json", ...more], { ACT_api: act });
      expect(run.code).toBe(1);
      expect(states(run)).toEqual({ api: "failed", docs: "completed", page: "blocked" });
      expect(JSON.parse(run.stdout).phases[0].error).toMatch(error);
      for (const folder of runsFolder().flatMap((each) => readdirSync(each).map((name) => join(each, name))))
        expect(statSync(join(folder, "stdout")).size).toBeLessThan(11e6);
    },
  );
});

test("with --json --quiet there are no events, and the report is whole", { tags: ["deep"] }, async () => {
  const run = await apply(["--json", "--quiet"], { ACT_api: "exit 1" });
  expect(run).toMatchObject({ code: 1, stderr: "" });
  expect(states(run)).toEqual({ api: "failed", docs: "completed", page: "blocked" });
});

describe("a limit on the cost", () => {
  const limit = () => writePhase("api", { more: "max_budget_usd = 0.5" });

  test("is an error with an agent that reports no cost, unless it is ignored", async () => {
    limit();
    const refused = await apply();
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('plan/api.md:6: "max_budget_usd" cannot be kept: the agent\'s command does not');
    expect(refused.stderr).toContain("--ignore-limits");
    expect(started()).toEqual([]);
    const planned = await apply(["--dry-run"]);
    expect(planned.stdout).toContain("api");
    expect(planned.stderr).toContain('plan/api.md:6: "max_budget_usd" cannot be kept');
    expect(planned.stderr).toContain("apply would stop here");
    const ignored = await apply(["--dry-run", "--ignore-limits"]);
    expect(ignored.stderr).not.toContain("max_budget_usd");
    expect(ignored.stdout).not.toContain("$");
    expect(await apply(["--ignore-limits"])).toMatchObject({ code: 0 });
  });

  test("is a warning for validate, and none with an agent that keeps it", async () => {
    limit();
    writeManifest("max_budget_usd = 3");
    const validate = (...more: string[]) => sandbox.call(["nebula", "validate", "plan", "--json", ...more]);
    const rules = async (...more: string[]) => {
      const { code, stdout } = await validate(...more);
      expect(code).toBe(0);
      return JSON.parse(stdout).map(({ file, line, rule }: Record<string, string>) => `${file}:${line} ${rule}`);
    };
    const unkept = ["plan/nebula.toml:4 unkept-limit", "plan/api.md:6 unkept-limit"];
    for (const agent of ["opencode", "gemini", "pi", "codex"])
      expect((await rules("--agent", agent)).sort()).toEqual(unkept.toSorted());
    expect(await rules("--agent", "claude")).toEqual([]);
    expect(await rules("--agent", "codex", "--model", "gpt-5")).toEqual([]);
    expect(await rules()).toEqual([]);
  });
});

test("validate, show and a dry run show the limits of a plan", async () => {
  writePhase("api", { more: "max_budget_usd = 0.5" });
  writeManifest("max_budget_usd = 3");
  const chosen = ["--agent", "claude"];
  const lines = [
    /^phase +works in +command +permissions +limit$/m,
    /^api +\. +claude .* edit +\$0\.5000$/m,
    /^docs +\. +claude .* edit$/m,
    /^All phases together may cost \$3\.00\.$/m,
  ];
  for (const args of [["validate"], ["show"], ["apply", "--dry-run"]]) {
    const run = await sandbox.call(["nebula", args[0]!, "plan", ...args.slice(1), ...chosen]);
    for (const line of lines) expect(run.stdout).toMatch(line);
  }
  const dry = JSON.parse((await sandbox.call(["nebula", "apply", "plan", "--dry-run", "--json", ...chosen])).stdout);
  expect(dry.maxBudgetUsd).toBe(3);
  expect(dry.waves.flat()).toContainEqual(expect.objectContaining({ id: "api", maxBudgetUsd: 0.5 }));
  expect(dry.waves.flat()).toContainEqual(expect.objectContaining({ id: "docs", maxBudgetUsd: null }));
});

test("status has tokens, dollars and time of every attempt", { tags: ["deep"] }, async () => {
  const value = {
    type: "result",
    result: "Made.",
    total_cost_usd: 0.125,
    usage: { input_tokens: 9, output_tokens: 1 },
  };
  sandbox.write("../home/bin/claude", `#!/bin/sh\n./agent.sh >/dev/null || exit\necho '${JSON.stringify(value)}'\n`);
  chmodSync(join(sandbox.home, "bin/claude"), 0o755);
  const env = { PATH: `${join(sandbox.home, "bin")}:${process.env.PATH}` };
  const claude = ["nebula", "apply", "plan", "--agent", "claude"];
  await sandbox.run(claude, { env: { ...env, ACT_api: "exit 1" } });
  const run = await sandbox.run([...claude, "--resume"], { env });
  expect(run.code, run.stderr).toBe(0);
  expect(run.stdout).toMatch(/^api +completed +2 attempts +\d\.\d s +\d+ tokens +\$0\.1250 +not checked$/m);
  expect(run.stdout).toMatch(/3 phases: 3 completed, \$0\.3750$/m);
  const { phases } = JSON.parse((await sandbox.call(["nebula", "status", "plan", "--json"])).stdout);
  expect(phases[0]).toMatchObject({ id: "api", costUsd: 0.125 });
  expect(phases[0].history).toMatchObject([
    { attempt: 1, outcome: "failed", seconds: expect.any(Number) },
    { attempt: 2, outcome: "completed", costUsd: 0.125, usage: { inputTokens: 9, outputTokens: 1 } },
  ]);
});

/** util-linux: gives a command a terminal, with what is typed there on stdin. */
const hasScript = process.platform === "linux" && existsSync("/usr/bin/script");

describe.skipIf(!hasScript)("a person at a terminal who forgets --resume", () => {
  const typed = async (answer: string, more = "") => {
    const line = `"${process.execPath}" "${mainFile}" nebula apply plan --agent-command ./agent.sh ${more}`;
    const { stdout } = await runProcess(["/usr/bin/script", "-qec", `${line}; echo "code $?"`, "/dev/null"], {
      cwd: sandbox.cwd,
      env: sandbox.env,
      input: answer,
    });
    return stdout;
  };

  test("is asked before what has completed runs again; a no runs nothing", { tags: ["deep"] }, async () => {
    await apply([], { ACT_docs: "exit 1" });
    const ran = started().length;
    const refused = await typed("n\n");
    expect(refused).toContain("2 of 3 phases completed in the last run, and --resume would keep them. Run all");
    expect(refused).toContain("nothing was run");
    expect(refused).toMatch(/code 1\s*$/);
    expect(started()).toHaveLength(ran);
    expect(await typed("y\n")).toMatch(/code 0\s*$/);
    expect(started()).toHaveLength(ran + 3);
    // All has completed: whoever runs it again means it.
    expect(await typed("")).not.toContain("Run all again?");
  });

  test("is not asked with --yes or --resume", { tags: ["deep"] }, async () => {
    await apply([], { ACT_docs: "exit 1" });
    expect(await typed("", "--yes")).toMatch(/code 0\s*$/);
    await apply([], { ACT_docs: "exit 1" });
    expect(await typed("", "--resume")).not.toContain("Run all again?");
  });
});

describe("a gate", () => {
  beforeEach(() => writePhase("api", { more: 'gate = "approve"' }));

  test("of review asks after the phase; nobody there leaves it waiting, and --yes accepts it", async () => {
    writePhase("api", { more: 'gate = "review"' });
    expect(states(await apply(["--json"]))).toEqual({ api: "waiting", docs: "completed", page: "waiting" });
    expect(states(await apply(["--resume", "--yes", "--json"]))).toMatchObject({ api: "completed", page: "completed" });
    expect(started()).toEqual(["api", "docs", "page"]);
  });

  test("keeps its phase waiting where nobody can be asked; others go on", async () => {
    const run = await apply(["--json"]);
    expect(run.code).toBe(1);
    expect(states(run)).toEqual({ api: "waiting", docs: "completed", page: "waiting" });
    expect(started()).toEqual(["docs"]);
    expect((await apply()).stderr).toMatch(/api: waits for your approval \(gate "approve"\)\. .*--yes/);
  });

  test("is open with --yes, also for what waited in the run before", { tags: ["deep"] }, async () => {
    await apply();
    const run = await apply(["--resume", "--yes", "--json"]);
    expect(run.code).toBe(0);
    expect(started()).toEqual(["docs", "api", "page"]);
  });
});

describe("nothing is run and nothing written", () => {
  afterEach(() => {
    expect(started()).toEqual([]);
    expect(existsSync(join(sandbox.home, ".local"))).toBe(false);
  });

  test("where the nebula has an error", async () => {
    writePhase("api", { needs: ["page"] });
    const run = await apply();
    expect(run.code).toBe(1);
    expect(run.stderr).toMatch(/plan\/\w+\.md:\d+: .*api → page → api|plan\/\w+\.md:\d+: .*page → api → page/);
    const json = await apply(["--json"]);
    expect(JSON.parse(json.stdout).error).toMatchObject({
      code: "invalid_content",
      line: expect.any(Number),
    });
  });

  test("where there is no nebula", async () => {
    rmSync(join(sandbox.cwd, "plan/nebula.toml"));
    expect(await apply()).toMatchObject({ code: 1, stderr: expect.stringContaining("plan/nebula.toml") });
  });

  test("where the agent cannot be run, is not known, or is not named", { tags: ["deep"] }, async () => {
    const call = (...more: string[]) => sandbox.run(["nebula", "apply", "plan", ...more]);
    expect(await call("--agent-command", "./nobody.sh")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("./nobody.sh"),
    });
    expect(await call("--agent", "clod")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("claude"),
    });
    expect(await call()).toMatchObject({ code: 2, stderr: expect.stringContaining("--agent-command") });
  });

  test("with --dry-run, which shows the waves and the tokens of each prompt", async () => {
    const run = await apply(["--dry-run"]);
    expect(run.code, run.stderr).toBe(0);
    expect(run.stdout).toMatch(/^wave 1\n {2}api .* tokens {2}project \d+[\s\S]*\nwave 2\n {2}page /);
    const json = JSON.parse((await apply(["--dry-run", "--json"])).stdout);
    expect(json.waves.map((wave: { id: string }[]) => wave.map(({ id }) => id))).toEqual([["api", "docs"], ["page"]]);
    const { promptTokens } = json.waves[0][0];
    expect(json.phases).toHaveLength(3);
    expect(json.phases[0]).toEqual({ id: "api", state: "waiting", attempts: 0, promptTokens, seconds: 0 });
    expect(json.waves[0][0].layers).toMatchObject([{ name: "project", truncated: false }]);
  });
});

test("a dry run with --resume knows what has completed", { tags: ["deep"] }, async () => {
  await apply([], { ACT_docs: "exit 1" });
  const run = await apply(["--dry-run", "--resume", "--json"]);
  const [wave1, wave2] = JSON.parse(run.stdout).waves;
  expect(wave1.map(({ state }: { state: string }) => state)).toEqual(["completed", "waiting"]);
  expect(wave2[0]).toMatchObject({ id: "page", state: "completed" });
});

describe("while a run goes on", () => {
  const hanging = { ACT_api: 'echo $$ >"$HOME/pid"; sleep 60' };

  async function startHanging(...more: string[]) {
    const child = spawn(process.execPath, [mainFile, ...words(...more)], {
      cwd: sandbox.cwd,
      env: { ...sandbox.env, ...hanging },
      stdio: ["ignore", "ignore", "pipe"],
    });
    let stderr = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    const exited = once(child, "exit");
    // The shell creates the file before it writes the number.
    while (!existsSync(join(sandbox.home, "pid")) || read("pid") === "") await sleep(10);
    return { child, exited, stderr: () => stderr };
  }
  const isRunning = (pid: number) => {
    const stat = existsSync(`/proc/${pid}/stat`) ? readFileSync(`/proc/${pid}/stat`, "latin1") : ") Z";
    return !/\) [ZX]/.test(stat);
  };

  test.each(isDeep ? (["SIGINT", "SIGTERM"] as const) : (["SIGTERM"] as const))(
    "%s ends the agents, leaves a whole state and says how to go on",
    async (signal) => {
      const { child, exited, stderr } = await startHanging();
      const pid = Number(read("pid"));
      child.kill(signal);
      expect(await exited).toEqual([130, null]);
      expect(isRunning(pid)).toBe(false);
      expect(stderr()).toContain("Use --resume to continue");
      const run = await apply(["--resume", "--json"]);
      expect(run.code).toBe(0);
      expect(JSON.parse(run.stdout).phases[0]).toMatchObject({ id: "api", attempts: 2 });
    },
  );

  test("a second one is refused, and a new one after kill -9 ends the agents that were left", {
    tags: ["deep"],
  }, async () => {
    const { child, exited } = await startHanging();
    const pid = Number(read("pid"));
    expect(await apply()).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`process ${child.pid} `),
    });
    child.kill("SIGKILL");
    await exited;
    expect(isRunning(pid)).toBe(true);
    expect(await apply()).toMatchObject({ code: 0 });
    expect(isRunning(pid)).toBe(false);
  });

  test("a run with another store takes nothing away from one that was killed", { tags: ["deep"] }, async () => {
    const act = { ACT_api: 'echo $$ >"$HOME/pid"; while [ ! -e "$HOME/go" ]; do sleep 0.05; done' };
    hanging.ACT_api = act.ACT_api;
    const { child, exited } = await startHanging("--store", "one.db");
    child.kill("SIGKILL");
    await exited;
    const other = await apply(["--store", "two.db", "--json"]);
    expect(other.code, other.stderr).toBe(0);
    expect(isRunning(Number(read("pid")))).toBe(true);
    sandbox.write("../home/go", "");
    const run = await apply(["--store", "one.db", "--resume", "--json"]);
    expect(JSON.parse(run.stdout).phases[0]).toMatchObject({ id: "api", state: "completed", attempts: 1 });
  });

  test("an interrupt is an event for programs", { tags: ["deep"] }, async () => {
    hanging.ACT_api = 'echo $$ >"$HOME/pid"; sleep 60';
    const { child, exited, stderr } = await startHanging("--json");
    child.kill("SIGINT");
    expect(await exited).toEqual([130, null]);
    const last = stderr().trimEnd().split("\n").at(-1)!;
    expect(JSON.parse(last)).toMatchObject({
      event: "interrupted",
      message: expect.stringContaining("--resume"),
    });
  });

  test("kill -9 ends no agent: --resume waits for it, and its answer counts", { tags: ["deep"] }, async () => {
    rmSync(join(sandbox.home, "pid"), { force: true });
    const wait = 'echo $$ >"$HOME/pid"; while [ ! -e "$HOME/go" ]; do sleep 0.05; done';
    hanging.ACT_api = wait;
    const { child, exited } = await startHanging();
    child.kill("SIGKILL");
    await exited;
    const resumed = await startHanging("--resume", "--json");
    await expect.poll(resumed.stderr).toContain('"adopted":true');
    sandbox.write("../home/go", "");
    expect(await resumed.exited, resumed.stderr()).toEqual([0, null]);
    expect(started()).toEqual(["api", "docs", "page"]);
    expect(read("prompt-page")).toContain("Made api.");
  });
});
