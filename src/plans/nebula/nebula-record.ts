/** One record per nebula in the store, so that a phase's end and its reports are written in one step. */

import { ContextError } from "../../core/errors.ts";
import type { MaintainedStore, Store } from "../../core/store/index.ts";
import {
  type Fields,
  isAmount,
  isPlainObject,
  isText,
  isWhole,
  listOf,
  mapOf,
  objectOf,
  readJson,
  type ShapeCheck,
} from "../../core/text/index.ts";
import type { Machine, ProcessIdentity } from "../../host/index.ts";
import { type AgentUsage, isSessionId, type SessionTotals } from "../agent/index.ts";
import {
  emptyFabric,
  type Fabric,
  type FabricKind,
  type FabricState,
  type NoteKind,
  noteKinds,
  type PhaseState,
  phaseStates,
} from "../compose/index.ts";

/** What the store keeps of a nebula: the state of its phases and its fabric. */
export interface NebulaRecord {
  readonly version: 1;
  /** Name and directory are empty if a person added an entry before the first run. */
  readonly name: string;
  readonly directory: string;
  /** How far each phase has come, by its id. */
  readonly phases: Readonly<Record<string, PhaseRun>>;
  readonly fabric: Fabric;
  /** The git remote of a run that was shared. Completed work may be there only. */
  readonly remote?: string | undefined;
  /** The runs that work on the nebula now, by their ids. Absent if no run does. */
  readonly leases?: Readonly<Record<string, Lease>> | undefined;
}

/** What a run writes about itself while it works, so that other machines know that it is alive. */
export interface Lease {
  readonly machine: Machine;
  /** The folder and store of the run, as a name. On one machine, only one run at a time has it. */
  readonly place: string;
  /** Useful only on its own machine. */
  readonly process: ProcessIdentity;
  /** How often the lease was renewed. A run whose count does not grow for `leaseMs` is lost, whatever the clocks say. */
  readonly beats: number;
  readonly leaseMs: number;
  /** When it was last renewed, by the clock of its machine. Only for people. */
  readonly renewed: string;
  /** The git remote of a run that shares its work. Absent for a run that works alone. */
  readonly remote?: string | undefined;
  /** A hash of the plan that it runs. */
  readonly plan: string;
}

export interface PhaseRun {
  readonly title: string;
  readonly state: PhaseState;
  readonly attempts: number;
  readonly promptTokens: number;
  readonly seconds: number;
  readonly error?: string | undefined;
  /** Folder of the last attempt. */
  readonly attemptFolder?: string | undefined;
  /** `review` if its agent is done and a person has not approved the work yet. Then it is waiting. `merge` if its work
   *  could not be merged. A person may merge it. */
  readonly awaits?: "review" | "merge" | undefined;
  /** The tree or commit in git from which the phase began. What differs from it is the work of the phase. */
  readonly base?: string | undefined;
  /** The session of the last attempt, which the next one continues, and what it had used. */
  readonly session?: AgentSession | undefined;
  /** What was wrong with the last attempt, for the prompt of the next one. */
  readonly feedback?: string | undefined;
  /** How many attempts there were since a person last started or resumed the phase. */
  readonly cycles?: number | undefined;
  /** Ids of the claims that the last attempt made for its scope. */
  readonly scopeClaims?: readonly string[] | undefined;
  /** How the last attempt ended, if it did not complete although its agent ended by itself: `denied`, `unchanged`,
   *  `over_budget`. */
  readonly outcome?: string | undefined;
  /** The files of its scope at the start of its first attempt, as a hash. */
  readonly scopeState?:
    | {
        readonly scope: readonly string[];
        /** Where the agent works. */
        readonly folder?: string | undefined;
        readonly hash: string;
      }
    | undefined;
  /** The known agent and the model of the last attempt, which say how to read its output. */
  readonly agent?: string | undefined;
  readonly model?: string | undefined;
  /** The most that the last attempt may cost, in dollars. */
  readonly budgetUsd?: number | undefined;
  /** The run that has taken the phase, in `leases`. Absent if no run has. */
  readonly claimedBy?: string | undefined;
  /** Where the last attempt ran. Its folder and its processes are on that machine only. */
  readonly machine?: Machine | undefined;
  /** The attempt of a lost run. Its work may have been merged before the run could record it. */
  readonly lost?: LostAttempt | undefined;
  /** All attempts that have ended, the oldest first. */
  readonly history?: readonly AttemptRecord[] | undefined;
}

