import { describe, expect, it } from "vitest";
import { validateRequest } from "../../../core/messages/index.ts";
import { createCounter } from "../../../core/tokens/index.ts";
import { assistant, exchange, exchanges, fill, user } from "../exchanges.contract.ts";
import { createTrimmer, type Reduction } from "../trimmer.ts";
import type { TrimmerOptions } from "../trimmer-options.ts";

const counter = await createCounter("bytes/4");
const create = (options: Partial<TrimmerOptions> = {}) =>
  createTrimmer({ contextWindow: 10_000, reserve: 0, counter, format: "anthropic", ...options });

/** Every call of a session, one for each assistant turn. */
async function replay(messages: readonly object[], options: Partial<TrimmerOptions> = {}): Promise<Reduction[]> {
  const trimmer = await create(options);
  const lengths = messages.flatMap((message, index) => (roleOf(message) === "assistant" && index > 0 ? [index] : []));
  return [...lengths, messages.length].map((length) => trimmer.reduce({ messages: messages.slice(0, length) }));
}

const roleOf = (message: object) => (message as { role: string }).role;
const text = (value: unknown) => JSON.stringify(value);

describe("the economic policy", () => {
  it("sends a history that fits unchanged", async () => {
    const messages = [user("go"), ...exchanges(8)];
    const reduction = (await create()).reduce({ messages });
    expect(reduction).toMatchObject({ isEpoch: false, breakpoints: [], metadata: {} });
    expect(reduction.messages).toEqual(messages);
    expect(reduction.messages.every((message, index) => message === messages[index])).toBe(true);
  });

  it("trims rarely and a lot at once, so that many turns fit after an epoch", async () => {
    const calls = await replay([user("go"), ...exchanges(300)]);
    const epochs = calls.filter(({ isEpoch }) => isEpoch);
    expect(epochs.length).toBeGreaterThan(3);
    expect(epochs.length).toBeLessThan(calls.length / 12);
    for (const { stats } of epochs) expect(stats.after).toBeLessThan(0.6 * stats.budget);
  });

  it("waits until the history almost fills its budget", async () => {
    const calls = await replay([user("go"), ...exchanges(60)]);
    const first = calls.findIndex(({ isEpoch }) => isEpoch);
    expect(calls[first - 1]!.stats.after).toBeGreaterThan(0.9 * calls[first]!.stats.budget);
  });

  it("trims the oldest turns first and leaves the newest whole", async () => {
    const messages = [user("go"), ...exchanges(60)];
    const { messages: sent, stats } = (await create()).reduce({ messages });
    expect(sent.slice(-8)).toEqual(messages.slice(-8));
    expect(stats.trimmed[0]).toBeLessThan(3);
    expect(stats.boundary).toBeGreaterThan(Math.max(...stats.trimmed));
    expect(sent[0]).toBe(messages[0]);
  });

  it("keeps the inputs of chosen tools as they are, or removes their exchanges", async () => {
    const writes = exchanges(80, { tool: "Write", input: 2_000, result: 60 });
    const sent = async (options: Partial<TrimmerOptions>) =>
      text((await replay([user("go"), ...writes], options)).map(({ messages }) => messages));
    const hasPlaceholder = /"body":"\[trimmed/;
    expect(await sent({})).toMatch(hasPlaceholder);
    expect(await sent({ keepInputs: ["Edit"] })).toMatch(hasPlaceholder);
    const kept = await replay([user("go"), ...writes], { keepInputs: ["Write"] });
    expect(text(kept.map(({ messages }) => messages))).not.toMatch(hasPlaceholder);
    for (const { stats } of kept) expect(stats.after).toBeLessThanOrEqual(stats.budget);
    expect(kept.at(-1)!.messages.length).toBeLessThan(writes.length / 2);
  });

  it("keeps more with gentle and less with frugal", async () => {
    const messages = [user("go"), ...exchanges(60)];
    const kept = async (policy: "gentle" | "economic" | "frugal") =>
      (await create({ policy })).reduce({ messages }).stats.kept;
    expect(await kept("gentle")).toBeGreaterThan(await kept("economic"));
    expect(await kept("economic")).toBeGreaterThan(await kept("frugal"));
  });

  it("leaves the results of excluded tools and pinned messages whole", async () => {
    const early = [...exchange(0, { tool: "todo", result: 900 }), ...exchange(1)];
    const messages = [user("go"), ...early, ...exchanges(60, {}, 2)];
    const isPinned = (message: object) => message === early[3];
    const { messages: sent } = (await create({ excludeTools: ["todo"], isPinned })).reduce({ messages });
    expect(sent).toContain(early[0]);
    expect(sent).toContain(early[1]);
    expect(sent).toContain(early[3]);
    expect(validateRequest(sent, { strict: true })).toEqual([]);
    const others = (await create()).reduce({ messages }).messages;
    expect(others).not.toContain(early[1]);
    expect(others).not.toContain(early[3]);
  });

  it("trims user messages that a program wrote, if that is allowed, and never the person's", async () => {
    const note = `<task-notification>\n${fill("tool output ", 1_200)}</task-notification>\n<system-reminder>x</system-reminder>`;
    const mixed = `<system-reminder>${fill("reminder ", 1_200)}</system-reminder> and please mind the tests`;
    const early = [user("go"), ...exchange(0, { said: note }), ...exchange(1, { said: mixed })];
    const messages = [...early, ...exchanges(60, {}, 2)];
    const sentWith = async (isTrimmable?: TrimmerOptions["isTrimmable"]) => {
      const { messages: sent } = (await create({ isTrimmable })).reduce({ messages });
      expect(validateRequest(sent, { strict: true })).toEqual([]);
      return text(sent);
    };
    expect(await sentWith()).toContain("tool output");
    const machineMade = await sentWith("machine-made");
    expect(machineMade).not.toContain("tool output");
    expect(machineMade).toMatch(/"text":"\[trimmed: text, \d lines\]"/);
    expect(machineMade).toContain("mind the tests");
    const own = await sentWith((_message, index) => index === 4);
    expect(own).toContain("tool output");
    expect(own).not.toContain("mind the tests");
  });

  it("keeps every word of the person, also beside results", async () => {
    const messages = [user("go"), ...exchanges(80, { said: "and mind the tests" })];
    for (const [turns, { messages: sent }] of (await replay(messages)).entries()) {
      expect(text(sent).match(/mind the tests/g)?.length ?? 0).toBe(turns);
      expect(validateRequest(sent, { strict: true })).toEqual([]);
    }
  });

  it("keeps the path of a trimmed input, and says how much is gone", async () => {
    const messages = [user("go"), ...exchanges(70, { input: 2_400, result: 40 })];
    const { messages: sent } = (await create({ policy: "gentle", contextWindow: 40_000 })).reduce({ messages });
    const inputs = sent.flatMap((message) => text(message).match(/"input":\{[^}]*\}/g) ?? []);
    const trimmed = inputs.filter((input) => input.includes("[trimmed"));
    expect(trimmed.length).toBeGreaterThan(2);
    for (const input of trimmed)
      expect(input).toMatch(/^"input":\{"file_path":"src\/file-\d+\.ts","body":"\[trimmed: input\]"\}$/);
    expect(validateRequest(sent, { strict: true })).toEqual([]);
  });

  it.each([
    ["alone", []],
    ["after a turn", [user("go"), ...exchange(0)]],
    ["after many turns", [user("go"), ...exchanges(60)]],
  ])("shortens the newest message that may be trimmed, and never erases it: %s", async (_name, before) => {
    const note = `<system-reminder>first line\n${fill("middle ", 90_000)}\nlast line</system-reminder>`;
    for (const isTrimmable of ["machine-made", () => true] as const) {
      const reduction = (await create({ isTrimmable })).reduce({ messages: [...before, user(note)] });
      expect(reduction.overflow).toBeUndefined();
      expect(reduction.stats.after).toBeLessThanOrEqual(reduction.stats.budget);
      const shown = text(reduction.messages.at(-1));
      expect(shown).toContain("first line");
      expect(shown).toContain("last line");
      expect(shown).toMatch(/\[trimmed: \d+ characters\]/);
      expect(shown.length).toBeGreaterThan(2_000);
    }
  });

  it("keeps the ends of the newest message that may be trimmed even if nothing fits", async () => {
    const note = `<system-reminder>first line\n${fill("middle ", 9_000)}\nlast line</system-reminder>`;
    const long = user(fill("person ", 60_000));
    const { messages: sent, overflow } = (await create({ isTrimmable: "machine-made" })).reduce({
      messages: [long, ...exchange(0), user(note)],
    });
    expect(overflow).toBeDefined();
    expect(sent[0]).toBe(long);
    expect(text(sent.at(-1))).toMatch(/first line.*trimmed: \d+ characters.*last line/);
  });

  it("keeps the beginning and the end of the newest result if it alone is too large", async () => {
    const result = `first line\n${fill("middle ", 90_000)}\nlast line`;
    const newest = exchange(1)[0]!;
    const answer = {
      role: "user",
      content: [{ type: "tool_result", tool_use_id: "call_1", content: result }],
    };
    const messages = [user("go"), ...exchange(0), newest, answer];
    const { messages: sent, overflow, stats } = (await create()).reduce({ messages });
    expect(overflow).toBeUndefined();
    expect(stats.after).toBeLessThanOrEqual(stats.budget);
    expect(stats.after).toBeGreaterThan(0.5 * stats.budget);
    const shown = text(sent.at(-1));
    expect(shown).toContain("first line");
    expect(shown).toContain("last line");
    expect(shown).toMatch(/\[trimmed: \d+ characters\]/);
  });

  it("keeps the beginning and the end of the newest text and input if they are too large", async () => {
    const long = (name: string) => `${name} begins\n${fill("middle ", 60_000)}\n${name} ends`;
    const newest = {
      role: "assistant",
      content: [
        { type: "text", text: long("text") },
        { type: "tool_use", id: "call_9", name: "write_file", input: { path: "src/a.ts", body: long("input") } },
      ],
    };
    const result = { role: "user", content: [{ type: "tool_result", tool_use_id: "call_9", content: "ok" }] };
    const { messages: sent, overflow, stats } = (await create()).reduce({ messages: [user("go"), newest, result] });
    expect(overflow).toBeUndefined();
    expect(stats.after).toBeGreaterThan(0.5 * stats.budget);
    const shown = text(sent[1]);
    for (const part of ["text begins", "text ends", "src/a.ts", "input begins", "input ends"])
      expect(shown).toContain(part);
    expect(validateRequest(sent, { strict: true })).toEqual([]);
  });

  it("trims the assistant's text last, and never the person's", async () => {
    const chat = Array.from({ length: 400 }, (_each, index) => [
      user(`question ${index}`),
      assistant(fill(`answer ${index} `, 90)),
    ]).flat();
    const messages = [...chat, user("and now?")];
    const { messages: sent, overflow } = (await create({ contextWindow: 9_000 })).reduce({ messages });
    expect(overflow).toBeUndefined();
    expect(sent.filter((message) => roleOf(message) === "user")).toEqual(
      messages.filter((message) => roleOf(message) === "user"),
    );
    expect(validateRequest(sent, { strict: true })).toEqual([]);
  });

  it("reports what is too large if the person's text alone does not fit, and trims everything else", async () => {
    const messages = [user(fill("plan ", 60_000)), ...exchanges(5), assistant("Done."), user("go on")];
    const { messages: sent, overflow, stats } = (await create()).reduce({ messages });
    expect(overflow).toMatchObject({ tokens: stats.after, limit: stats.budget });
    expect(overflow!.largest[0]).toEqual({
      path: "messages[0].content[0]",
      role: "user",
      kind: "text",
      tokens: 15_000,
    });
    expect(text(sent)).not.toContain("line 0");
    expect(validateRequest(sent, { strict: true })).toEqual([]);
  });
});

