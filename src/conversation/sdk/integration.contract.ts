/** What every integration promises: a long session stays within the window, valid, and in the cache. */

import { afterEach, describe, expect, it } from "vitest";
import { collidingLines } from "../../../test/generate/colliding-texts.ts";
import { forgedNotes } from "../../../test/generate/forged-notes.ts";
import { generateRequest, toolHistory } from "../../../test/generate/generate-request.ts";
import { ContextError } from "../../core/errors.ts";
import { countMessages, countTools, type FormatName, validateRequest } from "../../core/messages/index.ts";
import { createMemoryStore, type Store } from "../../core/store/index.ts";
import type { Fields } from "../../core/text/index.ts";
import { type Counter, createCounter } from "../../core/tokens/index.ts";
import type { CallEvent } from "./call-events.ts";
import type { RequestFitterOptions, TrimEvent } from "./request-fitter.ts";

export interface IntegrationDriver {
  readonly name: string;
  readonly format: FormatName;
  open(options: DriverOptions): Promise<OpenDriver>;
}

export interface DriverOptions {
  readonly options: RequestFitterOptions<never>;
  /** The input tokens that the answer to a request reports. */
  readonly billed: (sent: Fields) => number;
}

export interface OpenDriver {
  /** Sends a request through the integration and returns what arrived. */
  ask(request: Fields, how: "whole" | "streamed"): Promise<Fields>;
  /** The requests that arrived. */
  readonly count: () => number;
  close(): Promise<void>;
}

const isDeep = process.env.PLIMSOLL_DEEP === "1";
const contextWindow = 36_000;
const reserve = 6_000;
const limit = contextWindow - reserve;
const model = "claude-sonnet-5";

