/** What a record says about folders and processes is somebody's word: a store may come with a repository. */
import { type ChildProcess, spawn } from "node:child_process";
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createMemoryStore, type Store } from "../../../store/index.ts";
import { createCounter } from "../../../tokens/index.ts";
import type { Nebula } from "../files/nebula.ts";
import { sampleNebula, samplePhase } from "../files/sample-nebula.contract.ts";
import { nebulaKey, runKey } from "../record/nebula-key.ts";
import { openNebulaRecord, type PhaseRun } from "../record/nebula-record.ts";
import type { ApplyReport } from "./apply-event.ts";
import { applyNebula } from "./apply-nebula.ts";
import { lastWords } from "./state/attempt-folders.ts";

let folder: string;
let store: Store;
let foreign: ChildProcess;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "plimsoll-stored-")));
  store = createMemoryStore();
  writeFileSync(join(folder, "key"), "the private key");
  // A group of its own, as an agent has.
  foreign = spawn("sleep", ["60"], { detached: true, stdio: "ignore" });
});
afterEach(() => {
  foreign.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

const api = samplePhase("api", { body: "Make the api." });
const page = samplePhase("page", { body: "Make the page.", dependsOn: ["api"] });
const nebula = (): Nebula => ({ ...sampleNebula(api, page), directory: folder });
const storeFile = () => join(folder, "state.db");
const env = () => ({ PATH: process.env.PATH, HOME: join(folder, "home") });
const runs = () => join(folder, "home/.local/state/plimsoll/runs", runKey(folder, storeFile()));

async function resume(): Promise<ApplyReport> {
  return applyNebula(nebula(), {
    store,
    storeFile: storeFile(),
    counter: await createCounter("bytes/4"),
    command: ({ id }) => `cat >prompt-${id}; echo "Made ${id}."`,
    cwd: folder,
    env: env(),
    timeoutMs: 20_000,
    resume: true,
  });
}

/** A record in which the api runs in that folder. */
async function say(attemptFolder: string, more: Partial<PhaseRun> = {}): Promise<void> {
  const run = { title: "The api", state: "running", attempts: 1, promptTokens: 1, seconds: 0 } as const;
  await openNebulaRecord(store, nebulaKey(folder)).change((record) => ({
    ...record,
    phases: { api: { ...run, attemptFolder, ...more } },
  }));
}

/** As an agent that has ended well leaves it, or one that runs. */
function leave(place: string, state: string): void {
  mkdirSync(place, { recursive: true, mode: 0o700 });
  for (const [name, text] of Object.entries({ prompt: "p", stderr: "", state })) {
    writeFileSync(join(place, name), text, { mode: 0o600 });
  }
  writeFileSync(join(place, "stdout"), "Made before.", { mode: 0o600 });
}

function startOf({ pid }: ChildProcess): string {
  return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ")[19]!;
}

const own = () => join(runs(), "api.1-0123abcd");
const ended = "4194305 1\n0\n";

test("an attempt of ours that ended while nobody looked counts", async () => {
  leave(own(), ended);
  await say(own());
  await resume();
  expect(existsSync(join(folder, "prompt-api"))).toBe(false);
  expect(readFileSync(join(folder, "prompt-page"), "utf8")).toContain("Made before.");
});

const places: Readonly<Record<string, () => string>> = {
  "in the project": () => join(folder, "api.1-0123abcd"),
  "beside the runs of this nebula": () => join(runs(), "../other/api.1-0123abcd"),
  "written with dots": () => `${runs()}/../../../../../../api.1-0123abcd`,
  "of another name": () => join(runs(), "api"),
};

test.each(Object.keys(places))("an attempt %s is not taken for ours: its phase runs again", async (name) => {
  const place = places[name]!();
  leave(place, ended);
  rmSync(join(place, "stdout"));
  symlinkSync(join(folder, "key"), join(place, "stdout"));
  await say(place);
  const { phases } = await resume();
  expect(phases.map(({ state }) => state)).toEqual(["completed", "completed"]);
  expect(readFileSync(join(folder, "prompt-page"), "utf8")).toContain("Made api.");
  expect(readFileSync(join(folder, "prompt-page"), "utf8")).not.toContain("the private key");
});

const links: Readonly<Record<string, (place: string) => void>> = {
  "whose folder is a link": (place) => {
    leave(join(folder, "elsewhere"), ended);
    mkdirSync(runs(), { recursive: true });
    symlinkSync(join(folder, "elsewhere"), place);
  },
  "whose answer is a link": (place) => {
    leave(place, ended);
    rmSync(join(place, "stdout"));
    symlinkSync(join(folder, "key"), join(place, "stdout"));
  },
  "whose answer is another name of a file": (place) => {
    leave(place, ended);
    rmSync(join(place, "stdout"));
    linkSync(join(folder, "key"), join(place, "stdout"));
  },
  "that others may write": (place) => {
    leave(place, ended);
    chmodSync(place, 0o777);
  },
};

test.each(Object.keys(links))("an attempt %s is not taken for ours", async (name) => {
  links[name]!(own());
  await say(own());
  await resume();
  const prompt = readFileSync(join(folder, "prompt-page"), "utf8");
  expect(prompt).toContain("Made api.");
  expect(prompt).not.toMatch(/the private key|Made before/);
  expect(readFileSync(join(folder, "key"), "utf8")).toBe("the private key");
});

test("a process that no attempt of ours started is neither waited for nor ended", async () => {
  for (const place of [join(folder, "attempt"), own()]) {
    for (const start of [startOf(foreign), ""]) {
      leave(place, `${foreign.pid} ${start}\n`);
      await say(place);
      await resume();
      expect(foreign.exitCode ?? foreign.signalCode).toBeNull();
      expect(process.kill(foreign.pid!, 0)).toBe(true);
    }
  }
});

test("a new run does not end a process that no attempt of ours started", async () => {
  leave(own(), `${foreign.pid} ${startOf(foreign)}\n`);
  await say(join(folder, "elsewhere"));
  await resume();
  expect(foreign.exitCode ?? foreign.signalCode).toBeNull();
});

test("what a failed phase said is looked for among our attempts alone", async () => {
  const place = { directory: folder, storeFile: storeFile(), env: env() };
  leave(own(), ended);
  expect(lastWords(own(), place)).toEqual({ stdout: join(own(), "stdout") });
  leave(join(folder, "attempt"), ended);
  expect(lastWords(join(folder, "attempt"), place)).toEqual({});
});
