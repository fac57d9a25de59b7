import type { ToolFailure } from "../../session/index.ts";
import { cutText } from "../../text/index.ts";

/** A tool that cannot answer says so as data: the model reads it and asks again in another way. */
export function failure(code: FailureCode, message: string, hint?: string): ToolFailure {
  return hint === undefined ? { code, message } : { code, message, hint };
}

/** What a model may have to tell apart. */
export type FailureCode =
  | "invalid_argument"
  | "invalid_pattern"
  | "outside_root"
  | "refused_path"
  | "denied"
  | "not_found"
  | "unreadable"
  | "not_a_repository"
  | "refused_repository"
  | "unknown_revision"
  | "git_failed"
  | "search_failed"
  | "timed_out"
  | "cancelled";

/** What a model sent, in a message: quoted, and never a page long. */
export function shown(given: string): string {
  const { text, omitted } = cutText(given, 200);
  return JSON.stringify(omitted > 0 ? `${text}…` : text);
}
