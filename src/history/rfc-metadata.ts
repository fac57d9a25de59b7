/** Checks arguments of the RFC's functions. It is apart from them, because every trimmer checks its metadata. */
import { ContextError } from "../errors.ts";
import { typeName } from "../messages/index.ts";
import type { ContextMetadata } from "./rfc-context.ts";

/** Returns the boundary in metadata that a caller or another program stored, or 0 if there is none. */
export function boundaryIn(metadata: ContextMetadata | null | undefined): number {
  if (metadata === undefined || metadata === null) return 0;
  if (!isObject(metadata)) reject("metadata", metadata, "an object, or left out");
  const index = metadata.trimmed_up_to_message_index ?? 0;
  if (!isWholeNumber(index)) reject("metadata.trimmed_up_to_message_index", index, "a whole number from 0");
  return index;
}

export function isWholeNumber(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

export function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function reject(name: string, value: unknown, wanted: string): never {
  const got = typeof value === "number" ? String(value) : typeName(value);
  throw new ContextError("invalid_argument", `${name} must be ${wanted}, not ${got}`);
}
