/** One nebula on two machines: two clones of one remote, two homes, one store. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { noPostgres, type PostgresServer, startPostgres } from "../postgres-server.ts";
import { mainFile, type Run, runProcess } from "./run-plimsoll.ts";

const isDeep = process.env.PLIMSOLL_DEEP === "1";
const phases: Record<string, readonly string[]> = {
  schema: [],
  parser: [],
  api: ["schema"],
  page: ["schema", "parser"],
  // Each phase is a worktree and a merge on both machines.
  ...(isDeep ? { cli: ["parser"], docs: ["api", "page", "cli"] } : {}),
};
const ids = Object.keys(phases);

/** Says where it runs, checks that the work of its dependencies is there, waits, and changes its own file. */
const agent = `#!/bin/sh
cat >/dev/null
echo "start $PLIMSOLL_PHASE $MACHINE" >>"$LOG"
for each in $(sed -n 's/^# needs //p' "$PLIMSOLL_NEBULA/$PLIMSOLL_PHASE.md"); do
  [ -e "src/$each/file" ] || { echo "$each is missing" >&2; exit 4; }
done
mkdir -p "src/$PLIMSOLL_PHASE"
sleep "\${WAIT:-0.2}"
echo "$PLIMSOLL_PHASE" >"src/$PLIMSOLL_PHASE/file"
echo "line" >>shared-$PLIMSOLL_PHASE
echo "done $PLIMSOLL_PHASE $MACHINE" >>"$LOG"
echo "Did $PLIMSOLL_PHASE."
`;

let root: string;
/** A store other than a file in `root`. */
let place: string | undefined;
const git = (cwd: string, ...args: string[]) =>
  execFileSync("git", ["-c", "user.name=me", "-c", "user.email=me@x", ...args], {
    cwd: join(root, cwd),
    encoding: "utf8",
  }).trim();
const write = (path: string, text: string) => {
  mkdirSync(join(root, path, ".."), { recursive: true });
  writeFileSync(join(root, path), text);
};

