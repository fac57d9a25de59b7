/** One record per nebula in the store, so that a phase's end and its reports are written in one step. */

import { ContextError } from "../../core/errors.ts";
import type { MaintainedStore, Store } from "../../core/store/index.ts";
import { isPlainObject } from "../../core/text/index.ts";
import type { Machine, ProcessIdentity } from "../../host/index.ts";
import type { AgentUsage } from "../agent/index.ts";
import {
  emptyFabric,
  type Fabric,
  type FabricKind,
  type FabricState,
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
  /** The last run of each phase, by its id. */
  readonly phases: Readonly<Record<string, PhaseRun>>;
  readonly fabric: Fabric;
  /** The git remote of a run that was shared. Completed work may be there only. */
  readonly remote?: string | undefined;
  /** The runs that work on the nebula now, by their ids. Absent if no run does. */
  readonly leases?: Readonly<Record<string, Lease>> | undefined;
}

/** What a run says of itself while it works. Other machines see by it that the run lives. */
export interface Lease {
  readonly machine: Machine;
  /** The folder and store of the run, as a name. On one machine, only one run at a time has it. */
  readonly place: string;
  /** Means something on its own machine only. */
  readonly process: ProcessIdentity;
  /** Counts signs of life. A run whose count does not grow for `leaseMs` is lost, whatever the clocks say. */
  readonly beats: number;
  readonly leaseMs: number;
  /** When the last sign came, by the clock of its machine. It is for people. */
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
  /** `review` if its agent is done and a person has not approved the work yet. Then it is waiting. */
  readonly awaits?: "review" | undefined;
  /** Ids of the claims that the last attempt made for its scope. */
  readonly scopeClaims?: readonly string[] | undefined;
  /** How the last attempt ended, if it did not complete although its agent ended by itself: `denied`, `unchanged`,
   *  `over_budget`. */
  readonly outcome?: string | undefined;
  /** The files of its scope at the start of its first attempt, as a hash. */
  readonly scopeState?: ScopeState | undefined;
  /** The known agent and the model of the last attempt, which say how to read its output. */
  readonly agent?: string | undefined;
  readonly model?: string | undefined;
  /** The most that the last attempt may cost, in dollars. */
  readonly budgetUsd?: number | undefined;
  /** The run that has taken the phase, in `leases`. Absent if no run has. */
  readonly claimedBy?: string | undefined;
  /** Where the last attempt ran. Its folder and its processes are on that machine only. */
  readonly machine?: Machine | undefined;
  /** The attempt of a lost run. Its work may have been merged before the run could say so. */
  readonly lost?: LostAttempt | undefined;
  /** All attempts that have ended, the oldest first. */
  readonly history?: readonly AttemptRecord[] | undefined;
}

export interface LostAttempt {
  /** The name of its folder. */
  readonly attempt: string;
  readonly machine: string;
}

interface ScopeState {
  readonly scope: readonly string[];
  /** Where the agent works. */
  readonly folder?: string | undefined;
  readonly hash: string;
}

/** One attempt that has ended. */
export interface AttemptRecord {
  readonly attempt: number;
  readonly outcome: string;
  readonly seconds: number;
  readonly promptTokens: number;
  readonly usage?: AgentUsage | undefined;
  readonly costUsd?: number | undefined;
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
  const textOf = (value: object): string => {
    const text = texts.get(value) ?? JSON.stringify(value);
    texts.set(value, text);
    return text;
  };
  const listOf = (list: readonly object[]) => `[${list.map(textOf).join(",")}]`;
  return ({ phases, fabric, ...head }) => {
    const { entanglements, claims, discoveries, notes, ...rest } = fabric;
    const lists = Object.entries({ entanglements, claims, discoveries, notes });
    const runs = Object.entries(phases).map(([id, run]) => `${JSON.stringify(id)}:${textOf(run)}`);
    return joined(head, [
      `"phases":{${runs.join(",")}}`,
      `"fabric":${joined(
        rest,
        lists.map(([kind, list]) => `"${kind}":${listOf(list)}`),
      )}`,
    ]);
  };
}

/** Writes an object with some fields, and more whose text is known. */
function joined(some: object, fields: readonly string[]): string {
  return `${JSON.stringify(some).slice(0, -1)},${fields.join(",")}}`;
}

const emptyRecord: NebulaRecord = { version: 1, name: "", directory: "", phases: {}, fabric: emptyFabric };

