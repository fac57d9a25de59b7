import { existsSync } from "node:fs";
import { vi } from "vitest";
import type { BudgetedTool, ToolArguments } from "../session/index.ts";
import { type ReadResult, readResult } from "./temporary-tree.contract.ts";

export interface Hang {
  /** The program creates this file after its last output. */
  readonly mark: string;
  /** How many milliseconds of the call's second are over by then. Default: all. */
  readonly elapsedMs?: number;
}

const timeoutMs = 1_000;

/** Taken before a test stops the clock. */
const realSetTimeout = setTimeout;

/** Returns the result of a call whose program prints something and then hangs. An event ends the call's time instead of
 *  the clock, so a test neither waits for a limit nor fails on a busy machine. */
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