export function testIntegration(driver: IntegrationDriver): void {
  const { name, format } = driver;
  const counter = createCounter("auto", { model });
  const opened: OpenDriver[] = [];
  const open = async (more: Partial<RequestFitterOptions<never>> = {}, factor = 1) => {
    const events: TrimEvent[] = [];
    const count = sizeWith(await counter, format);
    const options = { contextWindow, reserve, onTrim: (event: TrimEvent) => events.push(event), ...more };
    const door = await driver.open({ options, billed: (sent) => Math.round(count(sent) * factor) });
    opened.push(door);
    return { ...door, events, count: door.count, size: count };
  };
  afterEach(async () => {
    for (const door of opened.splice(0)) await door.close();
  });

  describe(`${name}: a long session`, () => {
    // A request is prepared the same way for both kinds of answers. So everyday runs take one kind for each test.
    const onlyDeep = (isEveryday: boolean) => ({ tags: isEveryday ? [] : ["deep"] });
    for (const how of ["whole", "streamed"] as const) {
      it.each(isDeep ? [1, 2, 3, 4] : [1])(
        `fits, stays valid, and changes its beginning at epochs alone, ${how} (%i)`,
        onlyDeep(how === "streamed"),
        async (seed) => {
          const { ask, events, size } = await open();
          const calls = callsOf(format, seed);
          let before: readonly string[] = [];
          for (const request of calls) {
            const epochs = events.length;
            const sent = await ask(request, how);
            expect(size(sent)).toBeLessThanOrEqual(limit);
            expect(problemsOf(sent, format)).toEqual([]);
            expect(userTexts(sent)).toEqual(userTexts(request));
            const messages = bare(sent);
            if (events.length === epochs) expect(messages.slice(0, before.length)).toEqual(before);
            before = messages;
          }
          expect(events.length).toBeGreaterThan(0);
          expect(events.length).toBeLessThan(calls.length / 4);
        },
      );

      it(`fits by the provider's count, which the usage reports, ${how}`, onlyDeep(how === "whole"), async () => {
        const factor = 1.25;
        const { ask, size, events } = await open({}, factor);
        for (const request of callsOf(format, 3)) {
          const sent = await ask(request, how);
          expect(size(sent) * factor).toBeLessThanOrEqual(contextWindow);
        }
        expect(events.length).toBeGreaterThan(0);
      });
    }
  });

  describe(`${name}: with an intake`, () => {
    const options = { intake: { maxResultTokens: 900, pageTokens: 500 }, contextWindow: 20_000, reserve: 4_000 };

    it("only grows between trims, fits and stays valid", async () => {
      const { ask, events, size } = await open(options);
      let before: readonly string[] = [];
      for (const request of callsOf(format, 1)) {
        const epochs = events.length;
        const sent = await ask(copyOf(request), "whole");
        expect(size(sent)).toBeLessThanOrEqual(options.contextWindow - options.reserve);
        expect(problemsOf(sent, format)).toEqual([]);
        const messages = bare(sent);
        if (events.length === epochs) expect(messages.slice(0, before.length)).toEqual(before);
        before = messages;
      }
      expect(before.some((message) => message.includes("The whole result has"))).toBe(true);
    });

    it("sends the same bytes when each request comes from another process", async () => {
      const store = createMemoryStore();
      const roomy = { ...options, contextWindow: 10_000_000 };
      const { ask } = await open(roomy);
      for (const request of callsOf(format, 1).slice(0, 15)) {
        const other = await open({ ...roomy, store, sessionId: "s" });
        expect(bare(await other.ask(request, "whole"))).toEqual(bare(await ask(request, "whole")));
      }
    });

    it.each(isDeep ? [2, 3] : [2])("resumes after a trim with the same bytes, session %i", async (seed) => {
      const shared = { ...options, store: createMemoryStore(), sessionId: "s" };
      const first = await open(shared);
      const calls = callsOf(format, seed);
      const at = await askUntilEpoch(calls, first.ask, first.events);
      const here = bare(await first.ask(calls[at] as Fields, "whole"));
      const again = await open(shared);
      expect(bare(await again.ask(calls[at] as Fields, "whole"))).toEqual(here);
      expect(again.events).toEqual([]);
    });

    it("sends results as they are if their originals cannot be stored", async () => {
      const store = createMemoryStore();
      const put: Store["put"] = (collection, ...rest) =>
        collection.includes("intake") ? Promise.reject(new Error("full")) : store.put(collection, ...rest);
      const broken = { ...store, put };
      const { ask } = await open({ ...options, contextWindow: 10_000_000 });
      const whole = await open({ ...options, contextWindow: 10_000_000, store: broken, sessionId: "s" });
      const plain = await open({ contextWindow: 10_000_000 });
      const request = callsOf(format, 1)[12] as Fields;
      const unchanged = bare(await plain.ask(request, "whole"));
      expect(bare(await ask(request, "whole"))).not.toEqual(unchanged);
      expect(bare(await whole.ask(request, "whole"))).toEqual(unchanged);
    });
  });

  describe(`${name}: with hostile results`, () => {
    const options = { intake: true, contextWindow: 10_000_000 };

    it("shows a line that collides with an earlier one, and forged notes as text", async () => {
      const { ask } = await open(options);
      const [harmless, malicious] = collidingLines;
      const texts = [sourceWith(harmless), sourceWith(malicious), forgedNotes.join("\n")];
      const sent = bare(await ask(toolRequest(format, texts), "whole")).join("\n");
      expect(sent).toContain(malicious);
      expect(sent).toMatch(/\[[a-z2-7]{4}: Only new lines are shown/);
      expect(sent.split("(text of this result) ")).toHaveLength(forgedNotes.length + 2);
    });

    it("sends the same bytes from two instances that share nothing", async () => {
      const request = toolRequest(format, [sourceWith("one"), sourceWith("one"), sourceWith("two")]);
      const [one, other] = [await open(options), await open(options)];
      const first = bare(await one.ask(copyOf(request), "whole"));
      expect(first.join("\n")).toMatch(/Whole text: recall with id [a-z2-7]{16}\]/);
      expect(bare(await other.ask(copyOf(request), "whole"))).toEqual(first);
    });
  });

  describe(`${name}: one request`, () => {
    it("is sent unchanged if it fits", async () => {
      const { ask, events } = await open();
      const [request] = callsOf(format, 1) as [Fields];
      const sent = await ask(request, "whole");
      const trimmed = await open({ contextWindow: 10_000_000 });
      expect(bare(sent)).toEqual(bare(await trimmed.ask(request, "whole")));
      expect(events).toEqual([]);
    });

    it("is refused if it cannot fit, and nothing is sent", async () => {
      const { ask, count } = await open();
      const refused = ask(hugeQuestion(format), "whole");
      await expect(refused).rejects.toThrow(/the smallest request has \d+ tokens of messages, but only \d+ fit/);
      const error = contextErrorIn(await refused.catch((thrown: unknown) => thrown));
      expect(error?.code).toBe("context_overflow");
      expect(error?.overflow?.tokens).toBeGreaterThan(error?.overflow?.limit ?? 0);
      expect(error?.overflow?.largest[0]).toMatchObject({ role: "user", kind: "text" });
      expect(error?.message).toMatch(/Largest: messages\[\d\](?:\.content\[0\])? \(user text, \d+ tokens\)/);
      expect(count()).toBe(0);
    });

    it("is counted with its tools", async () => {
      const { ask, count } = await open();
      const refused = ask(withHugeTool(callsOf(format, 1)[0] as Fields, format), "whole");
      await expect(refused).rejects.toThrow(/but only 0 fit/);
      expect(count()).toBe(0);
    });

    it("is sent anyway if the caller asks for it", async () => {
      const { ask } = await open({ onOverflow: "pass" });
      const request = hugeQuestion(format);
      expect(userTexts(await ask(request, "whole"))).toEqual(userTexts(request));
    });
  });

  describe(`${name}: what a person sees`, () => {
    it.each(isDeep ? (["whole", "streamed"] as const) : (["streamed"] as const))(
      "has one event a call, with what was billed, %s",
      async (how) => {
        const calls: CallEvent[] = [];
        const { ask, size, events } = await open({ onCall: (event) => calls.push(event) });
        const billed: number[] = [];
        for (const request of callsOf(format, 1)) billed.push(size(await ask(request, how)));
        expect(calls.map(({ sentTokens }) => sentTokens)).toEqual(billed);
        expect(calls.every(({ isEstimate, usd }) => !isEstimate && Number(usd) > 0)).toBe(true);
        expect(calls.filter(({ epoch }) => epoch !== undefined)).toHaveLength(events.length);
      },
    );

    it("goes on being trimmed if callbacks throw and the store fails", async () => {
      const errors: unknown[] = [];
      const boom = (): never => {
        throw new Error("boom");
      };
      const hooks = {
        onTrim: boom,
        onCall: boom,
        onPressure: boom,
        isPinned: boom,
        isTrimmable: boom,
        sessionIdOf: boom,
      };
      const store = { ...createMemoryStore(), update: boom, append: boom };
      const options = { ...hooks, store, onError: (error: unknown) => errors.push(error) };
      const { ask, size } = await open(options);
      for (const request of callsOf(format, 1)) expect(size(await ask(request, "whole"))).toBeLessThanOrEqual(limit);
      const codes = errors.map((error) => (error as ContextError).code);
      expect(new Set(codes)).toEqual(new Set(["hook_failed", "store_unavailable"]));
      expect(codes.length).toBeLessThan(10);
    });
  });

  describe(`${name}: a session`, () => {
    it("keeps its decisions despite side questions, with and without an id", async () => {
      for (const sessionId of [undefined, "agent-7"]) {
        const { ask, events } = await open({ sessionId });
        const calls = callsOf(format, 1);
        const at = await askUntilEpoch(calls, ask, events);
        const before = bare(await ask(calls[at] as Fields, "whole"));
        const title = question(format, "Give this conversation a title.");
        await ask(title, "whole");
        expect(bare(await ask(calls[at] as Fields, "whole"))).toEqual(before);
        expect(events).toHaveLength(1);
      }
    });

    it("is sent whole after a rewind to where it fits, and as before after the return", async () => {
      const { ask, events } = await open();
      const calls = callsOf(format, 2);
      const early = calls.slice(0, 5);
      const whole = [];
      for (const request of early) whole.push(bare(await ask(request, "whole")));
      for (const request of calls.slice(5, -1)) await ask(request, "whole");
      const last = calls.at(-1) as Fields;
      const before = bare(await ask(last, "whole"));
      const epochs = events.length;
      expect(epochs).toBeGreaterThan(0);
      const untrimmed = await open({ contextWindow: 10_000_000 });
      for (const [index, request] of early.entries()) {
        expect(bare(await ask(request, "whole"))).toEqual(whole[index]);
        const fork = withQuestion(request, "And what about the other one?");
        expect(bare(await ask(fork, "whole"))).toEqual(bare(await untrimmed.ask(fork, "whole")));
      }
      expect(bare(await ask(last, "whole"))).toEqual(before);
      expect(events).toHaveLength(epochs);
    });

    it("resumes from its store with the same bytes", async () => {
      const store = createMemoryStore();
      const first = await open({ store, sessionId: "s" });
      const calls = callsOf(format, 2);
      const at = await askUntilEpoch(calls, first.ask, first.events);
      const here = bare(await first.ask(calls[at] as Fields, "whole"));
      const again = await open({ store, sessionId: "s" });
      expect(bare(await again.ask(calls[at] as Fields, "whole"))).toEqual(here);
      expect(again.events).toEqual([]);
    });

    it("carries the caller's summary of what was trimmed, and resumes with it", async () => {
      const store = createMemoryStore();
      const asked: number[] = [];
      const summarise: RequestFitterOptions<never>["summarise"] = async ({ parts }) => {
        asked.push(parts.length);
        return "The agent has looked around.";
      };
      const first = await open({ store, sessionId: "s", summarise });
      const calls = callsOf(format, 2);
      const at = await askUntilEpoch(calls, first.ask, first.events);
      const here = bare(await first.ask(calls[at] as Fields, "whole"));
      expect(first.events[0]?.summary).toBe("used");
      expect(here.filter((message) => message.includes("The agent has looked around."))).toHaveLength(1);
      expect(asked).toHaveLength(1);
      const again = await open({ store, sessionId: "s", summarise });
      expect(bare(await again.ask(calls[at] as Fields, "whole"))).toEqual(here);
      expect(asked).toHaveLength(1);
    });

    it("handles many requests at once", async () => {
      const { ask, size } = await open();
      const calls = callsOf(format, 1).slice(-8);
      const sent = await Promise.all(calls.map((request) => ask(request, "whole")));
      for (const each of sent) expect(size(each)).toBeLessThanOrEqual(limit);
    });
  });
}

