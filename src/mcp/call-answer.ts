import { ContextError } from "../errors.ts";
import type { ErrorEnvelope, ToolFailure } from "../session/index.ts";
import { shorten } from "../text/index.ts";

/** What a call of a tool comes to: the envelope, and its JSON. */
export interface Answer {
  readonly envelope: { readonly status: "success" | "error" };
  readonly text: string;
}

/** The answer with a notice beside it, in both forms. */
export function withNotice({ envelope }: Answer, notice: string): Answer {
  const noticed = { ...envelope, notice };
  return { envelope: noticed, text: JSON.stringify(noticed) };
}

/** What goes wrong with the store is an answer as well; only a bug throws. */
export async function settle(call: () => Promise<Answer>): Promise<Answer> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof ContextError) return failed(error);
    throw error;
  }
}

function failed({ code, message, hint }: ToolFailure): Answer {
  const told = { code, message: shorten(message, 600) };
  const error = hint === undefined ? told : { ...told, hint: shorten(hint, 300) };
  const envelope: ErrorEnvelope = { status: "error", error };
  return { envelope, text: JSON.stringify(envelope) };
}

/** The same in both forms: clients show the model one or the other, and each must tell how to go on. */
export function toCallResult({ envelope, text }: Answer): CallResult {
  const result = { content: [{ type: "text" as const, text }], structuredContent: { ...envelope } };
  return envelope.status === "error" ? { ...result, isError: true } : result;
}

export type CallResult = {
  content: { type: "text"; text: string }[];
  structuredContent: Record<string, unknown>;
  isError?: true;
};
