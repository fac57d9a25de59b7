import { ContextError } from "../../errors.ts";
import { messageOf, shorten } from "../../text/index.ts";
import type { ErrorEnvelope } from "../envelope.ts";
import type { ToolFailure } from "../tool/budgeted-tool.ts";
import type { PageOptions } from "./page-source.ts";

/** What may be delivered, and how it is measured. */
export type FitSizes = Pick<PageOptions, "allocation" | "measure" | "count">;

export interface FailurePage {
  readonly envelope: ErrorEnvelope;
  readonly text: string;
  readonly tokens: number;
}

const mostCharacters = 600;

/** An error in its envelope, shortened until it is within the allocation. */
export function fitFailure(failure: ToolFailure, { allocation, measure, count }: FitSizes): FailurePage {
  for (let characters = mostCharacters; ; characters = Math.floor(characters / 2)) {
    const envelope: ErrorEnvelope = { status: "error", error: shortened(failure, characters) };
    const text = JSON.stringify(envelope);
    if (measure(text) <= allocation || characters < 10) return { envelope, text, tokens: count(text) };
  }
}

function shortened({ code, message, hint }: ToolFailure, characters: number): ErrorEnvelope["error"] {
  const error = { code: shorten(code, 60), message: shorten(message, characters) };
  return hint === undefined ? error : { ...error, hint: shorten(hint, characters / 2) };
}

/** What a tool throws is an answer as well: the model can do something about it. */
export function toFailure(error: unknown): ToolFailure {
  if (error instanceof ContextError) return { code: error.code, message: error.message, hint: error.hint };
  return { code: "execution_error", message: messageOf(error) };
}
