import type { Session, ToolArguments } from "../../session/index.ts";
import { type Answer, settle, withNotice } from "../call-answer.ts";
import { budgetStatus, budgetStatusTool, nextPage, nextPageTool, recall, recallTool } from "../page-tools.ts";

export interface Answering {
  readonly session: Session;
  /** What the client must know, once. */
  takeNotice(): string | undefined;
}

export interface CalledTool {
  readonly name: string;
  readonly args: ToolArguments;
  readonly signal: AbortSignal;
}

/** Runs a tool of the session, or one that gives pages. */
export async function answerCall(
  { session, takeNotice }: Answering,
  { name, args, signal }: CalledTool,
): Promise<Answer> {
  const answer = await settle(async () => {
    switch (name) {
      case budgetStatusTool.name:
        return budgetStatus(session, args);
      case nextPageTool.name:
        return nextPage(session, args, { signal });
      case recallTool.name:
        return recall(session, args);
      default:
        return session.call(name, args, { signal });
    }
  });
  const notice = takeNotice();
  return notice === undefined ? answer : withNotice(answer, notice);
}