function sourceWith(line: string): string {
  const lines = Array.from({ length: 60 }, (_, index) => `export const value${index} = compute(${index * 7}, "name");`);
  return lines.with(30, line).join("\n");
}

/** A request after the model has read these texts, one after the other, with a tool that recalls them. */
function toolRequest(format: FormatName, texts: readonly string[]): Fields {
  const { request, messages } = toolHistory(format, texts);
  return { ...request, model, [format === "responses" ? "input" : "messages"]: messages };
}

const generated = new Map<string, readonly Fields[]>();

/** The requests of a generated session, one for each assistant turn. They are frozen, because an integration must not
 *  change the caller's objects. So all tests share them. */
function callsOf(format: FormatName, seed: number): readonly Fields[] {
  const key = `${format} ${seed}`;
  const calls = generated.get(key) ?? generateCalls(format, seed);
  generated.set(key, calls);
  return calls;
}

function generateCalls(format: FormatName, seed: number): Fields[] {
  const { request, messages } = generateRequest(format, { seed, turns: isDeep ? 100 : 30 });
  const key = format === "responses" ? "input" : "messages";
  const calls: Fields[] = [];
  for (let end = 1; end <= messages.length; end++) {
    const [last, next] = [messages[end - 1], messages[end]];
    if (isAssistant(last) || (next !== undefined && !isAssistant(next))) continue;
    calls.push(deepFreeze({ ...request, model, [key]: messages.slice(0, end) }));
  }
  return calls;
}

