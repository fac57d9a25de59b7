import { describe, expect, it } from "vitest";
import { createMessageLens, validateRequest } from "../../../core/messages/index.ts";
import { createCounter } from "../../../core/tokens/index.ts";
import { assistant, exchange, exchanges, fill, user } from "../exchanges.contract.ts";
import { createTrimmer } from "../trimmer.ts";
import type { TrimmerOptions } from "../trimmer-options.ts";
import { createPreparation } from "./rfc.ts";

const counter = await createCounter("bytes/4");
const create = (options: Partial<TrimmerOptions>) =>
  createTrimmer({ contextWindow: 10_000, reserve: 0, counter, format: "anthropic", keep: 4, ...options });
const text = (value: unknown) => JSON.stringify(value);

/** Returns the boundary after each turn, if `keep` asks for more turns than fit. */
async function boundaries(policy: "rfc" | "rfc-headroom", turns: number): Promise<number[]> {
  const trimmer = await create({ policy, keep: 50 });
  const messages = [user("go")];
  return Array.from({ length: turns }, (_each, index) => {
    messages.push(...exchange(index));
    return trimmer.reduce({ messages }).stats.boundary;
  });
}

const moves = (values: readonly number[]) =>
  values.filter((value, index) => index > 0 && value !== values[index - 1]).length;

describe("rfc-headroom", () => {
  it("keeps the boundary for many turns, while rfc moves it on each", async () => {
    const [plain, headroom] = [await boundaries("rfc", 90), await boundaries("rfc-headroom", 90)];
    expect(moves(headroom)).toBeGreaterThan(1);
    expect(moves(headroom)).toBeLessThan(moves(plain) / 3);
    for (const values of [plain, headroom]) expect(values).toEqual([...values].sort((a, b) => a - b));
  });

  it("leaves a message alone if a placeholder would make it longer, which rfc does not", async () => {
    const messages = [user("go"), assistant("ok"), user("more"), ...exchanges(60)];
    const headroom = (await create({ policy: "rfc-headroom" })).reduce({ messages });
    const plain = (await create({ policy: "rfc" })).reduce({ messages });
    expect(headroom.messages[1]).toBe(messages[1]);
    expect(text(plain.messages[1])).toContain("[trimmed]");
    expect(text(headroom.messages[4])).toContain("[trimmed]");
  });
});

describe.each(["rfc", "rfc-headroom"] as const)("%s over messages of Anthropic", (policy) => {
  const long = exchanges(60, { thinking: 200, text: 200, said: "and mind the tests" });
  const picture = { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } };
  const shown = { role: "user", content: [picture, { type: "text", text: "like this" }] };
  const messages = [shown, ...long];

  it("trims results, and not what the person says beside them", async () => {
    const { messages: sent } = (await create({ policy })).reduce({ messages });
    expect(sent[0]).toBe(shown);
    expect(sent[2]).toEqual({
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: "call_0", content: "[trimmed]" },
        { type: "text", text: "and mind the tests" },
      ],
    });
  });

  it("trims the assistant's text, drops its thinking and keeps its calls whole", async () => {
    const { messages: sent } = (await create({ policy })).reduce({ messages });
    const [, , call] = (long[0] as { content: object[] }).content;
    expect(sent[1]).toEqual({ role: "assistant", content: [{ type: "text", text: "[trimmed]" }, call] });
    expect(validateRequest(sent, { strict: true })).toEqual([]);
  });

  it("reports by how much a history is too large if nothing more can be trimmed", async () => {
    const only = [user(fill("plan ", 60_000)), ...exchanges(3)];
    const { overflow, stats } = (await create({ policy })).reduce({ messages: only });
    expect(overflow).toMatchObject({
      limit: stats.threshold,
      largest: [{ path: "messages[0].content[0]", kind: "text" }, {}, {}],
    });
    expect(overflow!.tokens).toBeGreaterThan(17_000);
  });

  it("merges neighbours of the same role, drops repeated results and removes checkpoint tags", async () => {
    const [call, answer] = exchange(0);
    const again = { type: "tool_result", tool_use_id: "call_0", content: "the last one" };
    const input = [
      user("go"),
      user("on <checkpoint_id>7</checkpoint_id>"),
      call!,
      answer!,
      { role: "user", content: [again] },
    ];
    const { messages: sent, isEpoch } = (await create({ policy })).reduce({ messages: input });
    expect(isEpoch).toBe(false);
    expect(sent).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "go" },
          { type: "text", text: "on" },
        ],
      },
      call,
      { role: "user", content: [again] },
    ]);
    expect(sent[1]).toBe(call);
  });

  it("drops a text that was only a checkpoint tag, and leaves a placeholder in a message of nothing else", async () => {
    const tag = "<checkpoint_id>7</checkpoint_id>";
    const input = [
      user(tag),
      said("assistant", tag),
      { role: "user", content: [...said("user", tag).content, ...said("user", "on").content] },
    ];
    const { messages: sent } = (await create({ policy })).reduce({ messages: input });
    expect(sent).toEqual([user("[trimmed]"), said("assistant", "[trimmed]"), said("user", "on")]);
    expect(validateRequest([...sent], { strict: true })).toEqual([]);
    const thought = {
      role: "assistant",
      content: [{ type: "thinking", thinking: "hm", signature: "s" }, ...said("", tag).content],
    };
    const after = (await create({ policy })).reduce({ messages: [user("go"), thought, user("on")] });
    expect(validateRequest([...after.messages], { strict: true })).toEqual([]);
  });

  it("notices an edit in place inside a merged message", async () => {
    const trimmer = await create({ policy });
    const edited = { role: "user", content: [{ type: "text", text: "first" }] };
    const input = [user("go"), edited, assistant("ok"), user("more")];
    trimmer.reduce({ messages: input });
    edited.content.push({ type: "text", text: fill("second ", 400) });
    const { messages: sent, stats } = trimmer.reduce({ messages: input });
    expect(text(sent)).toContain("second");
    expect(stats.after).toBeGreaterThan(100);
  });
});

