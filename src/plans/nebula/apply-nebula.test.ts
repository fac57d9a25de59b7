/** Real agents (small shell commands) in a temporary folder, with a store in memory. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createMemoryStore, type Store } from "../../core/store/index.ts";
import { createCounter } from "../../core/tokens/index.ts";
import { addToFabric, maxEntries } from "../compose/index.ts";
import type { ApplyEvent, ApplyOptions, ApplyReport } from "./application.ts";
import { applyNebula, planApply } from "./apply-nebula.ts";
import type { Nebula, Phase } from "./nebula.ts";
import { nebulaKey, runKey } from "./nebula-key.ts";
import { fabricOf, openNebulaRecord } from "./nebula-record.ts";
import { person } from "./record-changes.ts";
import { sampleNebula, samplePhase } from "./sample-nebula.contract.ts";

let folder: string;
let store: Store;
let events: ApplyEvent[];
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "plimsoll-apply-")));
  store = createMemoryStore();
  events = [];
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const phase = (id: string, more: Partial<Phase> = {}): Phase =>
  samplePhase(id, { body: `Make the ${id}.`, scope: [`src/${id}/**`], ...more });
const plan = () => [phase("api"), phase("docs"), phase("page", { dependsOn: ["api"] })];
const nebulaOf = (phases: readonly Phase[]): Nebula => ({ ...sampleNebula(...phases), directory: folder });

/** Keeps its prompt and does what `act` says for its phase. */
async function apply(
  phases: readonly Phase[] = plan(),
  { act = {}, ...more }: Partial<ApplyOptions> & { readonly act?: Record<string, string> } = {},
): Promise<ApplyReport> {
  const keep = 'echo "$PLIMSOLL_PHASE" >>started; cat >"prompt-$PLIMSOLL_PHASE"';
  const work = 'mkdir -p "src/$PLIMSOLL_PHASE"; echo line >>"src/$PLIMSOLL_PHASE/file"';
  return applyNebula(nebulaOf(phases), {
    store,
    storeFile: join(folder, "state.db"),
    counter: await createCounter("bytes/4"),
    command: ({ id }) => `${keep}; ${work}; ${act[id] ?? ""}\necho "Made ${id}."`,
    cwd: folder,
    env: { PATH: process.env.PATH, HOME: join(folder, "home") },
    timeoutMs: 20_000,
    onEvent: (event) => events.push(event),
    ...more,
  });
}

const read = (name: string) => readFileSync(join(folder, name), "utf8");
const started = () => (existsSync(join(folder, "started")) ? read("started").trimEnd().split("\n") : []);
const states = ({ phases }: ApplyReport) => phases.map(({ id, state }) => `${id} ${state}`);
const record = async () => openNebulaRecord(store, await nebulaKey(nebulaOf([])));
const fabric = async () => fabricOf((await (await record()).read())!);
const notes = async () => (await fabric()).notes.map(({ kind, text, from }) => `${from} ${kind}: ${text}`);
const notices = () =>
  events.flatMap((event) =>
    event.event === "notice" ? [`${event.phase === undefined ? "" : `${event.phase}: `}${event.message}`] : [],
  );
const block = (text: string) => `printf '~~~fabric\\n${text}\\n~~~\\n'`;
const attempts = (storeFile = join(folder, "state.db")) => {
  const runs = join(folder, "home/.local/state/plimsoll/runs", runKey(folder, storeFile));
  return existsSync(runs) ? readdirSync(runs).sort() : [];
};

test("a phase resolves a discovery of another, and later prompts leave it out", async () => {
  const act = {
    api: block("discoveries: [no schema yet]\\nentanglements: [{ package: p, kind: k, signature: s }]"),
    docs: block("Resolved: [d1, d7]\\nentanglements: [{ package: p, kind: k, signature: s, file: f }]"),
  };
  await apply([phase("api"), phase("docs", { dependsOn: ["api"] }), phase("page", { dependsOn: ["docs"] })], { act });
  expect(read("prompt-docs")).toContain("[blocker] no schema yet (from: api");
  expect(read("prompt-page")).not.toContain("no schema yet");
  const { discoveries, entanglements } = await fabric();
  expect([discoveries.map(({ resolved }) => resolved), entanglements.length]).toEqual([[true], 1]);
  expect(notices()).toContain('docs: it resolves "d7", which is not a discovery of this nebula');
});

