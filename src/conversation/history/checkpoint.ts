/** The state of a trimmer as plain JSON, and the check of what callers and stores give back. */
import { ContextError } from "../../core/errors.ts";
import { isFields, isHashKey, isOriginalId } from "../../core/text/index.ts";
import type { CalibratorSnapshot } from "../../core/tokens/index.ts";
import type { DecisionLog } from "./decision-log.ts";
import type { PolicyName } from "./policies/policy.ts";

/** The state of a trimmer as plain JSON. With a checkpoint and the same history, a new trimmer sends the same bytes. */
export interface Checkpoint {
  /** The version of this shape. */
  readonly version: 2;
  /** The policy that made the decisions. */
  readonly policy: PolicyName;
  /** Every decision so far. */
  readonly ledger: DecisionLog;
  /** What the trimmer learnt from reported usage. */
  readonly calibrator?: CalibratorSnapshot | undefined;
}

/** Throws on a value that is not a checkpoint, with the path of the first problem. Version 1 does not record which
 *  history an epoch was decided on: its epochs are dropped, and the history is trimmed again. */
export function checkCheckpoint(value: unknown): Checkpoint {
  const checkpoint = objectAt(value, "checkpoint");
  // Copying or writing a value this deep would overflow the stack.
  if (!isFields(value)) throw broken("checkpoint", "is nested too deeply");
  const { version } = checkpoint;
  if (version !== 1 && version !== 2)
    throw broken("checkpoint.version", `is ${JSON.stringify(version)}; this version reads 2`);
  const { epochs, key } = objectAt(checkpoint.ledger, "checkpoint.ledger");
  if (key !== undefined && !isHashKey(key)) throw broken("checkpoint.ledger.key", "is not a key");
  const list = listAt(epochs, "checkpoint.ledger.epochs");
  if (version === 1) return { ...(value as unknown as Checkpoint), version: 2, ledger: { epochs: [] } };
  for (const [index, epoch] of list.entries()) checkEpoch(epoch, `checkpoint.ledger.epochs[${index}]`);
  return value as unknown as Checkpoint;
}

function checkEpoch(value: unknown, path: string): void {
  const { boundary, collapsed, at, reach, after, like, growth, entries } = objectAt(value, path);
  wholeAt(boundary, `${path}.boundary`);
  wholeAt(collapsed, `${path}.collapsed`);
  checkAnchor(at, `${path}.at`);
  checkAnchor(reach, `${path}.reach`);
  if (after !== undefined) wholeAt(after, `${path}.after`);
  if (like !== undefined) wholeAt(like, `${path}.like`);
  if (growth !== undefined) wholeAt(growth, `${path}.growth`);
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
  if (!isOriginalId(stringAt(id, `${path}.id`))) throw broken(`${path}.id`, "is not a recall id");
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
      stringAt(decision.text, `${path}.text`);
      if (decision.keeps !== undefined) wholeAt(decision.keeps, `${path}.keeps`);
      if (decision.digest !== undefined) stringAt(decision.digest, `${path}.digest`);
      return;
    case "stub":
      stringAt(decision.text, `${path}.text`);
      return;
    case "shorten":
      wholeAt(decision.head, `${path}.head`);
      wholeAt(decision.tail, `${path}.tail`);
      return;
    default:
      throw broken(`${path}.action`, "is not a known action");
  }
}

function objectAt(value: unknown, path: string): Record<string, unknown> {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
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
    hint: "Start without the checkpoint. The history is then trimmed again, which costs one cache break.",
  });
}