/** Returns the run of a phase. An id may be `constructor`, so this checks for an own property. */
export function runOf({ phases }: Pick<NebulaRecord, "phases">, id: string): PhaseRun | undefined {
  return Object.hasOwn(phases, id) ? phases[id] : undefined;
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
  const record = parseJson(text);
  if (isPlainObject(record) && Number(record.version) > 1) {
    throw new ContextError("store_newer", `the state of nebula ${key} was written by a newer plimsoll`, {
      hint: "Use that version, or another store.",
    });
  }
  const problem = problemIn(record);
  if (problem === undefined) return record as unknown as NebulaRecord;
  throw new ContextError("store_corrupt", `the state of nebula ${key} cannot be read: ${problem}`, {
    hint: "The store was not changed. Name another file with --store to start again.",
  });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

type Check = (value: unknown) => boolean;

const text: Check = (value) => typeof value === "string";
const texts: Check = (value) => Array.isArray(value) && value.every(text);
const flag: Check = (value) => typeof value === "boolean";
/** JSON cannot store infinity, which 1e999 becomes. */
const amount: Check = (value) => Number.isFinite(value) && Number(value) >= 0;
/** Later counts start here. */
const whole: Check = (value) => Number.isSafeInteger(value) && amount(value) && Number(value) <= mostCount;
const mostCount = 1e12;
const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);
const oneOf =
  (values: readonly string[]): Check =>
  (value) =>
    values.includes(value as string);

type Checks<Shape> = { readonly [Name in keyof Required<Shape>]: Check };
type EntryOf<Kind extends FabricKind> = Fabric[Kind][number];

const machineChecks: Checks<Machine> = { id: text, name: text };
const leaseChecks: Checks<Lease> = {
  machine: (value) => matches(value, machineChecks),
  place: text,
  process: (value) => matches(value, { pid: whole, started: optional(text) }),
  beats: whole,
  leaseMs: whole,
  renewed: (value) => text(value) && !Number.isNaN(Date.parse(value as string)),
  remote: optional(text),
  plan: text,
};

const runChecks: Checks<PhaseRun> = {
  title: text,
  state: oneOf(phaseStates),
  attempts: whole,
  promptTokens: amount,
  seconds: amount,
  error: optional(text),
  attemptFolder: optional(text),
  awaits: optional(oneOf(["review"])),
  scopeClaims: optional(texts),
  outcome: optional(text),
  scopeState: optional((value) => matches(value, { scope: texts, folder: optional(text), hash: text })),
  agent: optional(text),
  model: optional(text),
  budgetUsd: optional(amount),
  claimedBy: optional(text),
  machine: optional((value) => matches(value, machineChecks)),
  lost: optional((value) => matches(value, { attempt: text, machine: text })),
  history: optional((value) => Array.isArray(value) && value.every((each) => matches(each, attemptChecks))),
};

const usageChecks: Checks<AgentUsage> = { inputTokens: amount, cachedTokens: amount, outputTokens: amount };
const attemptChecks: Checks<AttemptRecord> = {
  attempt: whole,
  outcome: text,
  seconds: amount,
  promptTokens: amount,
  usage: optional((value) => matches(value, usageChecks)),
  costUsd: optional(amount),
};

const entryChecks: { readonly [Kind in FabricKind]: Checks<EntryOf<Kind>> } = {
  entanglements: { id: text, package: text, kind: text, signature: text, file: optional(text), from: text },
  claims: { id: text, path: text, owner: text },
  discoveries: {
    id: text,
    kind: text,
    detail: text,
    from: text,
    affects: optional(text),
    date: optional(text),
    resolved: flag,
  },
  notes: { id: text, kind: oneOf(noteKinds), text, from: text },
};

/** Returns the first problem of a record. */
function problemIn(record: unknown): string | undefined {
  if (!isPlainObject(record) || record.version !== 1) return "it is not a record of version 1";
  const { name, directory, phases, fabric, leases = {}, remote = "" } = record;
  if (![name, directory, remote].every(text)) return "name or directory is not a text";
  if (!isPlainObject(phases)) return "phases is not an object";
  const run = Object.entries(phases).find(([, each]) => !matches(each, runChecks));
  if (run !== undefined) return `phase ${JSON.stringify(run[0])} is damaged`;
  const isLease = (value: unknown) => matches(value, leaseChecks);
  if (!isPlainObject(leases) || !Object.values(leases).every(isLease)) return "leases is damaged";
  if (!isPlainObject(fabric) || !isPlainObject(fabric.lastIds)) return "fabric is damaged";
  const { lastIds } = fabric;
  return Object.entries(entryChecks)
    .map(
      ([kind, checks]) => problemInList(kind, fabric[kind], lastIds[kind]) ?? firstDamaged(kind, fabric[kind], checks),
    )
    .find((problem) => problem !== undefined);
}

function problemInList(kind: string, list: unknown, lastId: unknown): string | undefined {
  return Array.isArray(list) && whole(lastId) ? undefined : `fabric.${kind} is damaged`;
}

function firstDamaged(kind: string, list: unknown, checks: Readonly<Record<string, Check>>): string | undefined {
  const index = (list as readonly unknown[]).findIndex((entry) => !matches(entry, checks));
  return index === -1 ? undefined : `fabric.${kind}[${index}] is damaged`;
}

function matches(value: unknown, checks: Readonly<Record<string, Check>>): boolean {
  return isPlainObject(value) && Object.entries(checks).every(([name, check]) => check(value[name]));
}

const answerCollection = "nebula-answers";

export interface AnswerPlace {
  /** The nebula's. */
  readonly key: string;
  readonly phase: string;
}

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

/** Deletes the state of finished nebulas that nobody wrote since `before`, with the answers of their phases. Keeps
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
