import { existsSync } from "node:fs";
import { vi } from "vitest";
import type { BudgetedTool, ToolArguments } from "../../session/index.ts";
import { type ReadResult, readResult } from "./temporary-tree.contract.ts";

export interface Hang {
  /** The program makes this file when it has said all that it says. */
  readonly mark: string;
  /** Milliseconds of the call's second that are over then. Default: all. */
  readonly elapsedMs?: number;
}

const timeoutMs = 1_000;

/** Taken before a test stops the clock. */
const realSetTimeout = setTimeout;

/** The result of a call whose program says something and then hangs. Its time is up by an event, not by the clock: a test neither waits
 *  for a limit nor loses against one on a busy machine. */
export async function readUntilHung(
  tool: BudgetedTool,
  args: ToolArguments,
  { mark, elapsedMs = timeoutMs }: Hang,
): Promise<ReadResult> {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    let isOver = false;
    const { signal } = new AbortController();
    const reading = tool
      .run(args, { signal, timeoutMs })
      .then((result) => readResult(result))
      .finally(() => {
        isOver = true;
      });
    while (!isOver && !existsSync(mark)) await new Promise((resolve) => realSetTimeout(resolve, 5));
    vi.advanceTimersByTime(elapsedMs);
    return await reading;
  } finally {
    vi.useRealTimers();
  }
}
