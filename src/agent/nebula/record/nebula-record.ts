/** What the store keeps of a nebula: one record, so that a phase's end and what it reported are written in one step. */
import { emptyFabric, type Fabric, type FabricState, type PhaseState } from "../../../compose/index.ts";
import type { Store } from "../../../store/index.ts";
import { parseRecord } from "./parse-record.ts";

export interface NebulaRecord {
  readonly version: 1;
  /** Both empty until somebody who knows them writes: the record may begin with an entry of a person. */
  readonly name: string;
  readonly directory: string;
  /** By id of the phase. */
  readonly phases: Readonly<Record<string, PhaseRun>>;
  readonly fabric: Fabric;
}

export interface PhaseRun {
  readonly title: string;
  readonly state: PhaseState;
  readonly attempts: number;
  readonly promptTokens: number;
  readonly seconds: number;
  readonly error?: string | undefined;
  /** Of the last attempt. */
  readonly attemptFolder?: string | undefined;
  /** Ids of the claims that the last attempt made of its scope. */
  readonly scopeClaims?: readonly string[] | undefined;
}

export interface OpenNebulaRecord {
  /** Undefined for a nebula that nothing was ever written of. */
  read(): Promise<NebulaRecord | undefined>;
  /**
   * Reads, changes and writes as one step that no other process can come between, from an empty record where there is none.
   * `change` must be quick and may run more than once. Nothing is written where it gives back the same object, or throws.
   */
  change(change: (record: NebulaRecord) => NebulaRecord): Promise<NebulaRecord>;
}

const collection = "nebula";

/** The record of the nebula with that key. One that is damaged, or of a newer version, is refused and stays as it is. */
export function openNebulaRecord(store: Store, key: string): OpenNebulaRecord {
  // Of a run only the run itself writes most of the time: what it has at hand need not be parsed again.
  let last: { readonly text: string; readonly record: NebulaRecord } | undefined;
  const parse = (text: string): NebulaRecord => {
    if (last?.text !== text) last = { text, record: parseRecord(text, key) };
    return last.record;
  };
  return {
    async read() {
      const stored = await store.get(collection, key);
      return stored === undefined ? undefined : parse(stored.value);
    },
    async change(change) {
      let result: NebulaRecord = emptyRecord;
      const { value } = await store.update(collection, key, (text) => {
        const before = text === undefined ? emptyRecord : parse(text);
        result = change(before);
        return result === before && text !== undefined ? text : JSON.stringify(result);
      });
      last = { text: value, record: result };
      return result;
    },
  };
}

const emptyRecord: NebulaRecord = { version: 1, name: "", directory: "", phases: {}, fabric: emptyFabric };

/** The run of a phase. An id may be a name that every object knows: `constructor`. */
export function runOf({ phases }: Pick<NebulaRecord, "phases">, id: string): PhaseRun | undefined {
  return Object.hasOwn(phases, id) ? phases[id] : undefined;
}

/** The fabric as it is shown and rendered: the phases are those of the runs. */
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
