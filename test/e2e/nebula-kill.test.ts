/** Kills the real command at random moments. Agents are processes of their own and live on: what they did must count, once. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { caseCount } from "../case-count.ts";
import { createSandbox, mainFile, type Sandbox } from "./run-plimsoll.ts";

const rounds = caseCount({ few: 5, deep: 10, long: 25 });
const killsOfRound = 2;

/** Two that start at once, three behind them, and one that needs all. */
const phases: Record<string, readonly string[]> = {
  schema: [],
  parser: [],
  api: ["schema"],
  page: ["schema", "parser"],
  cli: ["parser"],
  docs: ["api", "page", "cli"],
};
const ids = Object.keys(phases);

/** Says when it starts and ends, in one write each, changes its file the first time in a run, and reports one entry of every kind that its phase alone has. */
const agent = `#!/bin/sh
cat >/dev/null
echo "start $PLIMSOLL_PHASE" >>"$LOG"
mkdir -p "src/$PLIMSOLL_PHASE"
echo "$LOG" >"src/$PLIMSOLL_PHASE/file"
sleep 0.0$((RANDOM_SEED % 7 + 1))
[ -z "$MAKE" ] || echo "$PLIMSOLL_PHASE" >"made-$PLIMSOLL_PHASE"
echo "done $PLIMSOLL_PHASE" >>"$LOG"
cat <<END
Did $PLIMSOLL_PHASE.

~~~fabric
entanglements: [{ package: $PLIMSOLL_PHASE, kind: function, signature: "run()" }]
discoveries: ["found by $PLIMSOLL_PHASE"]
notes: ["noted by $PLIMSOLL_PHASE"]
~~~
END
`;

let sandbox: Sandbox;
let log: string;
beforeEach(() => {
  sandbox = createSandbox();
  log = join(sandbox.home, "log");
  sandbox.write("agent.sh", agent);
  chmodSync(join(sandbox.cwd, "agent.sh"), 0o755);
  sandbox.write("plan/nebula.toml", '[nebula]\nname = "plan"\n[execution]\nmax_workers = 2\n');
  for (const [id, dependsOn] of Object.entries(phases)) {
    const front = `id = "${id}"\ntitle = "${id}"\ndepends_on = ${JSON.stringify(dependsOn)}\nscope = ["src/${id}/**"]`;
    sandbox.write(`plan/${id}.md`, `+++\n${front}\n+++\nMake ${id}.\n`);
  }
});
afterEach(() => sandbox.remove());

const args = (...more: string[]) => ["nebula", "apply", "plan", "--agent-command", "./agent.sh", "-q", ...more];
const env = (state: string, seed: number) => ({
  LOG: `${log}-${state}`,
  XDG_STATE_HOME: join(sandbox.home, state),
  RANDOM_SEED: String(seed),
});
const logged = (state: string) =>
  existsSync(`${log}-${state}`) ? readFileSync(`${log}-${state}`, "utf8").trimEnd().split("\n").sort() : [];

interface Kill {
  readonly more: readonly string[];
  readonly place: Record<string, string>;
  readonly state: string;
  /** Lines in the log that it waits for. */
  readonly lines: number;
  readonly afterMs: number;
}

/** Kills a run so many milliseconds after its agents have come so far: the clock alone would miss the run on a busy machine. */
async function runAndKill({ more, place, state, lines, afterMs }: Kill): Promise<void> {
  const child = spawn(process.execPath, [mainFile, ...args(...more)], {
    cwd: sandbox.cwd,
    env: { ...sandbox.env, ...place },
    stdio: "ignore",
  });
  const exited = once(child, "exit");
  while (child.exitCode === null && logged(state).length < lines) await sleep(1);
  await Promise.race([sleep(afterMs), exited]);
  child.kill("SIGKILL");
  await exited;
}

