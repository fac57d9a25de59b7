import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { priceOf } from "../../core/billing/index.ts";
import { validateRequest } from "../../core/messages/index.ts";
import type { Fields } from "../../core/text/index.ts";
import {
  addedMarkers,
  anthropicMarkers,
  type BreakpointMode,
  cachePlan,
  findStableMessage,
  type Lifetime,
  type MarkedParts,
  type MarkerShape,
  modeFor,
  placeMarkers,
  readMessageMarkers,
} from "./place-markers.ts";

const { readMarkers } = anthropicMarkers;

const short = { type: "ephemeral" };
const hour = { type: "ephemeral", ttl: "1h" };

function turns(count: number): object[] {
  return Array.from({ length: count }, (_, index) =>
    index % 2 === 0
      ? { role: "user", content: `question ${index}` }
      : { role: "assistant", content: [{ type: "text", text: `answer ${index}` }] },
  );
}

interface Placing {
  readonly request?: Fields;
  readonly breakpoints?: readonly number[];
  readonly mode?: BreakpointMode;
  readonly messages?: readonly object[];
}

function place({ request = {}, breakpoints = [], mode = "auto", messages }: Placing): MarkedParts & Fields {
  const own = messages ?? (request.messages as object[] | undefined) ?? turns(5);
  const whole = { messages: own, ...request };
  return { ...whole, ...placeIn(whole, { mode, messages: own, breakpoints }) };
}

function placeIn(
  { messages: own, tools, system, cache_control: automatic }: Fields,
  plan: { mode: BreakpointMode; messages: readonly object[]; breakpoints: readonly number[] },
): MarkedParts {
  const ownMarkers = readMessageMarkers(own as object[], anthropicMarkers);
  return placeMarkers({ ...plan, own: own as object[], ownMarkers, tools, system, automatic });
}

/** The messages that have markers, with their lifetimes. */
function marked({ messages }: MarkedParts): Record<number, Lifetime[]> {
  const entries = messages.map((message, index) => [index, readMarkers(message)] as const);
  return Object.fromEntries(entries.filter(([, markers]) => markers.length > 0));
}

