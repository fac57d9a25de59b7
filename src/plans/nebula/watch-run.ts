/** Renews the lease of a run, and watches other runs of the same nebula. A run is lost if it does not renew its lease for
 *  the length of that lease. Only time that passes here counts, so clocks may differ. */
import { setTimeout as sleep } from "node:timers/promises";
import type { ApplyEvent } from "./application.ts";
import {
  endedLease,
  isClaimed,
  isDeadHere,
  leasedRecord,
  leaseOf,
  lostLeases,
  type OwnRun,
  otherLeases,
  renewedRecord,
} from "./leases.ts";
import { type Lease, type NebulaRecord, type OpenNebulaRecord, runOf } from "./nebula-record.ts";
import type { Others, Schedule } from "./schedule.ts";

export interface WatchedRun extends Others {
  /** Aborts when the phase belongs to another run. */
  signalOf(id: string): AbortSignal;
  /** Tells the schedule what others do, beginning with what the record says. */
  follow(schedule: Schedule, record: NebulaRecord): void;
  /** Gives up the lease. */
  end(): Promise<void>;
}

export interface WatchOptions {
  readonly own: OwnRun;
  readonly record: OpenNebulaRecord;
  /** Ends the run if another one has replaced it. */
  readonly stop: AbortController;
  onEvent(event: ApplyEvent): void;
}

/** How often a lease is renewed during its length. Some renewals may be late or fail. */
const renewalsPerLease = 4;

/** Starts to renew the lease, and to look at others if the run shares its work. */
export function watchRun({ own, record, stop, onEvent }: WatchOptions): WatchedRun {
  // A phase that another machine has completed is noticed after half a second at the latest.
  const lookMs = own.remote === undefined ? own.leaseMs / renewalsPerLease : Math.min(own.leaseMs / 10, 500);
  const observe = createObserver(own, 2 * lookMs);
  const notice = (message: string) => onEvent({ event: "notice", message });
  const reportChanges = createReporter(own, onEvent);
  const claims = createClaims(own);
  const keep = createKeeper(own, { record, lookMs });
  let [last, schedule]: [NebulaRecord?, Schedule?] = [];
  const endLost = async (kept: NebulaRecord, gone: Leases) => {
    if (gone.length === 0) return kept;
    const after = await record.change((before) => {
      // Ends only the leases that have not been renewed meanwhile.
      const lost = gone.flatMap(([id, { beats }]) => (leaseOf(before, id)?.beats === beats ? id : []));
      return lost.length === 0 ? before : lostLeases(before, lost);
    });
    for (const [id, { machine, leaseMs }] of gone) {
      if (leaseOf(after, id) === undefined)
        notice(`the run on ${machine.name} has given no sign for ${leaseMs / 1000} s: its phases start again`);
    }
    return after;
  };
  const look = async () => {
    const kept = await keep();
    if (kept === undefined || stop.signal.aborted) return;
    if (leaseOf(kept, own.id) === undefined) {
      const names = otherLeases(kept, own.id).map(([, { machine }]) => machine.name);
      notice(`${names.join(", ")} has begun another run of this nebula, so this one ends`);
      return stop.abort();
    }
    if (own.remote === undefined) return;
    const current = await endLost(kept, observe(kept));
    claims.check(current);
    if (schedule !== undefined) updateSchedule(current, own, schedule);
    reportChanges(current);
    last = current;
  };
  let turn: Promise<void> = Promise.resolve();
  const lookNext = () => {
    turn = turn.then(look, look);
    return turn;
  };
  const loop = repeat(lookNext, { everyMs: lookMs, maxErrorMs: own.leaseMs });
  return {
    signalOf: claims.signalOf,
    follow(followed, current) {
      schedule = followed;
      if (own.remote !== undefined) updateSchedule(current, own, followed);
    },
    async areBusy() {
      // If the store cannot be read now, the others count as busy until a later look succeeds.
      const hasLooked = await lookNext().then(
        () => true,
        () => false,
      );
      if (!hasLooked || last === undefined) return !hasLooked;
      const seen = last;
      return Object.values(seen.phases).some((run) => run.claimedBy !== own.id && isClaimed(seen, run));
    },
    change: loop.next,
    async end() {
      await loop.stop();
      // If the store fails, other runs wait until the lease ends.
      await record.change((before) => endedLease(before, own.id)).catch(() => {});
    },
  };
}

/** Returns a function that renews the lease when it is time, and returns the record. If others have ended the lease as
 *  lost, it takes the lease again, unless they have begun a run that this one cannot share. */
function createKeeper(
  own: OwnRun,
  { record, lookMs }: { readonly record: OpenNebulaRecord; readonly lookMs: number },
): () => Promise<NebulaRecord | undefined> {
  let renewedMs = performance.now();
  const takeAgain = (before: NebulaRecord) => {
    // All other runs must share their work, and run the same plan.
    const canShare = otherLeases(before, own.id).every(
      ([, { remote, plan }]) => remote !== undefined && own.remote !== undefined && plan === own.plan,
    );
    return canShare ? leasedRecord(before, own) : before;
  };
  return async () => {
    const isDue = performance.now() - renewedMs >= own.leaseMs / renewalsPerLease - lookMs / 2;
    const current = isDue ? await record.change((before) => renewedRecord(before, own)) : await record.read();
    if (isDue) renewedMs = performance.now();
    const isGone = current !== undefined && leaseOf(current, own.id) === undefined;
    return isGone ? record.change(takeAgain) : current;
  };
}

