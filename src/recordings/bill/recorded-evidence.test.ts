import { describe, expect, it } from "vitest";
import { readFacts } from "../sessions/index.ts";
import type { SessionFacts } from "../sessions/session-facts.ts";
import { findLosses } from "./find-losses.ts";
import { billSessions } from "./price-calls.ts";
import { billedCalls, sumTotals } from "./sum-calls.ts";

/** Writes lines of one session as Claude Code does. */
function createLines(version = "2.1.217", name = "u") {
  const lines: object[] = [];
  let minute = 0;
  let parent: string | null = null;
  const add = (fields: object): string => {
    const uuid = `${name}${lines.length}`;
    const timestamp = new Date(Date.UTC(2026, 5, 1, 8, 0, 0) + minute * 60_000).toISOString();
    lines.push({ uuid, parentUuid: parent, sessionId: "s", cwd: "/repo", version, timestamp, ...fields });
    parent = uuid;
    return uuid;
  };
  return {
    lines,
    add,
    wait(minutes: number) {
      minute += minutes;
    },
    prompt: (fields: object = {}) => add({ type: "user", message: { role: "user", content: "go on" }, ...fields }),
    /** `usage` is [read, written for an hour]. */
    answer(
      id: string,
      [read, written]: readonly [number, number],
      { message = {}, blocks = 1, ...fields }: AnswerFields = {},
    ) {
      minute += 1;
      const usage = {
        input_tokens: 2,
        output_tokens: 50,
        cache_read_input_tokens: read,
        cache_creation_input_tokens: written,
        cache_creation: { ephemeral_1h_input_tokens: written, ephemeral_5m_input_tokens: 0 },
      };
      const content = Array.from({ length: blocks }, () => ({ type: "text", text: "done" }));
      const own = {
        id,
        role: "assistant",
        model: "claude-sonnet-5",
        stop_reason: "end_turn",
        content,
        usage,
        ...message,
      };
      add({ type: "assistant", requestId: `r-${id}`, message: own, ...fields });
    },
  };
}

interface AnswerFields {
  readonly message?: object;
  readonly blocks?: number;
  readonly [field: string]: unknown;
}

const missed = (type: string) => ({ message: { diagnostics: { cache_miss_reason: { type } } } });

function facts(lines: readonly object[]): SessionFacts {
  return readFacts(lines.map((each) => JSON.stringify(each)).join("\n")) as SessionFacts;
}

function causes(lines: readonly object[], trims: readonly number[] = []) {
  const [session] = billSessions([facts(lines)]);
  return findLosses(session!, trims).map(({ cause, confidence }) => [cause, confidence].join(" "));
}

/** Two calls that fill the cache with 60,000 tokens, then what the test writes, then a call that reads 30,000. */
function lose(write: (session: ReturnType<typeof createLines>) => AnswerFields | undefined, version?: string) {
  const session = createLines(version);
  session.prompt({ thinkingMetadata: { level: "high", disabled: false } });
  session.answer("m1", [20_000, 20_000], { effort: "high" });
  session.prompt({ thinkingMetadata: { level: "high", disabled: false } });
  session.answer("m2", [40_000, 20_000], { effort: "high" });
  const fields = write(session);
  session.answer("m3", [30_000, 32_000], fields);
  return causes(session.lines);
}

describe("the cause of a cache loss", () => {
  const thinks = { thinkingMetadata: { level: "high", disabled: false } };
  it.each([
    ["system_changed", "system changed provider"],
    ["tools_changed", "tools changed provider"],
    ["messages_changed", "history edited provider"],
    ["model_changed", "model provider"],
    ["unavailable", "unexplained "],
  ])("is what the provider says: %s", (type, cause) => {
    const found = lose((session) => {
      session.prompt(thinks);
      return missed(type);
    });
    expect(found).toEqual([cause]);
  });

  it("is the provider's, not a mark that stands beside it", () => {
    const found = lose((session) => {
      session.add({ type: "last-prompt" });
      session.prompt();
      return { ...missed("system_changed"), effort: "low" };
    });
    expect(found).toEqual(["system changed provider"]);
  });

  it("is a switch of thinking, if the prompt shows one and the version did not change", () => {
    const write = (session: ReturnType<typeof createLines>) => {
      session.prompt();
      return undefined;
    };
    expect(lose(write)).toEqual(["thinking switched inferred"]);
    expect(lose((session) => void session.prompt({ version: "2.1.218" }))).toEqual(["resumed inferred"]);
  });

  it("is a change of effort", () => {
    expect(
      lose((session) => {
        session.prompt(thinks);
        return { effort: "low" };
      }),
    ).toEqual(["effort changed inferred"]);
  });

  it("is a restart, if the program ended between two prompts", () => {
    const restart = (session: ReturnType<typeof createLines>) => {
      session.add({ type: "last-prompt" });
      session.prompt(thinks);
      return undefined;
    };
    expect(lose(restart)).toEqual(["resumed inferred"]);
    const turnEnds = (session: ReturnType<typeof createLines>) => {
      session.add({ type: "system", subtype: "stop_hook_summary" });
      return restart(session);
    };
    expect(lose(turnEnds)).toEqual(["unexplained "]);
  });

  it("is a step of more than 20 blocks, of the answer and its results", () => {
    const step = (results: number) => (session: ReturnType<typeof createLines>) => {
      const content = Array.from({ length: results }, (_, index) => ({
        type: "tool_result",
        tool_use_id: `t${index}`,
        content: "ok",
      }));
      session.add({ type: "user", message: { role: "user", content } });
      return undefined;
    };
    expect(lose(step(20))).toEqual(["more than 20 blocks inferred"]);
    expect(lose(step(19))).toEqual(["unexplained "]);
  });

  it("is a request that shrank", () => {
    const session = createLines();
    session.prompt();
    session.answer("m1", [20_000, 40_000]);
    session.prompt();
    session.answer("m2", [50_000, 3_000]);
    expect(causes(session.lines)).toEqual(["request shrank usage"]);
  });

  it("is no pause that the read tokens contradict", () => {
    const session = createLines();
    session.prompt();
    session.answer("m1", [20_000, 20_000]);
    session.answer("m2", [40_000, 60_000]);
    session.wait(90);
    session.prompt();
    session.answer("m3", [95_000, 9_000]);
    session.wait(90);
    session.prompt();
    session.answer("m4", [20_000, 90_000], missed("previous_message_not_found"));
    expect(causes(session.lines)).toEqual(["unexplained ", "expired provider"]);
  });

  it("is our own trim, if one was recorded between the two calls", () => {
    const session = createLines();
    session.prompt();
    session.answer("m1", [20_000, 40_000]);
    session.prompt();
    session.answer("m2", [25_000, 20_000]);
    const at = Date.UTC(2026, 5, 1, 8, 1, 30);
    expect(causes(session.lines, [at])).toEqual(["trimmed by Plimsoll usage"]);
    expect(causes(session.lines, [at - 60_000])).toEqual(["request shrank usage"]);
  });

  it("says what was looked at if there is none", () => {
    const session = createLines();
    session.prompt();
    session.answer("m1", [20_000, 40_000]);
    session.prompt();
    session.answer("m2", [25_000, 50_000], missed("unavailable"));
    const [loss] = findLosses(billSessions([facts(session.lines)])[0]!);
    expect(loss).toMatchObject({ cause: "unexplained", confidence: undefined });
    expect(loss?.detail).toContain("the provider's diagnosis (unavailable), model, times");
  });
});