describe("markers", () => {
  it("are placed at the end, where the history was cut, and after the system text", () => {
    const placed = place({ request: { system: "Be brief." }, breakpoints: [1, 3] });
    expect(marked(placed)).toEqual({ 1: ["5m"], 3: ["5m"], 4: ["5m"] });
    expect(placed.system).toEqual([{ type: "text", text: "Be brief.", cache_control: short }]);
    expect(placed.messages[4]).toEqual({
      role: "user",
      content: [{ type: "text", text: "question 4", cache_control: short }],
    });
  });

  it("are placed after the tools if there is no system text, but not on a tool that loads later", () => {
    const tools = [{ name: "read" }, { name: "grep", defer_loading: true }];
    expect(place({ request: { tools } }).tools).toEqual([{ name: "read", cache_control: short }, tools[1]]);
    expect(place({ request: { tools: [], system: [] } }).tools).toEqual([]);
  });

  it("are added if the request has some, or if the caller wants them", () => {
    const system = [{ type: "text", text: "Be brief.", cache_control: short }];
    expect(marked(place({ mode: "follow", breakpoints: [1] }))).toEqual({});
    expect(marked(place({ mode: "follow", request: { system }, breakpoints: [1] }))).toEqual({
      1: ["5m"],
      3: ["5m"],
      4: ["5m"],
    });
    expect(marked(place({ mode: "none", request: { system }, breakpoints: [1] }))).toEqual({});
    const automatic = place({ mode: "follow", request: { cache_control: short }, breakpoints: [1] });
    expect(marked(automatic)).toEqual({ 1: ["5m"], 3: ["5m"] });
  });

  it("use only free slots", () => {
    const block = (text: string) => ({ type: "text", text, cache_control: short });
    const system = [block("a"), block("b"), block("c")];
    expect(marked(place({ request: { system }, breakpoints: [1, 3] }))).toEqual({ 4: ["5m"] });
    expect(marked(place({ request: { system: [...system, block("d")] }, breakpoints: [1] }))).toEqual({});
    const automatic = { system, cache_control: short };
    expect(marked(place({ request: automatic, breakpoints: [1] }))).toEqual({});
  });

  it("last an hour if a later one does", () => {
    const messages = turns(5).with(4, {
      role: "user",
      content: [{ type: "text", text: "q", cache_control: hour }],
    });
    expect(marked(place({ request: { messages, system: "s" }, breakpoints: [1] }))).toEqual({
      1: ["1h"],
      3: ["1h"],
      4: ["1h"],
    });
    expect(readMarkers(place({ request: { messages, system: "s" } }).system)).toEqual(["1h"]);
    expect(marked(place({ request: { cache_control: hour }, breakpoints: [1] }))).toEqual({ 1: ["1h"], 3: ["1h"] });
    const longSystem = [{ type: "text", text: "s", cache_control: hour }];
    expect(marked(place({ request: { system: longSystem } }))).toEqual({ 3: ["5m"], 4: ["5m"] });
  });

  it("get the lifetime of the request's last marker if no longer one comes after them", () => {
    const messages = turns(5).with(1, {
      role: "assistant",
      content: [{ type: "text", text: "a", cache_control: hour }],
    });
    expect(marked(place({ request: { messages, cache_control: short }, breakpoints: [2] }))).toEqual({
      1: ["1h"],
      2: ["5m"],
      3: ["5m"],
    });
  });

  it("are not added to a part in which the caller has set some", () => {
    const content = [
      { type: "text", text: "a", cache_control: short },
      { type: "text", text: "b" },
    ];
    const messages = turns(5).with(3, { role: "assistant", content });
    const tools = [{ name: "read", cache_control: short }, { name: "grep" }];
    const request = { messages, tools, system: "s" };
    const placed = placeIn(request, { mode: "auto", messages, breakpoints: [3] });
    expect(placed).toEqual({
      ...request,
      messages: messages.with(4, anthropicMarkers.mark(messages[4], "5m") as object),
    });
  });

  it("are placed at the end although the caller marked an earlier message", () => {
    const messages = turns(5).with(0, { role: "user", content: [{ type: "text", text: "q", cache_control: short }] });
    expect(marked(place({ messages }))).toEqual({ 0: ["5m"], 3: ["5m"], 4: ["5m"] });
  });

  it("are not placed where the request's own marker is", () => {
    expect(marked(place({ request: { cache_control: short }, breakpoints: [4] }))).toEqual({ 3: ["5m"] });
  });

  it("are placed where an earlier call wrote the cache for an hour", () => {
    const messages = turns(7);
    const plan = { mode: "auto", own: messages, ownMarkers: new Map(), messages, breakpoints: [], anchor: 2 } as const;
    const placed = placeMarkers(plan);
    expect(marked(placed)).toEqual({ 2: ["5m"], 5: ["5m"], 6: ["5m"] });
    expect(placed).not.toHaveProperty("tools.0");
    expect(Object.keys(placed)).toEqual(["tools", "system", "messages"]);
  });

  it("are read once in each message of the caller, however many places there are", () => {
    const messages = turns(40);
    const reads = new Map<unknown, number>();
    const shape: MarkerShape = {
      ...anthropicMarkers,
      readMarkers(value) {
        reads.set(value, (reads.get(value) ?? 0) + 1);
        return anthropicMarkers.readMarkers(value);
      },
    };
    const ownMarkers = readMessageMarkers(messages, shape);
    placeMarkers({ mode: "auto", own: messages, ownMarkers, messages, breakpoints: [3, 9], anchor: 5, shape });
    expect(messages.map((message) => reads.get(message))).toEqual(messages.map(() => 1));
  });

  it("are not looked for in values that are null, nor placed on an empty system text", () => {
    const messages = turns(5).with(1, { role: "assistant", content: null });
    const request = { messages, system: null, cache_control: null };
    expect(marked(place({ request, mode: "follow" }))).toEqual({});
    expect(marked(place({ request, breakpoints: [1] }))).toEqual({ 3: ["5m"], 4: ["5m"] });
    const edited = { role: "user", content: [null] };
    expect(placeIn(request, { mode: "none", messages: [edited], breakpoints: [] }).messages).toEqual([edited]);
    const tools = [{ name: "read" }];
    expect(place({ request: { tools, system: "" } }).tools).toEqual([{ name: "read", cache_control: short }]);
  });

  it("are never on thinking or empty text", () => {
    const thinking = { type: "thinking", thinking: "hm", signature: "s" };
    const redacted = { type: "redacted_thinking", data: "x" };
    const content = [{ type: "text", text: "a" }, { type: "text", text: "" }, thinking, redacted];
    const messages = [...turns(1), { role: "assistant", content }, { role: "user", content: [] }];
    expect(place({ messages, breakpoints: [1] }).messages).toEqual([
      messages[0],
      { role: "assistant", content: [{ ...content[0], cache_control: short }, ...content.slice(1)] },
      messages[2],
    ]);
  });

  it("of earlier calls are removed from edited messages", () => {
    const result = {
      type: "tool_result",
      tool_use_id: "a",
      content: [{ type: "text", text: "x", cache_control: short }],
    };
    const edited = {
      role: "user",
      content: [
        { ...result, cache_control: short },
        { type: "text", text: "y" },
      ],
    };
    const request = { messages: turns(3) };
    const messages = [edited, ...turns(3).slice(1)];
    const placed = placeIn(request, { mode: "none", messages, breakpoints: [] });
    expect(placed.messages[0]).toEqual({
      role: "user",
      content: [
        { ...result, content: [{ type: "text", text: "x" }] },
        { type: "text", text: "y" },
      ],
    });
    expect(marked(placed)).toEqual({});
    const clean = { role: "user", content: [{ type: "text", text: "shorter" }] };
    expect(placeIn(request, { mode: "none", messages: [clean], breakpoints: [] }).messages[0]).toBe(clean);
  });

  it("leave everything unchanged if none is placed", () => {
    const request = { tools: [{ name: "read" }], system: "s", messages: turns(4) };
    const placed = placeIn(request, { mode: "follow", messages: request.messages, breakpoints: [1] });
    expect(placed.tools).toBe(request.tools);
    expect(placed.messages.every((message, index) => message === request.messages[index])).toBe(true);
  });
});