/** Everything that the phases reported is there, once, and nothing else. */
async function expectWholeFabric(place: Record<string, string>): Promise<void> {
  const shown = await sandbox.run(["fabric", "show", "--nebula", "plan", "--json"], { env: place });
  const fabric = JSON.parse(shown.stdout);
  const sorted = (list: readonly Record<string, string>[], name: string) => list.map((each) => each[name]).sort();
  expect(fabric.phases.map((phase: { state: string }) => phase.state)).toEqual(ids.map(() => "completed"));
  expect(sorted(fabric.entanglements, "package")).toEqual(ids.toSorted());
  expect(sorted(fabric.claims, "owner")).toEqual(ids.toSorted());
  expect(sorted(fabric.discoveries, "detail")).toEqual(ids.map((id) => `found by ${id}`).sort());
  expect(sorted(fabric.notes, "from")).toEqual(ids.toSorted());
  for (const kind of ["entanglements", "claims", "discoveries", "notes"]) {
    const numbers = fabric[kind].map(({ id }: { id: string }) => id.slice(1));
    expect(numbers, kind).toEqual(ids.map((_, index) => String(index + 1)));
  }
}

/** Kills a run twice and resumes it. Returns how many kills fell between two phases. */
async function killAndResume(round: number, flags: readonly string[] = []): Promise<number> {
  const all = ids.flatMap((id) => [`done ${id}`, `start ${id}`]).sort();
  const state = `round-${round}`;
  const place = { ...env(state, round), MAKE: flags.length > 0 ? "1" : "" };
  let interrupted = 0;
  for (let kill = 0; kill < killsOfRound; kill++) {
    const before = logged(state).length;
    const lines = before + Math.floor(Math.random() * (all.length - before));
    const more = kill === 0 ? flags : [...flags, "--resume"];
    await runAndKill({ more, place, state, lines, afterMs: 60 * Math.random() });
    const after = logged(state).length;
    if (after > before && after < all.length) interrupted++;
  }
  const last = await sandbox.run(args(...flags, "--resume", "--json"), { env: place });
  expect(last.code, last.stderr + last.stdout).toBe(0);
  expect(JSON.parse(last.stdout).phases.map((phase: { state: string }) => phase.state)).toEqual(
    ids.map(() => "completed"),
  );
  // Agents outlive the run: each has started once, whoever waited for its end.
  expect(logged(state), state).toEqual(all);
  await expectWholeFabric(place);
  return interrupted;
}

test(`a killed run goes on with --resume: no phase that succeeded runs again, none is missing (${rounds * killsOfRound} kills)`, {
  tags: ["deep"],
  timeout: 60_000 + rounds * 10_000,
}, async () => {
  let interrupted = 0;
  for (let round = 0; round < rounds; round++) interrupted += await killAndResume(round);
  // Kills that never fell between two phases would prove nothing.
  expect(interrupted).toBeGreaterThan((rounds * killsOfRound) / 5);
});

test("a killed run with worktrees goes on too, and merges the work of every phase once", {
  tags: ["deep"],
  timeout: 60_000 + rounds * 20_000,
}, async () => {
  const git = (...more: string[]) =>
    execFileSync("git", ["-c", "user.name=me", "-c", "user.email=me@x", ...more], {
      cwd: sandbox.cwd,
      encoding: "utf8",
    });
  git("init", "-q", "-b", "main");
  git("add", "-A");
  git("commit", "-qm", "start");
  for (let round = 0; round < Math.ceil(rounds / 3); round++) {
    await killAndResume(round, ["--worktrees"]);
    const made = git("ls-tree", "--name-only", "nebula/plan")
      .split("\n")
      .filter((name) => name.startsWith("made-"));
    expect(made).toEqual(ids.map((id) => `made-${id}`).sort());
    const merges = git("log", "--merges", "--format=%s", "nebula/plan").trimEnd().split("\n");
    expect(merges.sort()).toEqual(ids.map((id) => `Merge phase ${id}: ${id}`).sort());
    expect(git("worktree", "list").trimEnd().split("\n")).toHaveLength(1);
    git("branch", "-q", "-D", "nebula/plan");
  }
});
