import { setTimeout as sleep } from "node:timers/promises";

export interface ProcessGroup {
  /** Of its leader, and so of the group. */
  readonly pid: number;
  /** Whether the leader is gone. */
  hasEnded(): boolean;
}

/** How long an agent may put itself in order. */
const graceMs = 2_000;
/** How long the rest may, once the leader is gone. Not as long: where nobody collects the dead, a group outlives its members. */
const restMs = 200;

/** Ends every process of a group: asks first, then kills. */
export async function endGroup(group: ProcessGroup): Promise<void> {
  signal(group, "SIGTERM");
  await waitUntil(group.hasEnded, graceMs);
  if (group.hasEnded()) await waitUntil(() => !signal(group, 0), restMs);
  signal(group, "SIGKILL");
  await waitUntil(group.hasEnded, restMs);
}

/** False where there is no such group any more. */
function signal({ pid }: ProcessGroup, name: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-pid, name);
    return true;
  } catch {
    return false;
  }
}

async function waitUntil(isTrue: () => boolean, waitMs: number): Promise<void> {
  const deadline = performance.now() + waitMs;
  while (!isTrue() && performance.now() < deadline) await sleep(10);
}