it("a valid request stays valid with more markers, and the caller's object does not change", () => {
  const places = fc.uniqueArray(fc.nat(8), { maxLength: 4 });
  const automatics = fc.constantFrom(undefined, undefined, "5m" as const, "1h" as const);
  const cuts = fc.uniqueArray(fc.nat(6), { maxLength: 2 });
  fc.assert(
    fc.property(places, fc.nat(4), automatics, cuts, (marks, hours, automatic, breakpoints) => {
      const given = new Map(
        marks.toSorted((a, b) => a - b).map((at, index) => [at, index < hours ? "1h" : "5m"] as const),
      );
      const request = deepFreeze(requestWith(given, automatic));
      fc.pre(errorsIn(request).length === 0);
      const placed = placeIn(request, {
        mode: "auto",
        messages: request.messages,
        breakpoints: breakpoints.toSorted((a, b) => a - b),
      });
      expect(errorsIn({ ...request, ...placed })).toEqual([]);
      expect(readMarkers([placed.tools, placed.system, placed.messages]).length).toBeGreaterThan(0);
    }),
    { numRuns: process.env.PLIMSOLL_DEEP === "1" ? 10_000 : 100 },
  );
});

describe("by default", () => {
  const [minutes, anHour] = [300_000, 3_600_000];
  const model = "claude-sonnet-5";
  const cachePrice = priceOf({ provider: "anthropic", model });

  it("markers are added for Anthropic's models, and elsewhere only if the request has some", () => {
    expect(modeFor(undefined, model)).toBe("auto");
    expect(modeFor(undefined, "gpt-5")).toBe("follow");
    expect(modeFor(undefined, undefined)).toBe("follow");
    expect(modeFor("none", model)).toBe("none");
  });

  it("the lifetime is chosen by price where Anthropic serves the model", () => {
    expect(cachePlan({}, model, [])).toEqual({ cacheLifetimeMs: minutes, cachePrice });
    for (const elsewhere of ["claude-sonnet-5@20260101", "eu.anthropic.claude-sonnet-5", "gpt-5", undefined])
      expect(cachePlan({ breakpoints: "auto" }, elsewhere, []).cachePrice).toBeUndefined();
    expect(cachePlan({ ttl: "auto" }, "claude-sonnet-5@20260101", []).cachePrice).toBeDefined();
    for (const breakpoints of ["follow", "none"] as const)
      expect(cachePlan({ breakpoints }, model, []).cachePrice).toBeUndefined();
  });

  it("the lifetime is the caller's if there is one, first of all that of the markers in the request", () => {
    const plan = (ttl: "auto" | Lifetime | undefined, asked: readonly Lifetime[]) => cachePlan({ ttl }, model, asked);
    expect(plan("1h", [])).toEqual({ cacheLifetimeMs: anHour, cachePrice: undefined });
    expect(plan("5m", [])).toEqual({ cacheLifetimeMs: minutes, cachePrice: undefined });
    expect(plan("1h", ["5m"])).toEqual({ cacheLifetimeMs: minutes, cachePrice: undefined });
    for (const ttl of ["auto", "5m", undefined] as const)
      expect(plan(ttl, ["1h", "5m"])).toEqual({ cacheLifetimeMs: anHour, cachePrice: undefined });
  });

  it("added markers live five minutes, unless the option or the choice by price says otherwise", () => {
    expect(addedMarkers({}, undefined)).toEqual({ lifetime: "5m", anchor: undefined });
    expect(addedMarkers({ ttl: "auto" }, undefined).lifetime).toBe("5m");
    expect(addedMarkers({ ttl: "1h" }, undefined).lifetime).toBe("1h");
    expect(addedMarkers({ ttl: "auto" }, { ttl: "1h", anchor: 3 })).toEqual({ lifetime: "1h", anchor: 3 });
  });
});

