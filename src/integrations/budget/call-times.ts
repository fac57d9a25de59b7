/** When a session last called each model. The store keeps the times where there is one: after a restart, or in a process that lives for
 *  one request, they tell a cache that is lost from one that is still warm. */
import type { Store } from "../../store/index.ts";
import { isNumber, mapOf, readJson } from "../../text/index.ts";

export interface CallTimes {
  /** Notes a call and gives the time of the one before it, undefined when none is known. */
  note(model: string, nowMs: number): Promise<number | undefined>;
}

/** `forgetHistory` deletes from it. */
const collection = "history/calls";

export async function openCallTimes(store: Store | undefined, sessionId: string): Promise<CallTimes> {
  const times = parseTimes((await store?.get(collection, sessionId))?.value);
  return {
    async note(model, nowMs) {
      const before = times.get(model);
      times.set(model, nowMs);
      await store?.put(collection, sessionId, JSON.stringify(Object.fromEntries(times)));
      return before;
    },
  };
}

/** Times that cannot be read are not known. */
function parseTimes(value: string | undefined): Map<string, number> {
  return new Map(Object.entries(readJson(value, isTimes) ?? {}));
}

const isTimes = mapOf(isNumber);
