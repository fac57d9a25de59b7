/** The state of a trimmer as plain JSON: with it and the same history, the same bytes go out after a restart. */
import { ContextError } from "../errors.ts";
import type { Store } from "../store/index.ts";
import { isFields } from "../text/index.ts";
import type { CalibratorSnapshot } from "../tokens/index.ts";
import type { Ledger } from "./ledger.ts";
import type { PolicyName } from "./policies/policy.ts";

export interface Checkpoint {
  readonly version: 2;
  readonly policy: PolicyName;
  readonly ledger: Ledger;
  readonly calibrator?: CalibratorSnapshot | undefined;
}

/** Refuses what is no checkpoint, with the place where it stops being one. Version 1 does not say which history an epoch was decided on: its
 *  epochs are left out, and the history is trimmed anew. */
export function checkCheckpoint(value: unknown): Checkpoint {
  const checkpoint = objectAt(value, "checkpoint");
  // Copying or writing it would exceed the stack.
  if (!isFields(value)) throw broken("checkpoint", "is nested too deeply");
  const { version } = checkpoint;
  if (version !== 1 && version !== 2)
    throw broken("checkpoint.version", `is ${JSON.stringify(version)}, and 2 is known`);
  const { epochs } = objectAt(checkpoint.ledger, "checkpoint.ledger");
  const list = listAt(epochs, "checkpoint.ledger.epochs");
  if (version === 1) return { ...(value as unknown as Checkpoint), version: 2, ledger: { epochs: [] } };
  for (const [index, epoch] of list.entries()) checkEpoch(epoch, `checkpoint.ledger.epochs[${index}]`);
  return value as unknown as Checkpoint;
}

function checkEpoch(value: unknown, path: string): void {
  const { boundary, collapsed, at, reach, after, like, entries } = objectAt(value, path);
  wholeAt(boundary, `${path}.boundary`);
  wholeAt(collapsed, `${path}.collapsed`);
  checkAnchor(at, `${path}.at`);
  checkAnchor(reach, `${path}.reach`);
  if (after !== undefined) wholeAt(after, `${path}.after`);
  if (like !== undefined) wholeAt(like, `${path}.like`);
  for (const [index, entry] of listAt(entries, `${path}.entries`).entries()) {
    checkEntry(entry, `${path}.entries[${index}]`);
  }
}

function checkAnchor(value: unknown, path: string): void {
  const { message, chain } = objectAt(value, path);
  wholeAt(message, `${path}.message`);
  stringAt(chain, `${path}.chain`);
}

function checkEntry(value: unknown, path: string): void {
  const { id, message, chain, part, decision } = objectAt(value, path);
  if (!/^r\d+$/.test(stringAt(id, `${path}.id`))) throw broken(`${path}.id`, "is no recall id");
  wholeAt(message, `${path}.message`);
  stringAt(chain, `${path}.chain`);
  if (part !== -1) wholeAt(part, `${path}.part`);
  checkDecision(objectAt(decision, `${path}.decision`), `${path}.decision`);
}

function checkDecision(decision: Record<string, unknown>, path: string): void {
  switch (decision.action) {
    case "drop":
    case "detach":
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