export interface AgentSession extends SessionTotals {
  readonly id: string;
}

export interface LostAttempt {
  /** The name of its folder. */
  readonly attempt: string;
  readonly machine: string;
}

/** One attempt that has ended. */
export interface AttemptRecord {
  readonly attempt: number;
  readonly outcome: string;
  readonly seconds: number;
  readonly promptTokens: number;
  readonly usage?: AgentUsage | undefined;
  /** With what its reviewer cost. */
  readonly costUsd?: number | undefined;
  /** How its checks ended. Absent if there are none. */
  readonly checks?: "passed" | "failed" | undefined;
}

export interface OpenNebulaRecord {
  /** Returns undefined if nothing was ever written. */
  read(): Promise<NebulaRecord | undefined>;
  /**
   * Reads, changes and writes in one step without other processes between. Starts from an empty record.
   * `change` must be quick and may run more than once. Nothing is written if it returns the same object or throws.
   */
  change(change: (record: NebulaRecord) => NebulaRecord): Promise<NebulaRecord>;
}

export const recordCollection = "nebula";

/**
 * Opens the record of the nebula with this key. Reading throws if the record is damaged or was written by a newer
 * version. The record then stays unchanged.
 *
 * @example
 * ```ts
 * import { addToFabric } from "plimsoll/compose";
 * import { loadNebula, nebulaKey, openNebulaRecord } from "plimsoll/nebula";
 * import { openSqliteStore } from "plimsoll/store/sqlite";
 *
 * const store = await openSqliteStore({ path: "state.db" });
 * const { nebula } = await loadNebula("plan");
 * const record = openNebulaRecord(store, await nebulaKey(nebula!));
 * await record.change((current) => {
 *   const report = { notes: [{ text: "The staging server is down until Friday" }] };
 *   return { ...current, fabric: addToFabric(current.fabric, report, { from: "person" }).fabric };
 * });
 * await store.close();
 * ```
 */
export function openNebulaRecord(store: Store, key: string): OpenNebulaRecord {
  // Mostly only one run writes, so the last record need not be parsed again.
  let last: { readonly text: string; readonly record: NebulaRecord } | undefined;
  const parse = (text: string): NebulaRecord => {
    if (last?.text !== text) last = { text, record: parseRecord(text, key) };
    return last.record;
  };
  const write = createWriter();
  return {
    async read() {
      const stored = await store.get(recordCollection, key);
      return stored === undefined ? undefined : parse(stored.value);
    },
    async change(change) {
      let result: NebulaRecord = emptyRecord;
      const { value } = await store.update(recordCollection, key, (text) => {
        const before = text === undefined ? emptyRecord : parse(text);
        result = change(before);
        return result === before && text !== undefined ? text : write(result);
      });
      last = { text: value, record: result };
      return result;
    },
  };
}

/** Returns a function that writes records as JSON. A change keeps nearly all objects of the last record, and a plan can
 *  have thousands of phases, so it remembers the text of each phase and each entry of the fabric. */
function createWriter(): (record: NebulaRecord) => string {
  const texts = new WeakMap<object, string>();
  const write = (value: object): string => {
    const text = texts.get(value) ?? JSON.stringify(value);
    texts.set(value, text);
    return text;
  };
  /** Writes an object with some fields, and more fields that are already written. */
  const writeWith = (some: object, fields: readonly string[]) =>
    `${JSON.stringify(some).slice(0, -1)},${fields.join(",")}}`;
  return ({ phases, fabric, ...head }) => {
    const { entanglements, claims, discoveries, notes, ...rest } = fabric;
    const runs = Object.entries(phases).map(([id, run]) => `${JSON.stringify(id)}:${write(run)}`);
    const lists = Object.entries({ entanglements, claims, discoveries, notes }).map(
      ([kind, list]) => `"${kind}":[${list.map(write).join(",")}]`,
    );
    return writeWith(head, [`"phases":{${runs.join(",")}}`, `"fabric":${writeWith(rest, lists)}`]);
  };
}

const emptyRecord: NebulaRecord = { version: 1, name: "", directory: "", phases: {}, fabric: emptyFabric };

/** Returns the run of a phase. An id may be `constructor`, so this checks for an own property. */
export function runOf({ phases }: Pick<NebulaRecord, "phases">, id: string): PhaseRun | undefined {
  return Object.hasOwn(phases, id) ? phases[id] : undefined;
}