it("a boundary never moves back, even if there was nothing to trim", async () => {
  const trimmer = await create();
  const tools = [{ name: "ls", description: fill("words ", 12_000), input_schema: { type: "object" } }];
  const messages = [user(fill("plan ", 30_000)), assistant("ok"), user("more"), assistant("ok"), user("go")];
  const crowded = trimmer.reduce({ messages, tools });
  expect(crowded.overflow).toBeDefined();
  const alone = trimmer.reduce({ messages });
  expect(alone.overflow).toBeUndefined();
  expect(alone.stats.boundary).toBeGreaterThanOrEqual(crowded.stats.boundary);
  expect(alone.metadata).toEqual(crowded.metadata);
});

describe("a cold cache", () => {
  const messages = [user("go"), ...exchanges(34)];

  it("triggers an epoch early", async () => {
    const share = (await create()).reduce({ messages }).stats;
    expect(share.after / share.budget).toBeGreaterThan(0.65);
    expect((await create()).reduce({ messages }).isEpoch).toBe(false);
    expect((await create()).reduce({ messages }, { isCold: true }).isEpoch).toBe(true);
  });

  it("changes nothing if that is switched off, or if little can be saved", async () => {
    expect((await create({ trimWhenCold: false })).reduce({ messages }, { isCold: true }).isEpoch).toBe(false);
    const few = messages.slice(0, 21);
    expect((await create()).reduce({ messages: few }, { isCold: true }).isEpoch).toBe(false);
  });
});

