/** The RFC's metadata. It is apart from the RFC's functions, because every trimmer checks it. */
import { isPlainObject, isWhole, refuseValue } from "../../core/text/index.ts";
import type { ContextMetadata } from "./rfc-context.ts";

/** Returns the boundary in metadata that a caller or another program stored, or 0 if there is none. */
export function boundaryIn(metadata: ContextMetadata | null | undefined): number {
  if (metadata === undefined || metadata === null) return 0;
  if (!isPlainObject(metadata)) refuseValue("metadata", metadata, { wanted: "an object, or left out" });
  const index = metadata.trimmed_up_to_message_index ?? 0;
  if (!isWhole(index)) refuseValue("metadata.trimmed_up_to_message_index", index, { wanted: "a whole number from 0" });
  return index;
}
