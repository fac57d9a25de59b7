/** Keeps the lease of a run, and watches other runs of the same nebula. A run is lost if its count of signs does not
 *  grow for the length of its lease. Only time that passes here counts, so clocks may differ. */
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

/** Signs of life in the length of a lease. Some may be late or fail. */
const signsOfLease = 4;

/** How long a phase that another machine has completed goes unnoticed. */
const mostLookMs = 500;

/** Starts to renew the lease, and to look at others if the run shares its work. */
export function watchRun({ own, record, stop, onEvent }: WatchOptions): WatchedRun {
  const lookMs = own.remote === undefined ? own.leaseMs / signsOfLease : Math.min(own.leaseMs / 10, mostLookMs);
  const observe = createObserver(own, 2 * lookMs);
  const tell = createTeller(own, onEvent);
  const claims = createClaims(own);
  const keep = createKeeper(own, { record, lookMs });
  let [last, schedule]: [NebulaRecord?, Schedule?] = [];
  const endLost = async (kept: NebulaRecord, gone: Leases) => {
    if (gone.length === 0) return kept;
    const after = await record.change((before) => withoutLost(before, gone));
    for (const [id, lease] of gone) if (leaseOf(after, id) === undefined) tell.lost(lease);
    return after;
  };
  const look = async () => {
    const kept = await keep();
    if (kept === undefined || stop.signal.aborted) return;
    if (leaseOf(kept, own.id) === undefined) {
      tell.replaced(otherLeases(kept, own.id));
      return stop.abort();
    }
    if (own.remote === undefined) return;
    const current = await endLost(kept, observe(kept));
    claims.check(current);
    if (schedule !== undefined) see(current, own, schedule);
    tell.changes(current);
    last = current;
  };
  let turn: Promise<void> = Promise.resolve();
  const lookNext = () => {
    turn = turn.then(look, look);
    return turn;
  };
  const loop = repeat(lookNext, { everyMs: lookMs, mostErrorMs: own.leaseMs });
  return {
    signalOf: claims.signalOf,
    follow(followed, current) {
      schedule = followed;
      if (own.remote !== undefined) see(current, own, followed);
    },
    async areBusy() {
      // If the store is away, the next looks decide.
      const hasLooked = await lookNext().then(
        () => true,
        () => false,
      );
      return !hasLooked || (last !== undefined && hasOtherClaims(last, own.id));
    },
    change: loop.next,
    async end() {
      await loop.stop();
      // If the store fails, others find the lease without an owner, and wait for its end.
      await record.change((before) => endedLease(before, own.id)).catch(() => {});
    },
  };
}

/** Returns a function that renews the lease when it is time, and returns the record. It takes a lease again that others
 *  took for lost, unless they have begun a run that this one cannot share. */
function createKeeper(
  own: OwnRun,
  { record, lookMs }: { readonly record: OpenNebulaRecord; readonly lookMs: number },
): () => Promise<NebulaRecord | undefined> {
  let renewedMs = performance.now();
  const takeAgain = (before: NebulaRecord) => (canShare(before, own) ? leasedRecord(before, own) : before);
  return async () => {
    const isDue = performance.now() - renewedMs >= own.leaseMs / signsOfLease - lookMs / 2;
    const current = isDue ? await record.change((before) => renewedRecord(before, own)) : await record.read();
    if (isDue) renewedMs = performance.now();
    const isGone = current !== undefined && leaseOf(current, own.id) === undefined;
    return isGone ? record.change(takeAgain) : current;
  };
}

/** Ends the leases that have not been renewed since. */
function withoutLost(record: NebulaRecord, leases: Leases): NebulaRecord {
  const lost = leases.flatMap(([id, { beats }]) => (leaseOf(record, id)?.beats === beats ? id : []));
  return lost.length === 0 ? record : lostLeases(record, lost);
}

interface Claims {
  /** Returns a signal that aborts when the phase belongs to another run. */
  signalOf(id: string): AbortSignal;
  check(record: NebulaRecord): void;
}

/** A record may be older than a claim, so only the second one that shows another owner counts. */
function createClaims({ id: run }: OwnRun): Claims {
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

interface Loop {
  /** Resolves after the next turn. Rejects if turns have failed for too long. */
  next(): Promise<void>;
  stop(): Promise<void>;
}

function repeat(turn: () => Promise<void>, { everyMs, mostErrorMs }: { everyMs: number; mostErrorMs: number }): Loop {
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
      if (performance.now() - goodMs < mostErrorMs) return;
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

/** Returns a function that finds lost runs in a record. A pause of this process, as in a laptop that sleeps, counts as
 *  one look: the others could not be seen during it. */
function createObserver(own: OwnRun, mostStepMs: number): (record: NebulaRecord) => Leases {
  const seen = new Map<string, { readonly beats: number; unseenMs: number }>();
  let lookedMs = performance.now();
  return (record) => {
    const stepMs = Math.min(performance.now() - lookedMs, mostStepMs);
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

/** Whether other runs have claimed phases. */
function hasOtherClaims(record: NebulaRecord, run: string): boolean {
  return Object.values(record.phases).some((each) => each.claimedBy !== run && isClaimed(record, each));
}

/** Whether all other runs share their work, and run the same plan. */
function canShare(record: NebulaRecord, own: OwnRun): boolean {
  const others = otherLeases(record, own.id);
  const shares = ({ remote, plan }: Lease) => remote !== undefined && own.remote !== undefined && plan === own.plan;
  return others.every(([, lease]) => shares(lease));
}

/** Tells the schedule how the phases of others stand. */
function see(record: NebulaRecord, own: OwnRun, schedule: Schedule): void {
  for (const [id, run] of Object.entries(record.phases)) {
    if (run.claimedBy === own.id) continue;
    // A review needs the files of the machine that did the work.
    const isTheirs = isClaimed(record, run) || (run.awaits !== undefined && run.machine?.id !== own.machine.id);
    if (run.state === "completed" || run.state === "failed") schedule.see(id, run.state);
    else if (run.state !== "blocked") schedule.see(id, isTheirs ? "running" : "waiting");
  }
}

interface Teller {
  lost(lease: Lease): void;
  replaced(by: Leases): void;
  /** Reports what changed since the last record. */
  changes(record: NebulaRecord): void;
}

function createTeller(own: OwnRun, onEvent: WatchOptions["onEvent"]): Teller {
  const told = new Map<string, string>();
  return {
    lost({ machine, leaseMs }) {
      const message = `the run on ${machine.name} has given no sign for ${leaseMs / 1000} s: its phases start again`;
      onEvent({ event: "notice", message });
    },
    replaced(by) {
      const names = by.map(([, { machine }]) => machine.name).join(", ");
      const message = `${names} has begun another run of this nebula, so this one ends`;
      onEvent({ event: "notice", message });
    },
    changes(record) {
      for (const [id, { state, machine, claimedBy, attempts }] of Object.entries(record.phases)) {
        const [before, now] = [told.get(id), `${state} ${attempts}`];
        told.set(id, now);
        const isNew = before !== now && (before !== undefined || state === "running");
        const isTheirs = claimedBy !== own.id && machine !== undefined && machine.id !== own.machine.id;
        if (!isNew || !isTheirs || state === "waiting" || state === "blocked") continue;
        onEvent({ event: "elsewhere", phase: id, state, machine: machine.name });
      }
    },
  };
}
