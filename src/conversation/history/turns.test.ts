import { describe, expect, it } from "vitest";
import { createMessageLens, type FormatName, validateRequest } from "../../core/messages/index.ts";
import { createCounter } from "../../core/tokens/index.ts";
import { fill, user } from "./exchanges.contract.ts";
import type { TrackedMessage } from "./tracked-history.ts";
import { createTrimmer } from "./trimmer.ts";
import { createTurnReader } from "./turns.ts";

const counter = await createCounter("bytes/4");

function track(messages: readonly object[], format: FormatName): readonly TrackedMessage[] {
  const lens = createMessageLens(messages, { counter, format });
  return messages.map(
    (source, index) =>
      ({ source, chain: `${index} ${JSON.stringify(source)}`, original: lens.read(source, index) }) as TrackedMessage,
  );
}

/** Returns start and end of each turn, and what would be removed with it. */
function look(messages: readonly object[], format: FormatName) {
  const turns = createTurnReader()(track(messages, format));
  return turns.list.map((turn) => {
    const exchange = turns.exchange(turn);
    const places = exchange?.results.map(({ message }) => message);
    return { turn: [turn.start, turn.end, turn.next], from: exchange?.turn.start, results: places };
  });
}

const thought = (id: string) => ({
  type: "reasoning",
  id: `rs_${id}`,
  summary: [],
  encrypted_content: "A".repeat(400),
});
const call = (id: string) => ({
  type: "function_call",
  id: `fc_${id}`,
  call_id: id,
  name: "f",
  arguments: "{}",
});
const output = (id: string, length = 40) => ({
  type: "function_call_output",
  call_id: id,
  output: fill(`${id} `, length),
});
const go = { role: "user", content: "go" };

describe("calls of one reasoning", () => {
  it("are removed together if results are between them", () => {
    const run = [thought("a"), call("a"), output("a"), call("b"), output("b")];
    expect(look([go, ...run, thought("c"), call("c"), output("c")], "responses")).toEqual([
      { turn: [1, 3, 4], from: undefined, results: undefined },
      { turn: [4, 5, 6], from: 1, results: [3, 5] },
      { turn: [6, 8, 9], from: 6, results: [8] },
    ]);
  });

  it("end at a message, at a call that the provider cannot look up, and without reasoning", () => {
    const { id: _id, ...unknown } = call("b");
    const first = [go, thought("a"), call("a"), output("a")];
    const alone = { turn: [1, 3, 4], from: 1, results: [3] };
    expect(look([...first, { role: "user", content: "and" }, call("b"), output("b")], "responses")[0]).toEqual({
      ...alone,
      turn: [1, 3, 5],
    });
    expect(look([...first, unknown, output("b")], "responses")[0]).toEqual(alone);
    const said = { type: "message", role: "assistant", content: "so" };
    expect(look([...first, said, call("b"), output("b")], "responses")[0]).toEqual(alone);
    expect(look([go, call("a"), output("a"), call("b"), output("b")], "responses")).toEqual([
      { turn: [1, 2, 3], from: 1, results: [2] },
      { turn: [3, 4, 5], from: 3, results: [4] },
    ]);
  });

  it("are not treated as one response without limit", () => {
    const later = Array.from({ length: 200 }, (_each, index) => [call(`${index}`), output(`${index}`)]).flat();
    const seen = look([go, thought("a"), ...later], "responses");
    expect(seen.filter(({ from }) => from === undefined).length).toBeLessThan(40);
    expect(seen.at(-1)?.from).toBe(400);
  });

  it("never lose their reasoning, however often a history is trimmed", async () => {
    const trimmer = await createTrimmer({ contextWindow: 5000, reserve: 0, counter, format: "responses" });
    const messages: object[] = [go];
    let epochs = 0;
    for (let turn = 0; turn < 60; turn++) {
      const [a, b] = [`a${turn}`, `b${turn}`];
      const size = 200 + ((turn * 977) % 1500);
      messages.push(thought(a), call(a), output(a, size), call(b), output(b, size));
      const reduction = trimmer.reduce({ messages });
      epochs += Number(reduction.isEpoch);
      const ids = new Set(reduction.messages.map((item) => (item as { id?: string }).id));
      for (const id of ids) if (id?.startsWith("fc_b")) expect(ids).toContain(id.replace("fc_b", "rs_a"));
      expect(validateRequest(reduction.messages, { format: "responses", strict: true })).toEqual([]);
      expect(reduction.overflow).toBe(undefined);
    }
    expect(epochs).toBeGreaterThan(3);
  });
});

const asked = { type: "server_tool_use", id: "s1", name: "web_search", input: { query: "q" } };
const found = (id = "s1") => ({
  type: "web_search_tool_result",
  tool_use_id: id,
  content: [{ type: "web_search_result", url: "u", title: fill("t", 2000) }],
});
const said = { type: "text", text: "done" };
const assistant = (...content: object[]) => ({ role: "assistant", content });

