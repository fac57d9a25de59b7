import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { createMemoryStore } from "../../core/store/index.ts";
import type { ApplyEvent } from "./application.ts";
import { claimedRecord, endedLease, leasedRecord, leaseOf, lostLeases, type OwnRun, renewedRecord } from "./leases.ts";
import { type NebulaRecord, openNebulaRecord } from "./nebula-record.ts";
import { endedRecord, freshRecord, startedRecord } from "./record-changes.ts";
import { sampleNebula, samplePhase } from "./sample-nebula.contract.ts";
import { createSchedule } from "./schedule.ts";
import { watchRun } from "./watch-run.ts";

const nebula = sampleNebula(samplePhase("a"), samplePhase("b"), samplePhase("c"));
const a = nebula.phases[0]!;
const run = (id: string, more: Partial<OwnRun> = {}): OwnRun => ({
  ...{ id, machine: { id: `m-${id}`, name: `host-${id}` }, place: id, leaseMs: 500, remote: "origin", plan: "p" },
  ...more,
});
const [one, two] = [run("one"), run("two")];
const leased = (...runs: OwnRun[]) =>
  runs.reduce((record, own) => leasedRecord(record, own), freshRecord(undefined, nebula));
const started = (record: NebulaRecord, phase = a, by = one) =>
  startedRecord(record, phase, {
    ...{ promptTokens: 1, attemptFolder: `/runs/${phase.id}.1-abcd`, claimedBy: by.id, machine: by.machine },
  }).record;

describe("a claim", () => {
  test("is given once, to a run that has a lease", () => {
    const record = leased(one);
    const claimed = claimedRecord(record, "a", "one");
    expect(claimed.phases.a?.claimedBy).toBe("one");
    expect(claimedRecord(leasedRecord(claimed, two), "a", "two").phases.a?.claimedBy).toBe("one");
    expect(claimedRecord(record, "a", "two")).toBe(record);
    expect(claimedRecord(record, "constructor", "one")).toBe(record);
    const done = endedRecord(started(claimed), a, { state: "completed", seconds: 1 }).record;
    expect(done.phases.a?.claimedBy).toBeUndefined();
    expect(claimedRecord(done, "a", "one")).toBe(done);
  });

  test("ends with its run, and what the run had started waits with a mark of its attempt", () => {
    const record = claimedRecord(started(leased(one, two)), "b", "one");
    const lost = lostLeases(record, ["one"]);
    expect(lost.leases).toEqual({ two: leaseOf(record, "two") });
    expect(lost.phases.a).toMatchObject({ state: "waiting", lost: { attempt: "a.1-abcd", machine: "host-one" } });
    expect(lost.phases.a).not.toHaveProperty("attemptFolder");
    expect(lost.phases.b).toEqual({ ...record.phases.c, title: "The b" });
    expect(lostLeases(record, ["one"], new Set(["a"])).phases.a).toEqual(record.phases.a);
    expect(endedLease(lost, "two").leases).toBeUndefined();
  });

  test("of a review stays with the machine until its run is lost", () => {
    const asked = endedRecord(started(leased(one)), a, { state: "waiting", seconds: 1, awaits: "review" }).record;
    expect(asked.phases.a).toMatchObject({ claimedBy: "one", awaits: "review" });
    expect(claimedRecord(leasedRecord(asked, two), "a", "two").phases.a?.claimedBy).toBe("one");
    expect(endedLease(asked, "one").phases.a).toMatchObject({ awaits: "review" });
    expect(lostLeases(asked, ["one"]).phases.a).not.toHaveProperty("awaits");
  });
});

describe("a watched run", () => {
  function watch(own: OwnRun, record: ReturnType<typeof openNebulaRecord>) {
    const events: ApplyEvent[] = [];
    const stop = new AbortController();
    const schedule = createSchedule(nebula.phases);
    const watched = watchRun({ own, record, stop, onEvent: (event) => events.push(event) });
    watched.follow(schedule, freshRecord(undefined, nebula));
    return { ...watched, events, stop, schedule };
  }
  const opened = async (first: NebulaRecord) => {
    const record = openNebulaRecord(createMemoryStore(), "plan");
    await record.change(() => first);
    return record;
  };

  test("keeps its lease while it works, whatever the clock of the other machine says", { tags: ["deep"] }, async () => {
    const wrong = started(leased(one, two));
    const old = { ...leaseOf(wrong, "one")!, renewed: "1999-01-01T00:00:00.000Z" };
    const record = await opened({ ...wrong, leases: { ...wrong.leases, one: old } });
    const [first, second] = [watch(one, record), watch(two, record)];
    await sleep(1_200);
    expect((await record.read())?.phases.a?.claimedBy).toBe("one");
    expect(await second.areBusy()).toBe(true);
    await first.end();
    expect(await second.areBusy()).toBe(false);
    await second.end();
    expect(await record.read()).not.toHaveProperty("leases");
  });

  test("takes the phases of a silent run, which comes back without them", { tags: ["deep"] }, async () => {
    const record = await opened(started(leased(one, two)));
    const second = watch(two, record);
    expect(second.schedule.next()).toBe("a");
    second.schedule.leave("a");
    await sleep(1_200);
    expect((await record.read())?.phases.a).toMatchObject({ state: "waiting", lost: { attempt: "a.1-abcd" } });
    expect(second.schedule.next()).toBe("a");
    expect(second.events).toContainEqual(expect.objectContaining({ message: expect.stringContaining("host-one") }));
    const first = watch(one, record);
    const signal = first.signalOf("a");
    await sleep(300);
    expect([signal.aborted, leaseOf((await record.read())!, "one")?.machine]).toEqual([true, one.machine]);
    await Promise.all([first.end(), second.end()]);
  });

  test("ends if a run that it cannot share has replaced it", { tags: ["deep"] }, async () => {
    const alone = run("alone", { remote: undefined });
    const record = await opened(leased(alone));
    const first = watch(one, record);
    await sleep(400);
    expect([first.stop.signal.aborted, leaseOf((await record.read())!, "one")]).toEqual([true, undefined]);
    await first.end();
    expect(renewedRecord((await record.read())!, one)).toEqual(await record.read());
  });
});