const lens = createMessageLens([], { counter, format: "anthropic" });
const reparse = <Value>(value: Value): Value => JSON.parse(JSON.stringify(value)) as Value;
const said = (role: string, text: string) => ({ role, content: [{ type: "text", text }] });
const talk = (turns: number) =>
  Array.from({ length: turns }, (_each, turn) => [said("user", `u${turn}`), said("assistant", `a${turn}`)]).flat();
/** Prepares the messages as if they were seen for the first time. */
const fresh = (messages: readonly object[]) => createPreparer()(messages);

function createPreparer(): (messages: readonly object[], known?: number) => readonly object[] {
  const prepare = createPreparation();
  return (messages, known = 0) => prepare({ messages, known }, lens).messages;
}

it("a tag that is added to one of the newest messages in place is removed, however many messages follow", () => {
  const prepare = createPreparer();
  const block = { type: "text", text: "one" };
  const messages = [...talk(2), { role: "user", content: [block] }];
  prepare(messages);
  block.text = "<checkpoint_id>c1</checkpoint_id> two";
  messages.push(said("assistant", "ok"), ...talk(10));
  expect(prepare(messages)[4]).toEqual(said("user", "two"));
});

it("a parsed history is sent as its new objects, and merged messages stay the same objects", () => {
  const prepare = createPreparer();
  const messages = [...talk(3), said("user", "and"), said("user", "then"), said("assistant", "ok"), ...talk(8)];
  const before = [...prepare(messages)];
  const again = reparse(messages);
  const joined = prepare(again);
  expect(joined).toEqual(before);
  expect(joined[6]).toBe(before[6]);
  expect(joined[5]).toBe(again[5]);
});

it("a change in the middle, a shorter history and a malformed one leave no wrong state", () => {
  const prepare = createPreparer();
  const messages = [...talk(4), said("user", "and"), said("user", "then"), said("assistant", "ok"), ...talk(8)];
  const steps: readonly (readonly object[])[] = [
    messages,
    reparse(messages).with(3, said("user", "and more")),
    messages.slice(0, 9),
    reparse(messages),
    reparse(messages).with(8, said("assistant", "instead")),
    messages,
  ];
  for (const step of steps) {
    expect(() => prepare([...step.slice(0, 5), null as unknown as object])).toThrow("messages[5]");
    expect(prepare(step)).toEqual(fresh(step));
  }
});

it("a history that is known to have grown is prepared as one that is compared", () => {
  const prepare = createPreparation();
  const messages: object[] = [];
  let before: readonly object[] = [];
  for (const message of [...talk(9), said("user", "and"), said("user", "then"), said("assistant", "ok"), ...talk(9)]) {
    const length = messages.push(message) - 1;
    const { messages: joined, known } = prepare({ messages, known: length }, lens);
    expect(joined).toEqual(fresh(messages));
    for (let index = 0; index < known; index++) expect(joined[index]).toBe(before[index]);
    expect(known).toBeGreaterThan(joined.length - 12);
    before = [...joined];
  }
});