function isAssistant(message: unknown): boolean {
  const { role, type } = Object(message) as Fields;
  return role === "assistant" || (role === undefined && !String(type).endsWith("_output"));
}

/** Clients send new objects each time. */
function copyOf(request: Fields): Fields {
  return JSON.parse(JSON.stringify(request)) as Fields;
}

async function askUntilEpoch(
  calls: readonly Fields[],
  ask: OpenDriver["ask"],
  events: readonly TrimEvent[],
): Promise<number> {
  for (const [index, request] of calls.entries()) {
    await ask(request, "whole");
    if (events.length > 0) return index;
  }
  throw new Error("the session never filled its window");
}

function question(format: FormatName, text: string): Fields {
  const messages = [{ role: "user", content: text }];
  return format === "responses"
    ? { model, input: messages }
    : { model, messages, ...(format === "anthropic" && { max_tokens: 100 }) };
}

/** The request with an answer and another question after its last message. */
function withQuestion(request: Fields, text: string): Fields {
  const key = request.input === undefined ? "messages" : "input";
  const more = [
    { role: "assistant", content: "Done." },
    { role: "user", content: text },
  ];
  return { ...request, [key]: [...messagesOf(request), ...more] };
}

function hugeQuestion(format: FormatName): Fields {
  return question(format, "All work and no play makes for a long question. ".repeat(8_000));
}

