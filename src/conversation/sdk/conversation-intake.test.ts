import { expect, test } from "vitest";
import { createMemoryStore } from "../../core/store/index.ts";
import { createCounter } from "../../core/tokens/index.ts";
import { recallTool } from "./anthropic.ts";
import { createRequestFitter, type RequestFitterOptions, type TrimEvent } from "./request-fitter.ts";

const counter = await createCounter("estimate:claude-5");

/** A file of about 1,300 tokens. */
const source = Array.from({ length: 80 }, (_, n) => `export const value${n} = compute(${n * 7}, "name ${n}");`).join(
  "\n",
);

function exchange(id: string, path: string, text: string): object[] {
  return [
    { role: "assistant", content: [{ type: "tool_use", id, name: "read", input: { path } }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: text }] },
  ];
}

/** Other results of about 1,000 tokens each. */
function others(count: number): object[] {
  return Array.from({ length: count }, (_, n) =>
    exchange(
      `o${n}`,
      `${n}.log`,
      Array.from({ length: 90 }, (_each, line) => `${n} ${line} ${(n * 97 + line) * 31}`).join("\n"),
    ),
  ).flat();
}

const question = { role: "user", content: "Where is the bug?" };
const twice = [question, ...exchange("a", "a.ts", source), ...exchange("b", "a.ts", `${source}\n// one more`)];

function open(options: RequestFitterOptions<object>) {
  const events: TrimEvent[] = [];
  const fitter = createRequestFitter<object>({
    ...{ contextWindow: 200_000, counter, intake: true, onTrim: (event) => events.push(event) },
    ...options,
  });
  const ask = async (messages: readonly object[], tools: readonly object[] = []): Promise<string[]> => {
    const fitted = await fitter.fit({
      ...{ request: {}, format: "anthropic", model: "claude-sonnet-5", messages, tools },
      ...{ maxOutputTokens: undefined, cacheLifetimeMs: 300_000 },
    });
    return fitted.reduction.messages.map((message) => JSON.stringify(message));
  };
  return { ask, events };
}

test("without the option a request is sent as it is", async () => {
  const { ask } = open({ intake: false });
  expect(await ask(twice)).toEqual(twice.map((message) => JSON.stringify(message)));
});

test("a file that is read again is sent as what is new, and says how to get the rest", async () => {
  const { ask } = open({});
  const [, , , , again = ""] = await ask(twice);
  expect(again).toContain("// one more");
  expect(again).not.toContain("value40");
  expect(again).toContain("Whole text: make the same call again]");
  const withTool = await open({}).ask(twice, [{ name: "recall" }]);
  expect(withTool[4]).toMatch(/Whole text: recall with id [a-z2-7]{16}\]/);
});

test("the recall tool returns the original of a shortened result, and of its own session only", async () => {
  const store = createMemoryStore();
  const sent = await open({ store, sessionId: "s" }).ask(twice, [{ name: "recall" }]);
  const id = /recall with id (\w+)/.exec(sent[4] ?? "")?.[1] ?? "";
  expect(await recallTool({ store, sessionId: "s" }).handle({ id })).toContain("value40");
  expect(await recallTool({ store, sessionId: "t" }).handle({ id })).toContain("Nothing is stored under");
});

test("a rewind sends nothing that refers to the part that is gone", async () => {
  const { ask } = open({});
  await ask(twice);
  const fork = [question, ...exchange("c", "a.ts", source)];
  expect(await ask(fork)).toEqual(fork.map((message) => JSON.stringify(message)));
});

test("when a trim removes a text, the newest result that refers to it is whole again in the same request", async () => {
  const { ask, events } = open({ contextWindow: 30_000, reserve: 2_000, keep: 2 });
  const long = [question, ...exchange("a", "a.ts", source), ...others(16), ...exchange("b", "a.ts", `${source}\n//`)];
  const more = Array.from({ length: 12 }, (_, n) => exchange(`m${n}`, `m${n}.log`, `${n} `.repeat(900))).flat();
  let isSeen = false;
  for (let end = 3; end <= long.length + more.length; end += 2) {
    const sent = (await ask([...long, ...more].slice(0, end))).join("\n");
    const delta = sent.includes("Only new lines are shown");
    isSeen ||= delta;
    // Whoever reads that only new lines are shown must find the old ones.
    if (delta) expect(sent).toContain("value40");
  }
  expect(isSeen).toBe(true);
  expect(events.length).toBeGreaterThan(0);
});

test("wrong settings are refused at once", () => {
  expect(() => open({ intake: { maxResultTokens: 0 } })).toThrow("maxResultTokens is 0");
  expect(() => open({ intake: { page: 1 } as never })).toThrow('unknown option "page"');
});
