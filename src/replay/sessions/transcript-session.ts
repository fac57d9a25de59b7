/** One message a line, after an optional first line `{"meta": …}` that names the model. */
import { ContextError } from "../../errors.ts";
import { formatOfRequest } from "../../messages/index.ts";
import type { JsonLine } from "./json-lines.ts";
import { createSessionDraft, type RecordedSession } from "./recorded-session.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Messages as they stand; with a meta line they are in Anthropic's shape. */
export function readTranscriptSession(lines: readonly JsonLine[], file: string): RecordedSession {
  const draft = createSessionDraft();
  const head = lines[0]?.value;
  const hasMeta = isTranscriptHead(head);
  for (const { value, line } of hasMeta ? lines.slice(1) : lines) {
    if (!isMessageLine(value)) {
      throw new ContextError(
        "invalid_message",
        "no message: an object with a role, or an item of OpenAI's responses, is needed",
        {
          file,
          line,
        },
      );
    }
    draft.add(value, undefined);
  }
  if (!hasMeta) return draft.finish({ file, source: "messages" });
  return draft.finish({ file, source: "transcript", format: "anthropic", model: modelOf(head) });
}

export function isTranscriptHead(value: unknown): value is { readonly meta: Fields } {
  const { meta, role } = Object(value) as Fields;
  return typeof meta === "object" && meta !== null && role === undefined;
}

/** In OpenAI's responses calls, results and reasoning are items without a role. */
export function isMessageLine(value: unknown): value is Fields {
  if (typeof value !== "object" || value === null) return false;
  return typeof (value as Fields).role === "string" || formatOfRequest([value]) === "responses";
}

/** A session that changed its model names several, in the order of their use. */
function modelOf({ meta }: { readonly meta: Fields }): string | undefined {
  return typeof meta.model === "string" ? meta.model.split(",")[0]?.trim() : undefined;
}