/** Changes the runs of all phases. */
export function mapRuns(record: NebulaRecord, map: (run: PhaseRun, id: string) => PhaseRun): NebulaRecord {
  const phases = Object.entries(record.phases).map(([id, run]) => [id, map(run, id)]);
  return { ...record, phases: Object.fromEntries(phases) };
}

/**
 * Returns the fabric of a record together with the states of its phases, as `renderFabric` takes it.
 *
 * @example
 * ```ts
 * import { renderFabric } from "plimsoll/compose";
 * import { fabricOf, loadNebula, nebulaKey, openNebulaRecord } from "plimsoll/nebula";
 * import { openSqliteStore } from "plimsoll/store/sqlite";
 *
 * const store = await openSqliteStore({ path: "state.db" });
 * const { nebula } = await loadNebula("plan");
 * const record = await openNebulaRecord(store, await nebulaKey(nebula!)).read();
 * if (record !== undefined) console.log(renderFabric(fabricOf(record)));
 * await store.close();
 * ```
 */
export function fabricOf({ phases, fabric }: NebulaRecord): FabricState {
  const { entanglements, claims, discoveries, notes } = fabric;
  return {
    phases: Object.entries(phases).map(([id, { title, state }]) => ({ id, title, state })),
    entanglements,
    claims,
    discoveries,
    notes,
  };
}

/** Parses a record and checks every field. */
function parseRecord(text: string, key: string): NebulaRecord {
  const record = readJson(text, isPlainObject);
  if (Number(record?.version) > 1) {
    throw new ContextError("store_newer", `the state of nebula ${key} was written by a newer plimsoll`, {
      hint: "Use that version, or another store.",
    });
  }
  const problem = findProblem(record);
  if (problem === undefined) return record as unknown as NebulaRecord;
  throw new ContextError("store_corrupt", `the state of nebula ${key} cannot be read: ${problem}`, {
    hint: "The store was not changed. Name another file with --store to start again.",
  });
}

/** A count that later counts can start from. */
const isCount: ShapeCheck<number> = (value): value is number => isWhole(value) && value <= 1e12;

const isMachine: ShapeCheck<Machine> = objectOf({ id: isText, name: isText });

const isLease: ShapeCheck<Lease> = objectOf(
  {
    machine: isMachine,
    place: isText,
    process: objectOf({ pid: isCount }, { started: isText }) as ShapeCheck<ProcessIdentity>,
    beats: isCount,
    leaseMs: isCount,
    renewed: (value): value is string => isText(value) && !Number.isNaN(Date.parse(value)),
    plan: isText,
  },
  { remote: isText },
);

const isUsage: ShapeCheck<AgentUsage> = objectOf({
  inputTokens: isAmount,
  cachedTokens: isAmount,
  outputTokens: isAmount,
});

const isAttempt: ShapeCheck<AttemptRecord> = objectOf(
  { attempt: isCount, outcome: isText, seconds: isAmount, promptTokens: isAmount },
  {
    usage: isUsage,
    costUsd: isAmount,
    checks: (value): value is "passed" | "failed" => value === "passed" || value === "failed",
  },
);

const isPhaseRun: ShapeCheck<PhaseRun> = objectOf(
  {
    title: isText,
    state: (value): value is PhaseState => phaseStates.includes(value as PhaseState),
    attempts: isCount,
    promptTokens: isAmount,
    seconds: isAmount,
  },
  {
    error: isText,
    attemptFolder: isText,
    awaits: (value): value is "review" | "merge" => value === "review" || value === "merge",
    base: isText,
    session: objectOf({ id: isSessionId }, { usage: isUsage, costUsd: isAmount }) as ShapeCheck<AgentSession>,
    feedback: isText,
    cycles: isCount,
    scopeClaims: listOf(isText),
    outcome: isText,
    scopeState: objectOf({ scope: listOf(isText), hash: isText }, { folder: isText }),
    agent: isText,
    model: isText,
    budgetUsd: isAmount,
    claimedBy: isText,
    machine: isMachine,
    lost: objectOf({ attempt: isText, machine: isText }),
    history: listOf(isAttempt),
  },
);

