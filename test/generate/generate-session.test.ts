import { describe, expect, it } from "vitest";
import { createCounter } from "../../src/core/tokens/index.ts";
import { generateSession, type SessionOptions } from "./generate-session.ts";
import type { ProfileName } from "./profiles.ts";
import { isCall, isResult } from "./read-blocks.ts";
import type { ResultBlock, SessionBlock, SessionMessage } from "./session-message.ts";

const isDeep = process.env.PLIMSOLL_DEEP === "1";
const sessions = isDeep ? 20 : 4;
const profileNames: readonly ProfileName[] = ["coding", "search", "chat"];
const generate = (options: Partial<SessionOptions> = {}) => generateSession({ seed: 1, turns: 60, ...options });

describe("a generated session", () => {
  it("is the same for the same seed, and another for another", () => {
    expect(JSON.stringify(generate())).toBe(JSON.stringify(generate()));
    expect(JSON.stringify(generate({ seed: 2 }).messages)).not.toBe(JSON.stringify(generate().messages));
  });

  it.each(profileNames)("is one that a provider takes: %s", (profile) => {
    for (let seed = 1; seed <= sessions; seed++) {
      const { messages } = generate({ seed, profile });
      const turns = messages.filter(({ role }) => role !== "system");
      expect(turns.map(({ role }) => role)).toEqual(
        turns.map((_turn, index) => (index % 2 === 0 ? "user" : "assistant")),
      );
      for (const [index, { content }] of turns.entries()) {
        const calls = content.filter(isCall).map(({ id }) => id);
        const results = turns[index + 1]?.content.filter(isResult).map((each) => each.tool_use_id) ?? [];
        expect(results).toEqual(calls);
        expect(content.every((block) => block.type !== "text" || block.text.trim() !== "")).toBe(true);
      }
      const ids = turns.flatMap(({ content }) => content.filter(isCall).map(({ id }) => id));
      expect(new Set(ids).size).toBe(ids.length);
    }
  });

  it.each([1, 2, 60])("has as many turns of the assistant as asked: %d", (turns) => {
    const { messages } = generate({ turns });
    expect(messages.filter(({ role }) => role === "assistant").length).toBe(turns);
    expect(messages.at(-1)?.role).toBe("assistant");
  });

  it("begins the same however long it gets, up to the turn that ends it", () => {
    const [short, long] = [generate({ turns: 20 }).messages, generate({ turns: 40 }).messages];
    expect(long.slice(0, short.length - 1)).toEqual(short.slice(0, -1));
  });

  it("has a time for each message that never goes back", () => {
    const { messages, times } = generate({ turns: 200 });
    expect(times.length).toBe(messages.length);
    expect(times.every((time, index) => index === 0 || time >= times[index - 1]!)).toBe(true);
    const pauses = times.filter((time, index) => index > 0 && time - times[index - 1]! > 300_000);
    expect(pauses.length).toBeGreaterThan(0);
  });

  it("shows an edit in the next read of the file", () => {
    const { messages } = generate({ turns: 400 });
    const calls = messages.flatMap(({ content }) => content.filter(isCall));
    const reads = calls.filter(({ name }) => name === "read_file").map(({ input }) => input.file_path);
    expect(new Set(reads).size).toBeLessThan(reads.length * 0.6);
    const edits = calls.filter(({ name }) => name === "edit_file").map(({ input }) => String(input.new_string));
    const results = messages.flatMap(({ content }) => content.filter(isResult)).map((each) => String(each.content));
    const lines = new Set(results.flatMap((text) => text.split("\n").map((line) => line.replace(/^ *\d+\t/, ""))));
    const seen = edits.flatMap((text) => text.split("\n")).filter((line) => lines.has(line));
    expect(seen.length).toBeGreaterThan(edits.length);
  });

  it.each([
    [{ turns: 0 }, "turns is 0"],
    [{ turns: 1.5 }, "turns is 1.5"],
    [{ seed: Number.NaN }, "seed is NaN"],
    [{ profile: "poetry" as ProfileName }, 'no profile "poetry"'],
  ])("refuses wrong arguments: %o", (options, problem) => {
    expect(() => generate(options)).toThrow(expect.objectContaining({ code: "invalid_argument", message: problem }));
  });
});