describe("a tail that is not in the next request", () => {
  const call = (id: string) => ({ role: "assistant", content: [{ type: "tool_use", id, name: "read", input: {} }] });
  const result = (id: string) => ({ type: "tool_result", tool_use_id: id, content: "a file" });
  const loop: object[] = [
    { role: "user", content: "Read the files." },
    call("a"),
    { role: "user", content: [result("a")] },
    call("b"),
    { role: "user", content: [result("b")] },
    call("c"),
  ];
  const clock = { type: "text", text: "It is noon." };
  const isMarked = (block: unknown) => readMarkers(block).length > 0;

  it("gets no marker behind tool results, which do", () => {
    const content = [result("c"), clock];
    const { messages } = place({ messages: [...loop, { role: "user", content }] });
    expect((messages.at(-1) as { content: unknown[] }).content.map(isMarked)).toEqual([true, false]);
    const apart = [...loop, { role: "user", content: [result("c")] }, { role: "user", content: [clock] }];
    expect(marked(place({ messages: apart }))).toEqual({ 5: ["5m"], 6: ["5m"] });
  });

  const marksOfLast = (messages: readonly object[]) =>
    (place({ messages }).messages.at(-1) as { content: unknown[] }).content.map(isMarked);
  const last = { role: "user", content: [result("c"), clock] };

  it("is marked too if the history shows that the client keeps such text", () => {
    const kept = loop.with(2, { role: "user", content: [result("a"), clock] });
    expect(marksOfLast([...kept, last])).toEqual([true, true]);
    const longer = [...kept.slice(0, -1), ...loop.slice(1, -1), ...loop.slice(1, -1), ...loop.slice(1)];
    expect(marksOfLast([...longer, last])).toEqual([true, true]);
    const apart = [...loop.slice(0, 3), { role: "user", content: "It is ten." }, ...loop.slice(3, -1)];
    expect(marksOfLast([...apart, ...loop.slice(1), last])).toEqual([true, true]);
  });

  it("is marked too while the history is too short to tell", () => {
    expect(marksOfLast([...loop.slice(0, 4), last])).toEqual([true, true]);
    expect(marksOfLast([last])).toEqual([true, true]);
  });

  it("is told from what people write between answers", () => {
    expect(marksOfLast([...turns(4), ...loop, last])).toEqual([true, false]);
    expect(marksOfLast([...turns(4), ...loop.slice(0, 4), last])).toEqual([true, true]);
  });

  it("is looked for in the last turn only", () => {
    const answered = [...loop.slice(0, 5), ...turns(2).slice(1), { role: "user", content: "Thanks." }];
    expect(marked(place({ messages: answered }))).toEqual({ 5: ["5m"], 6: ["5m"] });
  });

  it("is not expected after results alone, so that the end is marked once", () => {
    const messages = [...loop.slice(0, 2), { role: "user", content: [result("a")] }];
    const placed = place({ request: { messages, system: "s" }, breakpoints: [0] });
    expect(marked(placed)).toEqual({ 0: ["5m"], 1: ["5m"], 2: ["5m"] });
    expect(readMarkers(placed.system)).toEqual(["5m"]);
  });

  it("may be in any text, so that what is before the text is marked too", () => {
    expect(marked(place({ messages: turns(5) }))).toEqual({ 3: ["5m"], 4: ["5m"] });
    expect(marked(place({ messages: [...turns(5), { role: "user", content: [clock] }] }))).toEqual({
      ...{ 3: ["5m"], 4: ["5m"], 5: ["5m"] },
    });
    const prefilled = [...turns(3), { role: "assistant", content: "{" }];
    expect(marked(place({ messages: prefilled }))).toEqual({ 2: ["5m"], 3: ["5m"] });
  });

  it("stays without a marker if the caller marked the turn elsewhere", () => {
    const content = [{ ...result("c"), cache_control: short }, clock];
    expect(marksOfLast([loop[0]!, loop[5]!, { role: "user", content }])).toEqual([true, false]);
    const own = { role: "user", content: [{ ...result("c"), cache_control: short }] };
    const together = { role: "user", content: [result("d")] };
    for (const next of [{ role: "user", content: [clock] }, together])
      expect(marked(place({ messages: [loop[0]!, loop[5]!, own, next] }))).toEqual({ 1: ["5m"], 2: ["5m"] });
  });

  it("is not part of what the next request surely has", () => {
    expect(findStableMessage(turns(1))).toBe(0);
    expect(findStableMessage(turns(5))).toBe(3);
    expect(findStableMessage([...loop, last])).toBe(6);
    expect(findStableMessage([...loop, { role: "user", content: [result("c")] }])).toBe(6);
    const sdkResult = { role: "tool", content: [{ type: "tool-result", toolCallId: "c", toolName: "read" }] };
    expect(findStableMessage([...loop, sdkResult, { role: "user", content: "It is noon." }])).toBe(6);
  });
});