describe("what the provider's own tools did", () => {
  it("is removed as a whole if call and result are in one turn", () => {
    const messages = [user("go"), assistant(asked, found(), said), user("more")];
    expect(look(messages, "anthropic")).toEqual([{ turn: [1, 2, 3], from: 1, results: [1] }]);
    const use = { type: "tool_use", id: "c1", name: "f", input: {} };
    const results = { role: "user", content: [{ type: "tool_result", tool_use_id: "c1", content: "x" }] };
    const both = [user("go"), assistant(asked, found(), use), results];
    expect(look(both, "anthropic")).toEqual([{ turn: [1, 2, 3], from: 1, results: [1, 2] }]);
  });

  it("stays if a result is missing or answers no call", () => {
    for (const turn of [assistant(asked, said), assistant(found("s0"), said), assistant(asked, found("s2"))])
      expect(look([user("go"), turn], "anthropic")[0]?.from).toBe(undefined);
  });

  it("is removed with the turns in which its code called the caller's tools, unless the person spoke between", () => {
    const use = (id: string) => ({ type: "tool_use", id, name: "f", input: {} });
    const result = (id: string) => ({ type: "tool_result", tool_use_id: id, content: "x" });
    const results = (id: string, ...more: object[]) => ({ role: "user", content: [result(id), ...more] });
    const turns = (...more: object[]) => [
      ...[user("go"), assistant(asked, use("a")), results("a", ...more)],
      ...[assistant(use("b")), results("b"), assistant(found(), said), user("more")],
    ];
    expect(look(turns(), "anthropic")).toEqual([
      { turn: [1, 2, 3], from: undefined, results: undefined },
      { turn: [3, 4, 5], from: undefined, results: undefined },
      { turn: [5, 6, 7], from: 1, results: [2, 4, 5] },
    ]);
    const spoken = look(turns({ type: "text", text: "wait" }), "anthropic");
    expect(spoken.map(({ from }) => from)).toEqual([undefined, 3, undefined]);
  });

  it("is trimmed like the results of the caller's tools", async () => {
    const shot = { type: "computer_screenshot", image_url: "https://example.org/a.png" };
    const next = { role: "user", content: "next" };
    const ran = { toolName: "f", providerExecuted: true };
    const gave = { type: "text", value: fill("x ", 2000) };
    const sessions: readonly (readonly [FormatName, (id: string) => readonly object[]])[] = [
      ["anthropic", (id) => [assistant({ ...asked, id }, found(id), said), next]],
      [
        "responses",
        (id) => [
          { type: "computer_call", call_id: id, action: { type: "screenshot" } },
          { type: "computer_call_output", call_id: id, output: shot },
        ],
      ],
      ["responses", (id) => [{ type: "mcp_call", id, name: "f", arguments: "{}", output: gave.value }, next]],
      [
        "ai-sdk",
        (toolCallId) => [
          assistant(
            { type: "tool-call", toolCallId, ...ran, input: {} },
            { type: "tool-result", toolCallId, ...ran, output: gave },
          ),
          next,
        ],
      ],
    ];
    for (const [format, turn] of sessions) {
      const trimmer = await createTrimmer({ contextWindow: 10_000, reserve: 0, counter, format });
      const turns = Array.from({ length: 60 }, (_each, index) => turn(`s${index}`)).flat();
      const { messages, overflow } = trimmer.reduce({ messages: [go, ...turns] });
      expect(overflow).toBe(undefined);
      expect(validateRequest(messages, { format, strict: true })).toEqual([]);
    }
  });
});

describe("a history that is read again", () => {
  const use = (id: string) => ({ type: "tool_use", id, name: "f", input: {} });
  const results = (id: string) => ({ role: "user", content: [{ type: "tool_result", tool_use_id: id, content: "x" }] });
  const exchange = (id: string, ...before: object[]) => [assistant(...before, use(id)), results(id)];
  const search = (id: string) => [
    ...exchange(`${id}a`, { ...asked, id }),
    ...[...exchange(`${id}b`), ...exchange(`${id}c`)],
    ...[assistant(found(id), said), user("more")],
  ];
  const searches = (name: string) => Array.from({ length: 30 }, (_each, index) => search(`${name}${index}`)).flat();

  it("has the turns that reading it as a whole gives, also after a rewind", () => {
    const read = createTurnReader();
    const [one, other] = [searches("s"), searches("t")];
    for (const messages of [one, [...one.slice(0, 95), ...other.slice(95)]]) {
      const whole = track(messages, "anthropic");
      for (let length = 80; length <= whole.length; length += 7) {
        const begun = whole.slice(0, length);
        expect(read(begun).list).toEqual(createTurnReader()(begun).list);
      }
    }
  });
});