// Aggregates of recorded sessions of the kind that each profile stands for (2026-11), and how far off a profile may be.
const recorded: Record<ProfileName, Facts> = {
  coding: {
    result: 0.712,
    call: 0.15,
    text: 0.03,
    thinking: 0.081,
    user: 0.028,
    system: 0,
    large: 0.17,
    largeTokens: 0.76,
    huge: 0.025,
  },
  search: {
    result: 0.8,
    call: 0.077,
    text: 0.036,
    thinking: 0,
    user: 0.018,
    system: 0.069,
    large: 0.25,
    largeTokens: 0.85,
    huge: 0.028,
  },
  chat: {
    result: 0.662,
    call: 0.079,
    text: 0.096,
    thinking: 0,
    user: 0.021,
    system: 0.142,
    large: 0.05,
    largeTokens: 0.2,
    huge: 0,
  },
};
interface Facts {
  readonly result: number;
  readonly call: number;
  readonly text: number;
  readonly thinking: number;
  readonly user: number;
  readonly system: number;
  /** Results above 1,000 tokens: share of results, of their tokens; above 5,000. */
  readonly large: number;
  readonly largeTokens: number;
  readonly huge: number;
}
const measured: Record<ProfileName, { sessions: number; turns: number }> = {
  coding: { sessions: 12, turns: 180 },
  search: { sessions: 12, turns: 125 },
  // Short ones: it takes more of them until shares settle.
  chat: { sessions: 80, turns: 27 },
};

describe("the profiles", () => {
  it.each(isDeep ? profileNames : ["chat" as const])(
    "spend their tokens as recorded sessions do: %s",
    async (profile) => {
      const counter = await createCounter("estimate:o200k");
      const { sessions: length, turns } = measured[profile];
      const histories = Array.from({ length }, (_each, seed) => generate({ seed, turns, profile }).messages);
      const facts = measure(histories, counter.count);
      for (const [key, expected] of Object.entries(recorded[profile])) {
        const tolerance = Math.max(0.02, 0.2 * expected);
        expect.soft(facts[key as keyof Facts], key).toBeGreaterThan(expected - tolerance);
        expect.soft(facts[key as keyof Facts], key).toBeLessThan(expected + tolerance);
      }
    },
  );
});

function measure(histories: readonly (readonly SessionMessage[])[], count: (text: string) => number): Facts {
  const tokens = { result: 0, call: 0, text: 0, thinking: 0, user: 0, system: 0 };
  const sizes: number[] = [];
  for (const { role, content } of histories.flat()) {
    for (const block of content) {
      const size = count(textOf(block));
      if (isResult(block)) sizes.push(size);
      tokens[kindOf(block, role)] += size;
    }
  }
  const total = Object.values(tokens).reduce((sum, each) => sum + each, 0);
  const shares = Object.fromEntries(Object.entries(tokens).map(([kind, each]) => [kind, each / total]));
  const above = (least: number) => sizes.filter((size) => size > least);
  const large = above(1000);
  return {
    ...(shares as typeof tokens),
    large: large.length / sizes.length,
    largeTokens: large.reduce((sum, each) => sum + each, 0) / tokens.result,
    huge: above(5000).length / sizes.length,
  };
}

function kindOf(
  block: SessionBlock,
  role: SessionMessage["role"],
): "result" | "call" | "text" | "thinking" | "user" | "system" {
  if (isResult(block)) return "result";
  if (isCall(block)) return "call";
  if (block.type === "thinking" || block.type === "redacted_thinking") return "thinking";
  return role === "assistant" ? "text" : role;
}

function textOf(block: SessionBlock): string {
  if (block.type === "text") return block.text;
  if (block.type === "thinking") return block.thinking;
  if (isCall(block)) return block.name + JSON.stringify(block.input);
  return isResult(block) ? String((block as ResultBlock).content) : "";
}
