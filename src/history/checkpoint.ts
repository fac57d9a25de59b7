/** The state of a trimmer as plain JSON: with it and the same history, the same bytes go out after a restart. */
import { ContextError } from "../errors.ts";
import type { Store } from "../store/index.ts";
import { isFields } from "../text/index.ts";
import type { CalibratorSnapshot } from "../tokens/index.ts";
import type { Ledger } from "./ledger.ts";
import type { PolicyName, PolicyState } from "./policies/policy.ts";

export interface Checkpoint {
  readonly version: 1;
  readonly policy: PolicyName;
  readonly ledger: Ledger;
  readonly state: PolicyState;
  readonly calibrator?: CalibratorSnapshot | undefined;
}

/** Refuses what is no checkpoint, with the place where it stops being one. */
export function checkCheckpoint(value: unknown): Checkpoint {
  const { version, ledger, state } = objectAt(value, "checkpoint");
  // Copying or writing it would exceed the stack.
  if (!isFields(value)) throw broken("checkpoint", "is nested too deeply");
  if (version !== 1) throw broken("checkpoint.version", `is ${JSON.stringify(version)}, and 1 is known`);
  const { epochs } = objectAt(ledger, "checkpoint.ledger");
  for (const [index, epoch] of listAt(epochs, "checkpoint.ledger.epochs").entries()) {
    checkEpoch(epoch, `checkpoint.ledger.epochs[${index}]`);
  }
  const { boundary } = objectAt(state, "checkpoint.state");
  if (boundary !== undefined) wholeAt(boundary, "checkpoint.state.boundary");
  return value as unknown as Checkpoint;
}

function checkEpoch(value: unknown, path: string): void {
  const { boundary, collapsed, chain, entries } = objectAt(value, path);
  wholeAt(boundary, `${path}.boundary`);
  wholeAt(collapsed, `${path}.collapsed`);
  stringAt(chain, `${path}.chain`);
  for (const [index, entry] of listAt(entries, `${path}.entries`).entries()) {
    checkEntry(entry, `${path}.entries[${index}]`);
  }
}

function checkEntry(value: unknown, path: string): void {
  const { id, message, chain, part, decision, until } = objectAt(value, path);
  if (!/^r\d+$/.test(stringAt(id, `${path}.id`))) throw broken(`${path}.id`, "is no recall id");
  wholeAt(message, `${path}.message`);
  stringAt(chain, `${path}.chain`);
  if (part !== -1) wholeAt(part, `${path}.part`);
  checkDecision(objectAt(decision, `${path}.decision`), `${path}.decision`);
  if (until === undefined) return;
  const anchor = objectAt(until, `${path}.until`);
  wholeAt(anchor.message, `${path}.until.message`);
  stringAt(anchor.chain, `${path}.until.chain`);
}

function checkDecision(decision: Record<string, unknown>, path: string): void {
  switch (decision.action) {
    case "drop":
      return;
    case "replace":
    case "stub":
      stringAt(decision.text, `${path}.text`);
      return;
    case "shorten":
      wholeAt(decision.head, `${path}.head`);
      wholeAt(decision.tail, `${path}.tail`);
      return;
    default:
      throw broken(`${path}.action`, "is no action of a ledger");
  }
}

function objectAt(value: unknown, path: string): Record<string, unknown> {
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw broken(path, "must be an object");
}

function listAt(value: unknown, path: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw broken(path, "must be an array");
}

function stringAt(value: unknown, path: string): string {
  if (typeof value === "string") return value;
  throw broken(path, "must be a string");
}

function wholeAt(value: unknown, path: string): void {
  if (!(Number.isSafeInteger(value) && (value as number) >= 0))
    throw broken(path, "must be a whole number of at least 0");
}

function broken(path: string, problem: string): ContextError {
  return new ContextError("invalid_argument", `${path} ${problem}`, {
    hint: "Start without the checkpoint: the history is trimmed anew, at the price of one cache break.",
  });
}

/** By the session's id. */
export const checkpointCollection = "history/checkpoints";

export async function loadCheckpoint(store: Store, sessionId: string): Promise<Checkpoint | undefined> {
  const record = await store.get(checkpointCollection, sessionId);
  try {
    return record === undefined ? undefined : checkCheckpoint(JSON.parse(record.value));
  } catch (cause) {
    throw new ContextError("store_corrupt", `the checkpoint of session ${sessionId} cannot be read`, {
      hint: `Delete it with plimsoll session rm ${sessionId}: the history is trimmed anew, at the price of one cache break.`,
      cause,
    });
  }
}

export async function saveCheckpoint(store: Store, sessionId: string, checkpoint: Checkpoint): Promise<void> {
  await store.put(checkpointCollection, sessionId, JSON.stringify(checkpoint));
}