function errorsIn(request: object): unknown[] {
  return validateRequest(request, { provider: "anthropic" }).filter(({ severity }) => severity === "error");
}

/** Markers on a tool, on the system text, on each of seven messages, and on the request itself. */
function requestWith(given: ReadonlyMap<number, Lifetime>, automatic: Lifetime | undefined) {
  const marker = (lifetime: Lifetime | undefined) => (lifetime === "1h" ? hour : short);
  const at = <Block extends object>(index: number, block: Block): Block =>
    given.has(index) ? { ...block, cache_control: marker(given.get(index)) } : block;
  const messages = turns(7).map((message, index) => {
    const { role, content } = message as Fields;
    const text = typeof content === "string" ? content : "an answer";
    return { role, content: [at(index + 2, { type: "text", text })] };
  });
  return {
    model: "claude-sonnet-5",
    max_tokens: 100,
    tools: [at(0, { name: "read", input_schema: { type: "object" } })],
    system: [at(1, { type: "text", text: "Be brief." })],
    messages,
    ...(automatic !== undefined && { cache_control: marker(automatic) }),
  };
}

function deepFreeze<Value>(value: Value): Value {
  if (typeof value === "object" && value !== null) for (const each of Object.values(value)) deepFreeze(each);
  return Object.freeze(value);
}

describe("markers of the caller", () => {
  const question = (marker: object) => ({
    role: "user",
    content: [{ type: "text", text: "question 0", cache_control: marker }],
  });

  it("are followed if only messages have some, with their lifetime", () => {
    const messages = turns(5).with(0, question(hour));
    const found = marked(place({ messages, mode: "follow" }));
    expect(Object.keys(found).length).toBeGreaterThan(1);
    expect(new Set(Object.values(found).flat())).toEqual(new Set(["1h"]));
  });

  it("are followed if the system text and a message have one each", () => {
    const messages = turns(5).with(0, question(short));
    const system = [{ type: "text", text: "You help.", cache_control: short }];
    expect(Object.keys(marked(place({ request: { system }, messages, mode: "follow" }))).length).toBeGreaterThan(1);
  });

  it("are not read from what is no list", () => {
    const shape = { ...anthropicMarkers, readMarkers: (): Lifetime[] => ["5m"] };
    expect(readMessageMarkers(undefined as unknown as object[], shape).size).toBe(0);
  });
});

it("the beginning of an answer that the model continues is not stable", () => {
  expect(findStableMessage(turns(4))).toBe(2);
});
