/** What a fabric block may say. Loads zod, so only an answer that has such a block imports this. */
import { z } from "zod";
import { type FabricKind, type FabricReport, maxEntryLength, noteKinds } from "../../../compose/index.ts";
import { formatNumber } from "../../../text/index.ts";

const limit = `a text of at most ${formatNumber(maxEntryLength)} characters`;
const text = z
  .string()
  .trim()
  .min(1)
  .refine((value) => value.length <= maxEntryLength, limit);

export const reportSchema: z.ZodType<FabricReport> = z.strictObject({
  entanglements: listOf({ package: text, kind: text, signature: text, file: text.optional() }),
  claims: listOf({ path: text }),
  discoveries: listOf({ kind: text.optional(), detail: text, affects: text.optional() }),
  notes: listOf({ kind: z.enum(noteKinds).optional(), text }),
});

function listOf<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.array(z.strictObject(shape)).optional();
}

/** The field that an entry stands for which is only a text. */
export const mainFields: ReadonlyMap<string, string> = new Map<FabricKind, string>([
  ["claims", "path"],
  ["discoveries", "detail"],
  ["notes", "text"],
]);