beforeEach(() => {
  place = undefined;
  root = realpathSync(mkdtempSync(join(tmpdir(), "plimsoll-fleet-")));
  write("one/plan/nebula.toml", '[nebula]\nname = "plan"\n[execution]\nmax_workers = 2\n');
  for (const [id, needs] of Object.entries(phases)) {
    const front = `id = "${id}"\ntitle = "The ${id}"\ndepends_on = ${JSON.stringify(needs)}\nscope = ["src/${id}/**"]`;
    write(`one/plan/${id}.md`, `+++\n${front}\n+++\nMake it.\n${needs.map((each) => `# needs ${each}\n`).join("")}`);
  }
  write("one/agent.sh", agent);
  chmodSync(join(root, "one/agent.sh"), 0o755);
  git("one", "init", "-q", "-b", "main");
  git("one", "add", "-A");
  git("one", "commit", "-qm", "start");
  git(".", "clone", "-q", "--bare", "one", "bare.git");
  git("one", "remote", "add", "origin", join(root, "bare.git"));
  git(".", "clone", "-q", "bare.git", "two");
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const envOf = (machine: string, more: Record<string, string> = {}) => {
  mkdirSync(join(root, `home-${machine}`), { recursive: true });
  const env = { PATH: process.env.PATH ?? "", HOME: join(root, `home-${machine}`), MACHINE: machine };
  return { ...env, LOG: join(root, "log"), PLIMSOLL_STORE: store(), ...more };
};

const store = () => place ?? join(root, "state.db");
const shared = ["--worktrees", "--remote", "origin", "--lease", "5"];
const words = (...more: string[]) => ["nebula", "apply", "plan", "--agent-command", "./agent.sh", ...more];
const command = (machine: string, args: readonly string[], more: Record<string, string> = {}): Promise<Run> =>
  runProcess([process.execPath, mainFile, ...args], { cwd: join(root, machine), env: envOf(machine, more) });
const apply = (machine: string, more: readonly string[], env: Record<string, string> = {}) =>
  command(machine, words(...more), env);
const start = (machine: string, more: readonly string[], env: Record<string, string> = {}): ChildProcess =>
  spawn(process.execPath, [mainFile, ...words(...more)], {
    cwd: join(root, machine),
    env: envOf(machine, env),
    stdio: "ignore",
  });
const logged = () =>
  existsSync(join(root, "log")) ? readFileSync(join(root, "log"), "utf8").trimEnd().split("\n") : [];
const states = ({ stdout }: Run) =>
  Object.fromEntries(JSON.parse(stdout).phases.map(({ id, state }: { id: string; state: string }) => [id, state]));
const allCompleted = Object.fromEntries(ids.map((id) => [id, "completed"]));
const merges = () =>
  git("bare.git", "log", "--merges", "--first-parent", "--format=%s", "nebula/plan").split("\n").sort();
const allMerged = ids.map((id) => `Merge phase ${id}: The ${id}`).sort();
const until = async (isTrue: () => boolean, mostMs = 30_000) => {
  const deadline = performance.now() + mostMs;
  while (!isTrue() && performance.now() < deadline) await sleep(20);
  expect(isTrue()).toBe(true);
};

async function runTogether(): Promise<void> {
  const flags = [...shared, "--max-workers", "1", "--json"];
  const runs = await Promise.all([apply("one", flags), apply("two", flags)]);
  for (const run of runs) expect([run.code, run.stderr]).toEqual([0, expect.any(String)]);
  expect(runs.map(states)).toEqual([allCompleted, allCompleted]);
  const log = logged();
  expect(log.map((line) => line.split(" ").slice(0, 2).join(" ")).sort()).toEqual(
    ids.flatMap((id) => [`done ${id}`, `start ${id}`]).sort(),
  );
  expect(new Set(log.map((line) => line.split(" ")[2]))).toEqual(new Set(["one", "two"]));
  expect(merges()).toEqual(allMerged);
  for (const clone of ["one", "two"]) {
    expect(git(clone, "rev-parse", "nebula/plan")).toBe(git("bare.git", "rev-parse", "nebula/plan"));
    expect(git(clone, "worktree", "list").split("\n")).toHaveLength(1);
    expect(git(clone, "rev-parse", "--abbrev-ref", "HEAD")).toBe("main");
  }
  const status = JSON.parse((await command("two", ["nebula", "status", "plan", "--json"])).stdout);
  expect(new Set(status.phases.map(({ machine }: { machine: { id: string } }) => machine.id)).size).toBe(2);
}

test(
  "two machines run each phase once, and each starts from the work of the other",
  {
    timeout: 60_000,
  },
  runTogether,
);

describe("a run is refused before it starts", { timeout: 60_000 }, () => {
  test("without worktrees, without the remote, and while another machine works alone", { tags: ["deep"] }, async () => {
    const loose = await apply("one", ["--remote", "origin"]);
    expect([loose.code, loose.stderr]).toEqual([2, expect.stringContaining("--remote needs --worktrees")]);
    const unknown = await apply("one", ["--worktrees", "--remote", "upstream"]);
    expect([unknown.code, unknown.stderr]).toEqual([
      1,
      expect.stringContaining('the repository has no remote "upstream". It has: origin.'),
    ]);
    git("two", "remote", "set-url", "origin", join(root, "gone.git"));
    const gone = await apply("two", shared);
    expect([gone.code, gone.stderr]).toEqual([1, expect.stringContaining("origin could not be fetched from")]);
    git("two", "remote", "set-url", "origin", join(root, "bare.git"));
    expect([logged(), existsSync(store())]).toEqual([[], true]);
    const alone = start("one", [], { WAIT: "60" });
    await until(() => logged().length === 2);
    const plain = await apply("two", ["--worktrees"]);
    expect([plain.code, plain.stderr]).toEqual([
      1,
      expect.stringMatching(
        /the machine \S+ is already applying the nebula plan\. Wait until it ends, or share the run/,
      ),
    ]);
    const other = await apply("two", shared);
    expect([other.code, other.stderr]).toEqual([
      1,
      expect.stringContaining("applying the nebula plan, and works alone"),
    ]);
    const exited = once(alone, "exit");
    alone.kill("SIGTERM");
    await exited;
    expect(logged().filter((line) => line.endsWith("two"))).toEqual([]);
  });

  test("with another plan than the run that it would join, and on a branch that is there", {
    tags: ["deep"],
  }, async () => {
    const first = start("one", shared, { WAIT: "60" });
    await until(() => logged().length === 2);
    write("two/plan/page.md", '+++\nid = "page"\ntitle = "Others"\n+++\nMake something else.\n');
    const other = await apply("two", shared);
    expect([other.code, other.stderr]).toEqual([1, expect.stringContaining("with other phases or tasks. Check out")]);
    git("two", "checkout", "-q", "plan");
    const again = await apply("two", [...shared, "--rerun", "schema"]);
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining("Use --rerun when it has ended.")]);
    const exited = once(first, "exit");
    first.kill("SIGTERM");
    await exited;
    const fresh = await apply("two", shared);
    expect([fresh.code, fresh.stderr]).toEqual([
      1,
      expect.stringContaining("the branch nebula/plan already exists on origin. Use --resume"),
    ]);
  });
});

test("a phase whose branch cannot be pushed has not completed, and --resume finishes it", {
  timeout: 60_000,
  tags: ["deep"],
}, async () => {
  const hook = join(root, "bare.git/hooks/pre-receive");
  writeFileSync(
    hook,
    "#!/bin/sh\nwhile read old new ref; do case $ref in *phase/plan/parser) echo no >&2; exit 1; esac; done\n",
  );
  chmodSync(hook, 0o755);
  const run = await apply("one", [...shared, "--json"]);
  expect(run.code).toBe(1);
  expect(states(run)).toMatchObject({ schema: "completed", parser: "failed", api: "completed", page: "blocked" });
  expect(JSON.parse(run.stdout).phases.find(({ id }: { id: string }) => id === "parser").error).toMatch(
    /^Its changes could not be committed and pushed: the remote origin could not be pushed to: .*no/,
  );
  expect(merges()).toEqual(["Merge phase api: The api", "Merge phase schema: The schema"]);
  rmSync(hook);
  const resumed = await apply("two", [...shared, "--resume", "--json"]);
  expect([resumed.code, states(resumed)]).toEqual([0, allCompleted]);
  expect(merges()).toEqual(allMerged);
  expect(logged().filter((line) => line.startsWith("start schema"))).toEqual(["start schema one"]);
});

const lease = 3;
const flags = ["--worktrees", "--remote", "origin", "--lease", String(lease), "--json"];
const counted = (word: string) => logged().filter((line) => line.startsWith(word)).length;

/** Kills a machine in the middle of its phases. */
async function loseMachine(): Promise<void> {
  const first = start("one", flags, { WAIT: "1" });
  await until(() => counted("done") >= 2 && counted("start") >= 4);
  const second = apply("two", flags, { WAIT: "0.3" });
  await sleep(500);
  const completed = git("bare.git", "log", "--merges", "--format=%s", "nebula/plan").split("\n").length;
  first.kill("SIGKILL");
  const killed = performance.now();
  await until(() => logged().some((line) => /^start (api|page|cli) two$/.test(line)), (lease + 10) * 1000);
  // The lease counts from the last sign, and the other machine looks several times a second.
  expect(performance.now() - killed).toBeLessThan((lease + 5) * 1000);
  const run = await second;
  expect([run.code, states(run)], run.stderr).toEqual([0, allCompleted]);
  expect(completed).toBeGreaterThan(0);
  expect(merges()).toEqual(allMerged);
  for (const id of ["schema", "parser"]) expect(counted(`start ${id}`)).toBe(1);
  expect(run.stderr).toMatch(/has given no sign for 3 s: its phases start again/);
  expect(git("bare.git", "log", "--format=%s", "nebula/plan")).toMatch(/Take over phase (api|page|cli) from /);
  // What the lost machine left is ended there, and it starts nothing again.
  const back = await apply("one", [...flags, "--resume"]);
  expect([back.code, states(back)], back.stderr).toEqual([0, allCompleted]);
  expect(merges()).toEqual(allMerged);
}

describe("a lost machine", { tags: ["deep"], timeout: 240_000 }, () => {
  test("loses its phases after its lease, and completed phases do not run again", loseMachine);

  test("that had merged a phase and could not say so does not let it run again", async () => {
    const hook = join(root, "bare.git/hooks/post-receive");
    const pid = join(root, "pid");
    writeFileSync(
      hook,
      `#!/bin/sh\n[ -e ${pid} ] && git log -1 --format=%s nebula/plan | grep -q "Merge phase schema" && kill -9 $(cat ${pid}) && rm ${pid}\ntrue\n`,
    );
    chmodSync(hook, 0o755);
    const first = start("one", [...flags, "--only", "schema"]);
    writeFileSync(pid, String(first.pid));
    await once(first, "exit");
    expect([merges(), counted("done schema")]).toEqual([["Merge phase schema: The schema"], 1]);
    const status = JSON.parse((await command("two", ["nebula", "status", "plan", "--json"])).stdout);
    expect(status.phases.find(({ id }: { id: string }) => id === "schema").state).toBe("running");
    const run = await apply("two", [...flags, "--resume"]);
    expect([run.code, states(run)], run.stderr).toEqual([0, allCompleted]);
    expect(run.stderr).toMatch(
      /"phase":"schema","message":"its work was merged before .* was lost, so it does not run/,
    );
    expect(counted("start schema")).toBe(1);
    expect(merges()).toEqual(allMerged);
    expect((await command("one", ["nebula", "status", "plan", "schema"])).stdout).toBe("Did schema.\n");
  });

  test("that only slept finds its phases taken over, and merges nothing twice", async () => {
    const first = start("one", [...flags, "--max-workers", "1"], { WAIT: "1" });
    const exited = once(first, "exit");
    await until(() => counted("start") === 1);
    const slept = logged()[0]!.split(" ")[1]!;
    first.kill("SIGSTOP");
    const second = apply("two", [...flags, "--max-workers", "1"], { WAIT: "0.3" });
    await until(() => counted(`start ${slept} two`) === 1, 20_000);
    first.kill("SIGCONT");
    const run = await second;
    expect([run.code, states(run)], run.stderr).toEqual([0, allCompleted]);
    expect(await exited).toEqual([0, null]);
    expect(merges()).toEqual(allMerged);
    expect(logged().filter((line) => line.startsWith("start")).length).toBe(ids.length + 1);
  });

  test("that comes back within its lease continues its own agents", async () => {
    const first = start("one", flags, { WAIT: "2" });
    await until(() => counted("start") === 2);
    first.kill("SIGKILL");
    await once(first, "exit");
    const run = await apply("one", [...flags, "--resume"], { WAIT: "0.2" });
    expect([run.code, states(run)], run.stderr).toEqual([0, allCompleted]);
    expect(counted("start")).toBe(ids.length);
    expect(merges()).toEqual(allMerged);
  });
});

describe.skipIf(noPostgres !== undefined)("over PostgreSQL", { tags: ["deep"], timeout: 240_000 }, () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.remove());
  beforeEach(async () => {
    place = await server.newDatabase();
  });

  test("two machines run each phase once", runTogether);
  test("a lost machine loses its phases after its lease", loseMachine);
});