const entryShapes: { readonly [Kind in FabricKind]: ShapeCheck<Fabric[Kind][number]> } = {
  entanglements: objectOf(
    { id: isText, package: isText, kind: isText, signature: isText, from: isText },
    { file: isText },
  ),
  claims: objectOf({ id: isText, path: isText, owner: isText }),
  discoveries: objectOf(
    {
      id: isText,
      kind: isText,
      detail: isText,
      from: isText,
      resolved: (value): value is boolean => typeof value === "boolean",
    },
    { affects: isText, date: isText },
  ),
  notes: objectOf({
    id: isText,
    kind: (value): value is NoteKind => noteKinds.includes(value as NoteKind),
    text: isText,
    from: isText,
  }),
};

/** Returns the first problem of a record. */
function findProblem(record: Fields | undefined): string | undefined {
  if (record?.version !== 1) return "it is not a record of version 1";
  const { name, directory, phases, fabric, leases = {}, remote = "" } = record;
  if (![name, directory, remote].every(isText)) return "name or directory is not a text";
  if (!isPlainObject(phases)) return "phases is not an object";
  const run = Object.entries(phases).find(([, each]) => !isPhaseRun(each));
  if (run !== undefined) return `phase ${JSON.stringify(run[0])} is damaged`;
  if (!mapOf(isLease)(leases)) return "leases is damaged";
  if (!isPlainObject(fabric) || !isPlainObject(fabric.lastIds)) return "fabric is damaged";
  for (const [kind, isEntry] of Object.entries(entryShapes)) {
    const list = fabric[kind];
    if (!Array.isArray(list) || !isCount(fabric.lastIds[kind])) return `fabric.${kind} is damaged`;
    const index = list.findIndex((entry) => !isEntry(entry));
    if (index !== -1) return `fabric.${kind}[${index}] is damaged`;
  }
  return undefined;
}

const answerCollection = "nebula-answers";

/** The nebula's key, and the id of a phase. */
type AnswerPlace = Readonly<Record<"key" | "phase", string>>;

/** Stores the answer of a phase for the phases that depend on it, or deletes it if it is undefined. */
export async function writeAnswer(
  store: Pick<Store, "put" | "delete">,
  { key, phase }: AnswerPlace,
  answer: string | undefined,
): Promise<void> {
  if (answer === undefined) await store.delete(answerCollection, `${key}/${phase}`);
  else await store.put(answerCollection, `${key}/${phase}`, answer);
}

/**
 * Returns the whole last answer of a phase, or undefined if there is none. The answer may come from an earlier run if
 * the phase has not completed in the last one.
 *
 * @example
 * ```ts
 * import { loadNebula, nebulaKey, readAnswer } from "plimsoll/nebula";
 * import { openSqliteStore } from "plimsoll/store/sqlite";
 *
 * const store = await openSqliteStore({ path: "state.db" });
 * const { nebula } = await loadNebula("plan");
 * console.log(await readAnswer(store, { key: await nebulaKey(nebula!), phase: "model" }));
 * await store.close();
 * ```
 */
export async function readAnswer(store: Pick<Store, "get">, { key, phase }: AnswerPlace): Promise<string | undefined> {
  return (await store.get(answerCollection, `${key}/${phase}`))?.value;
}

/** A nebula whose state is deleted, or kept because it is not finished. */
export interface PrunedNebula {
  readonly key: string;
  readonly name: string;
  readonly isFinished: boolean;
}

/** Deletes the state of finished nebulas if it has not changed since `before`, and the answers of their phases. Keeps
 *  unfinished ones, which can be resumed, and returns them too. With `dryRun` deletes nothing. */
export async function pruneNebulas(
  store: MaintainedStore,
  { before, dryRun }: { readonly before: number; readonly dryRun: boolean },
): Promise<PrunedNebula[]> {
  const pruned: PrunedNebula[] = [];
  for (const { key, written, revision } of await store.listFacts(recordCollection)) {
    if (written >= before) continue;
    const record = await openNebulaRecord(store, key)
      .read()
      .catch(() => undefined);
    const isFinished = record !== undefined && Object.values(record.phases).every(({ state }) => state === "completed");
    pruned.push({ key, name: record?.name || key, isFinished });
    if (dryRun || !isFinished) continue;
    await store.delete(recordCollection, key, { expectedRevision: revision });
    for (const answer of await store.listFacts(answerCollection, { prefix: `${key}/` })) {
      await store.delete(answerCollection, answer.key);
    }
  }
  return pruned;
}
