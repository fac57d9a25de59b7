import { describe, expect, it } from "vitest";
import { createMemoryStore } from "../../core/store/index.ts";
import { createCounter } from "../../core/tokens/index.ts";
import { createRequestFitter, type RequestFitterOptions } from "./request-fitter.ts";

const counter = await createCounter("bytes/4");
const boom = (): never => {
  throw new Error("boom");
};

function history(turns: number): object[] {
  const messages: object[] = [{ role: "user", content: "Where is the bug? ".repeat(550) }];
  for (let turn = 0; turn < turns; turn++) {
    const id = `c${turn}`;
    messages.push(
      { role: "assistant", content: [{ type: "tool_use", id, name: "read", input: { path: `${turn}.ts` } }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: `${turn} `.repeat(1_500) }] },
    );
  }
  return messages;
}

/** Sends a growing history. Returns what was sent and what was reported. */
async function run(options: RequestFitterOptions<object>, turns: readonly number[] = [10, 30, 31, 60]) {
  const errors: unknown[] = [];
  const onError = (error: unknown) => errors.push(error);
  const fitter = createRequestFitter<object>({ contextWindow: 40_000, counter, onError, ...options });
  const sent: string[] = [];
  for (const each of turns) {
    const { reduction, observe } = await fitter.fit({
      ...{ request: {}, format: "anthropic", model: "claude-sonnet-5", messages: history(each) },
      ...{ maxOutputTokens: undefined, cacheLifetimeMs: 300_000 },
    });
    observe({});
    sent.push(JSON.stringify(reduction.messages));
  }
  // A rejected promise is reported a moment later.
  await Promise.resolve();
  return { sent, errors };
}

describe("a callback that throws", () => {
  const hooks: Record<string, RequestFitterOptions<object>> = {
    onTrim: { onTrim: boom },
    onCall: { onCall: boom },
    onPressure: { onPressure: boom },
    sessionIdOf: { sessionIdOf: boom },
    isTrimmable: { isTrimmable: boom },
  };

  it.each(Object.entries(hooks))("never stops a call and is reported once: %s", async (name, options) => {
    // So many turns in so small a window that trims come too often.
    const turns = Array.from({ length: 45 }, (_, index) => index);
    const { sent, errors } = await run({ contextWindow: 4_500, reserve: 200, ...options }, turns);
    expect(sent).toEqual((await run({ contextWindow: 4_500, reserve: 200 }, turns)).sent);
    if (name !== "isTrimmable") {
      expect(errors).toMatchObject([
        { code: "hook_failed", message: `${name} failed: boom`, cause: { message: "boom" } },
      ]);
    }
  });

  it("is reported if it rejects, too", async () => {
    const onTrim = (() => Promise.reject(new Error("later"))) as unknown as () => void;
    expect((await run({ onTrim })).errors).toMatchObject([{ message: "onTrim failed: later" }]);
  });

  it("keeps user messages that isTrimmable cannot judge", async () => {
    const errors: unknown[] = [];
    const fitter = createRequestFitter<object>({
      ...{ contextWindow: 40_000, counter, onError: (error) => errors.push(error), isTrimmable: boom },
    });
    const logs = Array.from({ length: 8 }, () => ({ role: "user", content: "log ".repeat(2_000) }));
    const messages = logs.flatMap((log, index) => [
      log,
      ...history(3 * index)
        .slice(1)
        .slice(-6),
    ]);
    const { reduction } = await fitter.fit({
      ...{ request: {}, format: "anthropic", model: "claude-sonnet-5", messages },
      ...{ maxOutputTokens: undefined, cacheLifetimeMs: 300_000 },
    });
    expect(JSON.stringify(reduction.messages)).toContain("log ".repeat(2_000));
    expect(errors).toMatchObject([{ message: "isTrimmable failed: boom" }]);
  });

  it("keeps the messages that isPinned cannot judge, as long as the request fits", async () => {
    const isSeventh = (message: object) => JSON.stringify(message).includes("7 7 7 7");
    const isPinned = (message: object) => isSeventh(message) && boom();
    const { sent, errors } = await run({ isPinned });
    expect(sent).toEqual((await run({ isPinned: isSeventh })).sent);
    expect(sent.at(-1)).toContain("7 7 7 7");
    expect(errors).toMatchObject([{ message: "isPinned failed: boom" }]);
  });

  it("sends a request that fits even if isPinned fails for every message", async () => {
    const { sent, errors } = await run({ isPinned: boom });
    for (const each of sent) expect(counter.count(each)).toBeLessThan(30_000);
    expect(sent).toHaveLength(4);
    expect(errors).toHaveLength(1);
  });

  it("is reported if it is summarise, and the digest is sent instead", async () => {
    const turns = Array.from({ length: 40 }, (_, index) => index);
    const { sent, errors } = await run({ summarise: boom }, turns);
    expect(sent.at(-1)).toContain("[trimmed earlier: ");
    expect(sent.every((each) => counter.count(each) < 30_000)).toBe(true);
    expect(errors).toMatchObject([{ message: "summarise failed: boom" }]);
  });

  it.each<[string, () => number]>([
    ["throws", boom],
    ["returns NaN", () => Number.NaN],
    ["returns nothing", () => undefined as unknown as number],
  ])("is replaced by an estimate if it is a counter that %s", async (_what, count) => {
    const { sent, errors } = await run({ counter: { name: "mine", count } });
    for (const each of sent) expect(counter.count(each)).toBeLessThan(40_000);
    expect(sent.at(-1)).toContain("[trimmed: ");
    expect(errors).toMatchObject([{ code: "hook_failed", message: expect.stringContaining("counter failed") }]);
  });

  it("does no harm in onError itself", async () => {
    const { sent } = await run({ onTrim: boom, onError: boom });
    expect(sent).toHaveLength(4);
  });

  it("leaves an event in the store", async () => {
    const store = createMemoryStore();
    await run({ store, sessionId: "s", onTrim: boom });
    await new Promise((resolve) => setImmediate(resolve));
    const events = (await store.read("events")).map(({ value }) => JSON.parse(value));
    expect(events.filter(({ kind }) => kind === "error")).toMatchObject([{ numbers: { name: "onTrim" } }]);
  });
});

describe("sessionIdOf", () => {
  const idsWith = async (sessionIdOf: RequestFitterOptions<object>["sessionIdOf"]) => {
    const ids: string[] = [];
    const { errors } = await run(
      { sessionIdOf, sessionId: "given", onCall: ({ sessionId }) => ids.push(sessionId) },
      [1],
    );
    return { ids, errors };
  };

  it("may return null or an empty text for the default", async () => {
    expect(await idsWith(() => "own")).toEqual({ ids: ["own"], errors: [] });
    for (const none of [null, undefined, ""]) expect(await idsWith(() => none)).toEqual({ ids: ["given"], errors: [] });
  });

  it("is reported if it returns something else", async () => {
    const { ids, errors } = await idsWith((async () => "late") as unknown as () => string);
    expect(ids).toEqual(["given"]);
    expect(errors).toMatchObject([{ message: "sessionIdOf failed: it returned a value of type object" }]);
  });
});