describe("the prompt of a phase", () => {
  test("has project, fabric, answers of dependencies without their blocks, then the task", async () => {
    const report = await apply(plan(), { act: { api: block('notes: ["uses REST"]') } });
    expect(states(report)).toEqual(["api completed", "docs completed", "page completed"]);
    const prompt = read("prompt-page");
    const [project, fabricText, priorWork, task] = prompt.split("\n\n---\n\n");
    expect(project).toContain("## Structure");
    expect(fabricText).toContain("uses REST (from: api)");
    expect(priorWork).toMatch(/^## Prior Work\n\n.+\n\n### api: The api\n\n> Made api\.$/);
    expect(task).toMatch(/^# The page\n\n## This phase\n\n- Id: page\n.*\n\nMake the page\./);
    expect(report.phases[2]?.promptTokens).toBe(Math.ceil(Buffer.byteLength(prompt) / 4));
  });

  test("is the task alone if the budget is 0, and has the whole task if the budget is small", async () => {
    await apply(plan(), { maxContextTokens: 0 });
    expect(read("prompt-page")).toMatch(/^# The page\n/);
    await apply(plan(), { maxContextTokens: 30 });
    const [context, task] = read("prompt-page").split("\n\n---\n\n# The page");
    expect(Math.ceil(Buffer.byteLength(context!) / 4)).toBeLessThanOrEqual(30);
    expect(task).toContain("Make the page.");
  });

  test("is announced with what was cut: layers, and discoveries that did not fit", async () => {
    const cuts = () =>
      events.flatMap((event) => (event.event === "started" ? [[event.truncated, event.overflow]] : []));
    await apply([phase("api")]);
    expect(cuts()).toEqual([[[], 0]]);
    const discoveries = Array.from({ length: 40 }, (_, index) => ({
      detail: `the table ${index} is missing`,
    }));
    await (await record()).change((current) => ({
      ...current,
      fabric: addToFabric(current.fabric, { discoveries }, { from: person }).fabric,
    }));
    const options = { maxContextTokens: 100 };
    events = [];
    await apply([phase("api")], options);
    expect(cuts()).toEqual([[expect.arrayContaining(["fabric"]), expect.any(Number)]]);
    expect(cuts()[0]?.[1]).toBeGreaterThan(100);
    const planned = await planApply(nebulaOf([phase("api")]), {
      ...options,
      counter: await createCounter("bytes/4"),
      cwd: folder,
      env: {},
      store,
    });
    expect(planned.waves[0]?.[0]?.overflow).toBe(cuts()[0]?.[1]);
  });

  test("comes with nebula, phase and store in the environment", async () => {
    await apply([phase("api")], { act: { api: 'env | grep ^PLIMSOLL | sort >"env"' } });
    expect(read("env").trim().split("\n")).toEqual([
      expect.stringMatching(/^PLIMSOLL_ATTEMPT=.*\/api\.1-[\da-f]{8}$/),
      `PLIMSOLL_NEBULA=${folder}`,
      "PLIMSOLL_PHASE=api",
      `PLIMSOLL_STORE=${join(folder, "state.db")}`,
    ]);
  });
});

describe("what a phase reports", () => {
  test("is in the fabric once, with the claims of its scope, however often it ran", async () => {
    const act = { api: `${block('notes: ["uses REST"]')}; [ -e again ]` };
    await apply(plan(), { act: { api: `${act.api} || exit 1` } });
    expect(await notes()).toEqual([]);
    writeFileSync(join(folder, "again"), "");
    await apply(plan(), { act, resume: true });
    expect(await notes()).toEqual(["api note: uses REST"]);
    expect((await fabric()).claims.map(({ path }) => path)).toEqual(["src/api/**", "src/docs/**", "src/page/**"]);
  });

  test("in an unreadable block becomes one failure note, each problem is reported, and the phase completes", async () => {
    const report = await apply([phase("api")], { act: { api: block("notes: {{") } });
    expect(states(report)).toEqual(["api completed"]);
    expect(await notes()).toEqual([
      expect.stringMatching(/^api failure: the report of phase api could not be read: line \d/),
    ]);
    expect(notices()).toContainEqual(expect.stringMatching(/^api: line \d/));
    events = [];
    await apply([phase("api")], { act: { api: block("claims: [a]\\nfoo: 1\\nnotes: [{kind: x}, y]") } });
    expect(await notes()).toEqual([
      "api note: y",
      expect.stringMatching(/^api failure: the report of phase api could be read only partly: line 3: .*, and 2 more$/),
    ]);
    expect(notices().filter((message) => message.startsWith("api: line"))).toHaveLength(3);
  });

  test("by repeating its prompt is ignored without a notice", async () => {
    const report = await apply([phase("api"), phase("page", { dependsOn: ["api"] })], {
      act: { api: "cat prompt-api" },
    });
    expect(states(report)).toEqual(["api completed", "page completed"]);
    expect(await fabric()).toMatchObject({ entanglements: [], discoveries: [], notes: [] });
    expect(notices()).toEqual([]);
    await apply([phase("api")], { command: () => "cat >src/api/file" });
    expect(notices()).toContainEqual(expect.stringMatching(/^api: its answer is empty/));
  });

  test("about an unknown phase gives a notice with a suggestion", async () => {
    const affects = (id: string) => block(`discoveries: [{detail: x, affects: ${id}}]`);
    await apply(plan(), { act: { api: affects("pag"), docs: affects("page") } });
    expect(notices()).toEqual([
      'api: it reports a discovery that affects "pag", which is not a phase of this nebula. Did you mean "page"?',
    ]);
  });

  test("beyond the room of the fabric gives a notice, and the rest is kept", async () => {
    await (await record()).change((current) => ({
      ...current,
      fabric: addToFabric(
        current.fabric,
        { notes: Array.from({ length: maxEntries }, (_, index) => ({ text: `${index}` })) },
        { from: person },
      ).fabric,
    }));
    const act = { api: block('notes: ["uses REST"]\\ndiscoveries: ["no table"]') };
    expect(states(await apply([phase("api")], { act }))).toEqual(["api completed"]);
    expect((await fabric()).discoveries).toMatchObject([{ detail: "no table", from: "api" }]);
    expect(notices()).toEqual([expect.stringMatching(/^api: the fabric is full\. Left out: 1 of its notes/)]);
  });

  test("is forgotten by a new run; what people added is not", async () => {
    await apply([phase("api")], { act: { api: block('notes: ["uses REST"]') } });
    await (await record()).change((current) => {
      const note = { id: "n2", kind: "note" as const, text: "mind the gap", from: person };
      return { ...current, fabric: { ...current.fabric, notes: [...current.fabric.notes, note] } };
    });
    await apply([phase("api")]);
    expect(await notes()).toEqual(["person note: mind the gap"]);
  });
});

describe("a phase that fails", () => {
  test("blocks what needs it and nothing else; resuming runs only these", async () => {
    const act = { api: 'echo "no such table" >&2; exit 3' };
    const report = await apply(plan(), { act });
    expect(states(report)).toEqual(["api failed", "docs completed", "page blocked"]);
    expect(report.phases[0]?.error).toBe("The agent ended with exit code 3.\nno such table");
    const ended = events.find((event) => event.event === "ended" && event.state === "failed");
    expect(ended).toMatchObject({ phase: "api", stderr: expect.stringContaining(folder) });
    expect((await (await record()).read())?.phases.page).toMatchObject({ state: "blocked" });
    const again = await apply(plan(), { resume: true });
    expect(again.phases.map(({ attempts: count, error }) => [count, error])).toEqual([
      [2, undefined],
      [1, undefined],
      [1, undefined],
    ]);
    expect(started()).toEqual(["api", "docs", "api", "page"]);
  });

  test("without output on stderr is reported with its last output on stdout", async () => {
    const failure = async (act: string) => {
      events = [];
      const { phases } = await apply([phase("api")], { act: { api: act } });
      const ended = events.find((event) => event.event === "ended");
      return { error: phases[0]?.error, ended };
    };
    const said = await failure('echo "no such table"; exit 3');
    expect(said.error).toBe("The agent ended with exit code 3.\nno such table");
    expect(said.ended).toHaveProperty("stdout", expect.stringMatching(/\/stdout$/));
    expect(said.ended).not.toHaveProperty("stderr");
    const silent = await failure("exit 3");
    expect(silent.error).toBe("The agent ended with exit code 3.");
    expect(silent.ended).not.toHaveProperty("stderr");
    expect(silent.ended).not.toHaveProperty("stdout");
  });

  test("leaves one attempt folder per phase, however often it runs", async () => {
    for (const resume of [false, true, true]) await apply(plan(), { act: { api: "exit 1" }, resume });
    expect(attempts().map((name) => name.replace(/-.*/, ""))).toEqual(["api.3", "docs.1"]);
    await apply();
    expect(attempts().map((name) => name.replace(/-.*/, ""))).toEqual(["api.1", "docs.1", "page.1"]);
  });
});

describe("a gate", () => {
  const gated = (gate: Phase["gate"] = "approve") => [phase("api", { gate }), ...plan().slice(1)];

  test("keeps its phase and all that need it waiting without approval, and others run", async () => {
    expect(states(await apply(gated()))).toEqual(["api waiting", "docs completed", "page waiting"]);
    expect(events).toContainEqual({ event: "held", phase: "api", gate: "approve" });
    expect(started()).toEqual(["docs"]);
  });

  test("of review runs its phase and asks about the work; --resume asks again and runs nothing", async () => {
    const first = await apply(gated("review"), { act: { api: block('notes: ["uses REST"]') } });
    expect(states(first)).toEqual(["api waiting", "docs completed", "page waiting"]);
    expect(started()).toEqual(["api", "docs"]);
    expect(events).toContainEqual({ event: "held", phase: "api", gate: "review" });
    expect(await notes()).toEqual([]);
    const asked: unknown[] = [];
    const approve = async ({ id }: Phase, work?: { readonly answer: string }) => asked.push([id, work?.answer]) > 0;
    const second = await apply(gated("review"), { approve, resume: true });
    expect(states(second)).toEqual(["api completed", "docs completed", "page completed"]);
    expect(asked).toEqual([["api", expect.stringContaining("Made api.")]]);
    expect([started(), await notes()]).toEqual([["api", "docs", "page"], ["api note: uses REST"]]);
  });

  test("of watch shows the work and goes on", async () => {
    expect(states(await apply(gated("watch")))).toEqual(["api completed", "docs completed", "page completed"]);
    expect(events).toContainEqual({ event: "shown", phase: "api", folder, base: undefined });
  });

  test("of approve asks before its phase starts and about its work, and asks for no other phase", async () => {
    const asked: string[] = [];
    const approve = async ({ id }: Phase, work?: object) => asked.push(work === undefined ? id : `work of ${id}`) > 0;
    expect(states(await apply(gated(), { approve }))).toEqual(["api completed", "docs completed", "page completed"]);
    expect(asked).toEqual(["api", "work of api"]);
  });
});

describe("between two runs", () => {
  const messages = () => events.flatMap((event) => (event.event === "notice" ? [event.message] : []));

  test("changed phases stay completed, removed ones go, new ones run, and all of it is reported", async () => {
    await apply();
    events = [];
    const [api, , page] = plan();
    const changed = [{ ...api!, body: "Make it better." }, page!, phase("guide", { dependsOn: ["page"] })];
    const report = await apply(changed, { resume: true });
    expect(states(report)).toEqual(["api completed", "page completed", "guide completed"]);
    expect(started()).toEqual(["api", "docs", "page", "guide"]);
    expect(messages()).toEqual([
      expect.stringMatching(/^phase docs is no longer/),
      expect.stringMatching(/^phase api .* changed/),
    ]);
    expect(await store.list("nebula-answers").then((list) => list.map(({ key }) => key.split("/")[1]))).toEqual([
      "api",
      "guide",
      "page",
    ]);
    expect(attempts().map((name) => name.replace(/\..*/, ""))).toEqual(["api", "guide", "page"]);
  });

  test("a new run says that --resume would have kept what had completed", async () => {
    await apply();
    await apply();
    expect(messages()).toEqual([expect.stringContaining("--resume")]);
    expect(started()).toHaveLength(6);
  });

  test("without a run to resume every phase starts", async () => {
    expect(states(await apply(plan(), { resume: true }))).toHaveLength(3);
    expect(messages()).toEqual([expect.stringContaining("no run to resume")]);
  });
});

test("an interrupt ends the agents, their phases wait, and resuming continues", async () => {
  const controller = new AbortController();
  const going = apply(plan(), { act: { api: "sleep 30" }, signal: controller.signal });
  await expect.poll(started).toEqual(["api"]);
  controller.abort();
  const report = await going;
  expect(states(report)).toEqual(["api waiting", "docs waiting", "page waiting"]);
  expect(report.phases[0]).toMatchObject({ attempts: 1, error: expect.stringContaining("interrupted") });
  expect(states(await apply(plan(), { resume: true }))).toEqual(["api completed", "docs completed", "page completed"]);
});

test("a failing store ends the agents, rejects, and releases the nebula", async () => {
  let puts = 0;
  const broken: Store = {
    ...store,
    put: (...args) => (++puts === 1 ? Promise.reject(new Error("no space left")) : store.put(...args)),
  };
  await expect(apply(plan(), { store: broken, maxWorkers: 2, act: { docs: "sleep 30" } })).rejects.toThrow(
    "no space left",
  );
  expect((await (await record()).read())?.phases.docs?.state).toBe("waiting");
  const report = await apply(plan(), { resume: true });
  expect(states(report)).toEqual(["api completed", "docs completed", "page completed"]);
  // The agent had succeeded: its answer was still there to be kept.
  expect(started().filter((id) => id === "api")).toHaveLength(1);
});

test("a run with another store does not touch agents and attempts of the first", async () => {
  const other = { storeFile: join(folder, "other.db") };
  await apply([phase("api")], { act: { api: "exit 1" } });
  const kept = attempts();
  const going = apply([phase("api")], {
    resume: true,
    act: { api: "while [ ! -e go ]; do sleep 0.02; done" },
  });
  await expect.poll(started).toHaveLength(2);
  const report = await apply([phase("api")], { ...other, store: createMemoryStore() });
  expect(states(report)).toEqual(["api completed"]);
  writeFileSync(join(folder, "go"), "");
  expect((await going).phases).toMatchObject([{ id: "api", state: "completed", attempts: 2 }]);
  expect([kept.length, attempts().length, attempts(other.storeFile).length]).toEqual([1, 1, 1]);
});

test("a second run of the same nebula is refused while one is running", async () => {
  const first = apply(plan(), { act: { api: "while [ ! -e go ]; do sleep 0.02; done" } });
  await expect.poll(started).toHaveLength(1);
  await expect(apply()).rejects.toMatchObject({
    code: "write_failed",
    message: expect.stringContaining(`process ${process.pid} is already applying the nebula plan`),
  });
  writeFileSync(join(folder, "go"), "");
  expect(states(await first)).toEqual(["api completed", "docs completed", "page completed"]);
});

test("a phase of a run that works alone writes the record twice", async () => {
  let writes = 0;
  const update: Store["update"] = (collection, key, change) => {
    writes += 1;
    return store.update(collection, key, change);
  };
  const count = async (phases: readonly Phase[]) => {
    writes = 0;
    expect(
      states(await apply(phases, { store: { ...store, update } })).every((each) => each.endsWith("completed")),
    ).toBe(true);
    return writes;
  };
  const one = await count([phase("api")]);
  expect((await count([phase("api"), phase("docs"), phase("page")])) - one).toBe(2 * 2);
});