describe("breakpoints", () => {
  const messages = [user("go"), ...exchanges(200).flatMap(withTalk)];

  it("mark a prefix that does not change until the next epoch", async () => {
    const calls = await replay(messages);
    for (const [index, call] of calls.entries()) {
      const next = calls[index + 1];
      const last = call.breakpoints.at(-1);
      if (next === undefined || next.isEpoch || last === undefined) continue;
      expect(next.breakpoints.at(-1)).toBe(last);
      expect(text(next.messages.slice(0, last + 1))).toBe(text(call.messages.slice(0, last + 1)));
    }
    expect(calls.filter(({ breakpoints }) => breakpoints.length > 0).length).toBeGreaterThan(20);
  });

  it("include, on the call that trims, a place whose prefix was sent before", async () => {
    const calls = await replay(messages);
    let checked = 0;
    for (const [index, call] of calls.entries()) {
      const [first] = call.breakpoints;
      if (!call.isEpoch || index === 0 || call.breakpoints.length < 2 || first === undefined) continue;
      const before = calls[index - 1]!.messages.slice(0, first + 1);
      expect(text(call.messages.slice(0, first + 1))).toBe(text(before));
      checked++;
    }
    expect(checked).toBeGreaterThan(1);
  });
});

/** From time to time the assistant answers and the person speaks. */
function withTalk(message: object, index: number): object[] {
  return index % 20 === 19 ? [message, assistant(`done with ${index}`), user(`then do ${index + 1}`)] : [message];
}