function withHugeTool(request: Fields, format: FormatName): Fields {
  const description = "Reads every file there is. ".repeat(8_000);
  const [tool, ...rest] = request.tools as [Fields, ...Fields[]];
  const huge =
    format === "openai" ? { ...tool, function: { ...Object(tool.function), description } } : { ...tool, description };
  return { ...request, tools: [huge, ...rest] };
}

/** Tokens of a request as a provider with this counter would bill them. */
function sizeWith(counter: Counter, format: FormatName): (sent: Fields) => number {
  return (sent) => {
    const messages = messagesOf(sent);
    const { system, tools = [] } = sent;
    const systemTokens =
      system === undefined ? 0 : countMessages([{ role: "system", content: system }], counter, { format: "anthropic" });
    const toolTokens = countTools(tools as object[], counter, { format, model });
    return countMessages(messages, counter, { format, model }) + systemTokens + toolTokens;
  };
}

function messagesOf(request: Fields): readonly object[] {
  return (request.messages ?? request.input) as readonly object[];
}

/** Messages as text, without cache markers. A plain text and one block of it are equal. */
function bare(request: Fields): readonly string[] {
  return messagesOf(request).map((message) =>
    JSON.stringify(message, (key, value: unknown) => {
      if (key === "cache_control" || isMarker(key, value)) return undefined;
      return key === "content" && typeof value === "string" ? [{ type: "text", text: value }] : value;
    }),
  );
}

/** Whether these are options of the AI SDK with nothing but a cache marker. */
function isMarker(key: string, value: unknown): boolean {
  if (key !== "providerOptions") return false;
  return [{}, { ttl: "1h" }].some((lifetime) => {
    const marker = { anthropic: { cacheControl: { type: "ephemeral", ...lifetime } } };
    return JSON.stringify(value) === JSON.stringify(marker);
  });
}

function problemsOf(sent: Fields, format: FormatName): unknown[] {
  const problems = validateRequest(format === "ai-sdk" ? [...messagesOf(sent)] : sent, { format });
  return problems.filter(({ severity }) => severity === "error");
}

function userTexts(request: Fields): string[] {
  return messagesOf(request).flatMap((message) => {
    const { role, content } = message as Fields;
    if (role !== "user" && role !== "system") return [];
    if (typeof content === "string") return [content];
    return (content as Fields[]).flatMap(({ text }) => (typeof text === "string" ? [text] : []));
  });
}

/** SDKs wrap what a stream helper throws. */
function contextErrorIn(error: unknown): ContextError | undefined {
  if (error instanceof ContextError) return error;
  return error instanceof Error ? contextErrorIn(error.cause) : undefined;
}

function deepFreeze<Value>(value: Value): Value {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  for (const each of Object.values(value)) deepFreeze(each);
  return Object.freeze(value);
}
