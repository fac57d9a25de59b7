import { type Fabric, type FabricKind, noteKinds, phaseStates } from "../../../compose/index.ts";
import { ContextError } from "../../../errors.ts";
import type { NebulaRecord, PhaseRun } from "./nebula-record.ts";

/** The record in a text of the store, looked at down to every field: what comes out can be rendered and changed without a surprise. */
export function parseRecord(text: string, key: string): NebulaRecord {
  const record = parseJson(text);
  if (isObject(record) && Number(record.version) > 1) {
    throw new ContextError("store_newer", `the state of nebula ${key} was written by a newer plimsoll`, {
      hint: "Use that version, or another store.",
    });
  }
  const problem = problemIn(record);
  if (problem === undefined) return record as unknown as NebulaRecord;
  throw new ContextError("store_corrupt", `the state of nebula ${key} cannot be read: ${problem}`, {
    hint: "It was left as it is, and so was all else in the store. Name another file with --store to begin again.",
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
/** JSON has no infinity, so that one which was written as 1e999 could never be written again. */
const amount: Check = (value) => Number.isFinite(value) && Number(value) >= 0;
/** Counts go on from here. */
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

const runChecks: Checks<PhaseRun> = {
  title: text,
  state: oneOf(phaseStates),
  attempts: whole,
  promptTokens: amount,
  seconds: amount,
  error: optional(text),
  attemptFolder: optional(text),
  scopeClaims: optional(texts),
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

/** Where it stops being a record. */
function problemIn(record: unknown): string | undefined {
  if (!isObject(record) || record.version !== 1) return "it is no record of version 1";
  const { name, directory, phases, fabric } = record;
  if (!text(name) || !text(directory)) return "name or directory is no text";
  if (!isObject(phases)) return "phases is no object";
  const run = Object.entries(phases).find(([, each]) => !matches(each, runChecks));
  if (run !== undefined) return `phase ${JSON.stringify(run[0])} is damaged`;
  if (!isObject(fabric) || !isObject(fabric.lastIds)) return "fabric is damaged";
  const { lastIds } = fabric;
  return Object.entries(entryChecks)
    .map(
      ([kind, checks]) =>
        problemInList(kind, fabric[kind], lastIds[kind]) ?? firstDamaged(kind, fabric[kind], checks),
    )
    .find((problem) => problem !== undefined);
}

function problemInList(kind: string, list: unknown, lastId: unknown): string | undefined {
  return Array.isArray(list) && whole(lastId) ? undefined : `fabric.${kind} is damaged`;
}

function firstDamaged(
  kind: string,
  list: unknown,
  checks: Readonly<Record<string, Check>>,
): string | undefined {
  const index = (list as readonly unknown[]).findIndex((entry) => !matches(entry, checks));
  return index === -1 ? undefined : `fabric.${kind}[${index}] is damaged`;
}

function matches(value: unknown, checks: Readonly<Record<string, Check>>): boolean {
  return isObject(value) && Object.entries(checks).every(([name, check]) => check(value[name]));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
