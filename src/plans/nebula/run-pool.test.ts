import { setImmediate as immediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { createSchedule, type Pool, runPool, type ScheduledPhase } from "./schedule.ts";

const phase = (id: string, ...dependsOn: string[]): ScheduledPhase => ({ id, dependsOn });

interface Trial extends Pool {
  readonly started: string[];
  readonly ended: string[];
  most(): number;
}

function poolOf(phases: readonly ScheduledPhase[], options: Partial<Pool> = {}): Trial {
  const schedule = options.schedule ?? createSchedule(phases);
  const started: string[] = [];
  const ended: string[] = [];
  let running = 0;
  let most = 0;
  return {
    schedule,
    maxWorkers: 2,
    stop: new AbortController(),
    ask: () => undefined,
    async run(id) {
      started.push(id);
      most = Math.max(most, ++running);
      for (let step = 0; step < 3; step++) await immediate();
      running--;
      ended.push(id);
      schedule.end(id, id.startsWith("bad") ? "failed" : "completed");
    },
    ...options,
    started,
    ended,
    most: () => most,
  };
}

test("runs as many phases at a time as allowed, until all have ended", async () => {
  const pool = poolOf(["a", "b", "c", "d", "e"].map((id) => phase(id)));
  await runPool(pool);
  expect(pool.most()).toBe(2);
  expect(pool.started).toEqual(["a", "b", "c", "d", "e"]);
});

test("phases that run already count as workers", async () => {
  const schedule = createSchedule([phase("old"), phase("new")], new Map([["old", "running"]]));
  const pool = poolOf([], { schedule, maxWorkers: 1 });
  const old = immediate().then(() => {
    expect(pool.started).toEqual([]);
    schedule.end("old", "completed");
  });
  await runPool(pool, [old]);
  expect(pool.started).toEqual(["new"]);
});

test("others run while a person is asked, and approval lets the phase start", async () => {
  let answer = (_: boolean): void => {};
  const asked = new Promise<boolean>((resolve) => {
    answer = resolve;
  });
  const pool: Trial = poolOf([phase("asks"), phase("a"), phase("b", "a")], {
    maxWorkers: 1,
    ask: (id) => (id === "asks" ? asked : undefined),
  });
  const done = runPool(pool);
  while (pool.started.length < 2) await immediate();
  answer(true);
  await done;
  expect(pool.started).toEqual(["a", "b", "asks"]);
});

test("a phase without approval stays waiting, and so do phases that need it", async () => {
  const pool = poolOf([phase("asks"), phase("after", "asks"), phase("a")], {
    ask: (id) => (id === "asks" ? Promise.resolve(false) : undefined),
  });
  await runPool(pool);
  expect(pool.started).toEqual(["a"]);
  expect(pool.schedule.next()).toBeUndefined();
});

test("nothing starts after a stop, and running phases end", async () => {
  const pool = poolOf(["a", "b", "c", "d"].map((id) => phase(id)));
  const done = runPool(pool);
  pool.stop.abort();
  await done;
  expect(pool.started).toEqual(["a", "b"]);
  expect(pool.ended).toEqual(["a", "b"]);
});

test("an error stops the others, waits for their end and is passed on", async () => {
  const schedule = createSchedule([phase("a"), phase("broken"), phase("c")]);
  const ended: string[] = [];
  const stop = new AbortController();
  const pool = poolOf([], {
    schedule,
    stop,
    async run(id) {
      if (id === "broken") throw new Error("the disk is full");
      while (!stop.signal.aborted) await immediate();
      ended.push(id);
    },
  });
  await expect(runPool(pool)).rejects.toThrow("the disk is full");
  expect(ended).toEqual(["a"]);
  expect(schedule.next()).toBe("c");
});