describe("what was billed", () => {
  const total = (...files: readonly (readonly object[])[]) =>
    sumTotals(billedCalls(billSessions(files.map(facts)), () => true));
  const progress = (line: object) => ({
    type: "progress",
    parentToolUseID: "t1",
    data: { type: "agent_progress", agentId: "a1", message: line },
  });
  const writeSubAgent = () => {
    const agent = createLines("2.1.17", "agent");
    agent.prompt({ isSidechain: true, agentId: "a1" });
    agent.answer("s1", [0, 9_000], { isSidechain: true, agentId: "a1" });
    agent.answer("s2", [9_000, 500], { isSidechain: true, agentId: "a1" });
    return agent.lines;
  };
  const writeMain = (inner: readonly object[] = []) => {
    const session = createLines();
    session.prompt();
    session.answer("m1", [20_000, 20_000]);
    // Each line of an agent is written twice: the program repeats it when the agent goes on.
    for (const line of [...inner, ...inner]) session.add(progress(line));
    session.answer("m2", [40_000, 500]);
    return session.lines;
  };

  it("has sub-agents of progress lines once, with and without files of their own", () => {
    const both = total(writeMain(writeSubAgent()));
    expect(both).toMatchObject({ calls: 4, read: 69_000, write1h: 30_000 });
    expect(total(writeMain(writeSubAgent()), writeSubAgent())).toEqual(both);
    expect(total(writeMain(), writeSubAgent())).toEqual(both);
    // The lines of progress need no id of the request.
    const bare = writeSubAgent().map(({ requestId, ...line }: { requestId?: string }) => line);
    expect(total(writeMain(bare), writeSubAgent())).toEqual(both);
    expect(total(writeSubAgent(), writeMain(bare))).toEqual(both);
  });

  it("keeps the losses of a session and its sub-agents apart", () => {
    expect(causes(writeMain(writeSubAgent()))).toEqual([]);
  });

  it("has the largest report of a copy", () => {
    const early = writeMain();
    const late = early.map((line) => {
      const copy = structuredClone(line) as { message?: { usage?: { output_tokens: number } } };
      if (copy.message?.usage !== undefined) copy.message.usage.output_tokens = 700;
      return copy;
    });
    expect(total(early, late)).toEqual(total(late));
  });

  it("has no call for what the program says itself", () => {
    const session = createLines();
    session.prompt();
    session.answer("m1", [20_000, 20_000]);
    const usage = { input_tokens: 0, output_tokens: 0 };
    session.answer("x1", [0, 0], { message: { model: "<synthetic>", usage } });
    session.answer("m2", [40_000, 500]);
    expect(total(session.lines).calls).toBe(2);
    expect(causes(session.lines)).toEqual([]);
  });

  it("flags output that is too small for the text of the answer", () => {
    const session = createLines("2.1.17");
    session.prompt();
    const text = "a sentence of six words here ".repeat(100);
    session.answer("m1", [20_000, 20_000], { message: { stop_reason: null, content: [{ type: "text", text }] } });
    session.answer("m2", [40_000, 500], { message: { content: [{ type: "text", text }] } });
    session.answer("m3", [40_500, 500], { message: { stop_reason: null } });
    expect(facts(session.lines).calls.map(({ unreported }) => unreported)).toEqual([text.length, undefined, undefined]);
  });
});