/** Watches the phases that this run has claimed. `signalOf` returns a signal that aborts when the phase belongs to
 *  another run. One record may be older than our claim. So a phase counts as taken only after two records in a row in
 *  which it is not ours. */
function createClaims({ id: run }: OwnRun): {
  signalOf(id: string): AbortSignal;
  check(record: NebulaRecord): void;
} {
  const claims = new Map<string, { readonly controller: AbortController; misses: number }>();
  return {
    signalOf(id) {
      const controller = new AbortController();
      claims.set(id, { controller, misses: 0 });
      return controller.signal;
    },
    check(record) {
      for (const [id, claim] of claims) {
        claim.misses = runOf(record, id)?.claimedBy === run ? 0 : claim.misses + 1;
        if (claim.misses > 1) claim.controller.abort();
      }
    },
  };
}

/** Repeats a turn until `stop`. `next` resolves after the next turn, and rejects if turns have failed for too long. */
function repeat(
  turn: () => Promise<void>,
  { everyMs, maxErrorMs }: { readonly everyMs: number; readonly maxErrorMs: number },
): { next(): Promise<void>; stop(): Promise<void> } {
  const stop = new AbortController();
  const waiting = new Set<{ resolve(): void; reject(error: unknown): void }>();
  let goodMs = performance.now();
  const turnOnce = async () => {
    try {
      await turn();
      goodMs = performance.now();
      for (const each of waiting) each.resolve();
    } catch (error) {
      // A store may be away for a while.
      if (performance.now() - goodMs < maxErrorMs) return;
      for (const each of waiting) each.reject(error);
    }
    waiting.clear();
  };
  const run = async () => {
    while (!stop.signal.aborted) {
      await sleep(everyMs, undefined, { signal: stop.signal }).catch(() => {});
      if (!stop.signal.aborted) await turnOnce();
    }
    for (const each of waiting) each.resolve();
  };
  const running = run();
  return {
    next() {
      return new Promise((resolve, reject) => {
        if (stop.signal.aborted) resolve();
        else waiting.add({ resolve, reject });
      });
    },
    async stop() {
      stop.abort();
      await running;
    },
  };
}

type Leases = readonly (readonly [id: string, lease: Lease])[];

/** Returns a function that finds lost runs in a record. If this process was paused, as in a laptop that sleeps, the
 *  pause counts as at most `maxStepMs`, because other runs could not be seen during it. */
function createObserver(own: OwnRun, maxStepMs: number): (record: NebulaRecord) => Leases {
  const seen = new Map<string, { readonly beats: number; unseenMs: number }>();
  let lookedMs = performance.now();
  return (record) => {
    const stepMs = Math.min(performance.now() - lookedMs, maxStepMs);
    lookedMs = performance.now();
    return otherLeases(record, own.id).filter(([id, lease]) => {
      const known = seen.get(id);
      const isSame = known !== undefined && known.beats === lease.beats;
      const unseenMs = isSame ? known.unseenMs + stepMs : 0;
      const isLost = unseenMs > lease.leaseMs || isDeadHere(lease, own);
      // A run that comes back starts to count again.
      if (isLost) seen.delete(id);
      else seen.set(id, { beats: lease.beats, unseenMs });
      return isLost;
    });
  };
}

/** Updates the schedule with the phases that other runs work on or have finished. */
function updateSchedule(record: NebulaRecord, own: OwnRun, schedule: Schedule): void {
  for (const [id, run] of Object.entries(record.phases)) {
    if (run.claimedBy === own.id) continue;
    // A review needs the files of the machine that did the work.
    const isTheirs = isClaimed(record, run) || (run.awaits !== undefined && run.machine?.id !== own.machine.id);
    if (run.state === "completed" || run.state === "failed") schedule.see(id, run.state);
    else if (run.state !== "blocked") schedule.see(id, isTheirs ? "running" : "waiting");
  }
}

/** Returns a function that reports what other machines have done since the last record. */
function createReporter(own: OwnRun, onEvent: WatchOptions["onEvent"]): (record: NebulaRecord) => void {
  const reported = new Map<string, string>();
  return (record) => {
    for (const [id, { state, machine, claimedBy, attempts }] of Object.entries(record.phases)) {
      const [before, now] = [reported.get(id), `${state} ${attempts}`];
      reported.set(id, now);
      const isNew = before !== now && (before !== undefined || state === "running");
      const isTheirs = claimedBy !== own.id && machine !== undefined && machine.id !== own.machine.id;
      if (!isNew || !isTheirs || state === "waiting" || state === "blocked") continue;
      onEvent({ event: "elsewhere", phase: id, state, machine: machine.name });
    }
  };
}
