import { describe, expect, it } from "vitest";
import { createMemoryStore } from "../../core/store/index.ts";
import type { ToolResult } from "./budgeted-tool.ts";
import { answeringTool, dataOf, itemsOf, listTool, openSession, readOn, resultId } from "./sample-tool.contract.ts";

const files = Array.from({ length: 2_847 }, (_, index) => ({
  path: `src/core/file-${index}.ts`,
  size: index,
}));

describe("a call", () => {
  it("delivers the whole result in its envelope if it fits", async () => {
    const session = await openSession({
      tools: [listTool(files.slice(0, 2), { fields: { root: "src" }, total: 2 })],
      hints: "off",
    });
    const delivered = await session.call("list", {});
    expect(delivered.id).toBe(resultId(1));
    expect(delivered.envelope).toEqual({
      status: "success",
      data: { root: "src", files: files.slice(0, 2), total: 2, returned: 2, offset: 0, truncated: false },
    });
    expect(session.status()).toMatchObject({ calls: 1, delivered: delivered.tokens });
  });

  it("delivers the first page of a larger result, and says how to continue", async () => {
    const session = await openSession({ tools: [listTool(files, { total: files.length })] });
    const data = dataOf(await session.call("list", { budget: 2_000 }));
    expect(data).toMatchObject({ total: 2_847, truncated: true, offset: 0 });
    expect(data.returned).toBe(itemsOf(data).length);
    expect(data.returned).toBeGreaterThan(100);
    expect(data.continuation_token).toBe(`offset:${data.returned}`);
    expect(data.budget_note).toMatch(
      new RegExp(`^Use offset=${data.returned} to continue\\. Budget allows ~\\d+ more\\.$`),
    );
  });

  it("fills its page: the next item would not fit", async () => {
    const session = await openSession({ tools: [listTool(files)] });
    const { tokens, envelope } = await session.call("list", { budget: 3_000 });
    expect(envelope.status).toBe("success");
    expect(tokens).toBeGreaterThan(2_900);
    expect(tokens).toBeLessThanOrEqual(3_000);
  });

  it("returns an empty page after the end", async () => {
    const session = await openSession({ tools: [listTool(files, { total: files.length })] });
    const data = dataOf(await session.call("list", { offset: 5_000 }));
    expect(data).toMatchObject({ files: [], total: 2_847, returned: 0, offset: 5_000, truncated: false });
    expect(data.continuation_token).toBeUndefined();
  });

  it("continues where the tool stopped because of its own maximum", async () => {
    const capped = (result: Partial<ToolResult>) => listTool(files.slice(0, 10), result);
    const byTotal = await openSession({ tools: [capped({ total: 2_847 })] });
    expect(dataOf(await byTotal.call("list", {})).continuation_token).toBe("offset:10");
    const byMore = await openSession({ tools: [capped({ more: () => true })] });
    expect(dataOf(await byMore.call("list", {}))).toMatchObject({
      truncated: true,
      continuation_token: "offset:10",
    });
  });

  it("reads only the items of the page, then ends the tool's iterator", async () => {
    let [read, ended] = [0, false];
    async function* endless(): AsyncGenerator<unknown> {
      try {
        for (;;) yield { path: `file-${read++}` };
      } finally {
        ended = true;
      }
    }
    const tool = answeringTool("list", async () => ({
      fields: {},
      itemsName: "files",
      offset: 0,
      items: endless(),
    }));
    const session = await openSession({ tools: [tool] });
    const data = dataOf(await session.call("list", { budget: 1_000 }));
    expect(ended).toBe(true);
    expect(read - data.returned).toBeLessThan(30);
  });

  it("asks for the total and for warnings after the items were read", async () => {
    let seen = 0;
    async function* counted(): AsyncGenerator<unknown> {
      for (; seen < 3; seen += 1) yield seen;
    }
    const tool = answeringTool("list", async () => ({
      fields: {},
      itemsName: "files",
      offset: 0,
      items: counted(),
      total: () => seen,
      warnings: () => [`saw ${seen}`],
    }));
    const session = await openSession({ tools: [tool] });
    expect(dataOf(await session.call("list", {}))).toMatchObject({ total: 3, warnings: ["saw 3"] });
  });

  it("says when the result changed between two pages, and only then", async () => {
    let version = "a";
    const tool = answeringTool("list", async ({ offset = 0 }) => ({
      fields: {},
      itemsName: "files",
      offset: Number(offset),
      items: files.slice(Number(offset)),
      version,
    }));
    const store = createMemoryStore();
    const session = await openSession({ sessionId: "s", store, tools: [tool] });
    const first = dataOf(await session.call("list", { path: "src", budget: 1_000 }));
    const next = { budget: 1_000, offset: first.returned };
    expect(dataOf(await session.call("list", { ...next, path: "src" })).warnings).toBeUndefined();
    version = "b";
    const resumed = await openSession({ sessionId: "s", store, tools: [tool] });
    expect(dataOf(await resumed.call("list", { ...next, path: "docs" })).warnings).toBeUndefined();
    expect(dataOf(await resumed.call("list", { ...next, path: "src" })).warnings).toEqual([
      expect.stringContaining("The result changed"),
    ]);
    expect(dataOf(await resumed.call("list", { ...next, path: "src" })).warnings).toBeUndefined();
  });
});

it("accepts a budget as models send it: null, or a number as a string", async () => {
  const session = await openSession({ tools: [listTool(files)] });
  const tokensOf = async (budget: unknown) => (await session.call("list", { budget })).tokens;
  expect(await tokensOf(null)).toBe(await tokensOf(undefined));
  expect(await tokensOf("900")).toBe(await tokensOf(900));
  expect(await tokensOf(900)).toBeLessThanOrEqual(900);
});

describe("what goes wrong", () => {
  it("never stores the tokens of a call without the call, although a parallel call saves in between", async () => {
    const memory = createMemoryStore();
    let logged = 0;
    const hang = new Promise<never>(() => {});
    // The first call never gets further than its entry in the work log, as if the process were killed there.
    const append: typeof memory.append = (stream, values) =>
      stream.endsWith("/log") && ++logged === 1 ? hang : memory.append(stream, values);
    const session = await openSession({
      sessionId: "x",
      store: { ...memory, append },
      tools: [listTool(files.slice(0, 2))],
    });
    void session.call("list", {});
    await expect.poll(() => logged).toBe(1);
    await session.call("list", {});
    const { calls, delivered, largest } = (await openSession({ sessionId: "x", store: memory })).status();
    expect(largest).toHaveLength(calls);
    expect(delivered).toBe(largest.reduce((sum, { tokens }) => sum + tokens, 0));
  });

  it("comes back as an error, is counted and is in the work log", async () => {
    const failing = answeringTool("fail", async () => ({
      code: "timeout",
      message: "took\n60 s",
      hint: "Wait.",
    }));
    const throwing = answeringTool("throw", async () => {
      throw new Error("boom");
    });
    const session = await openSession({ tools: [failing, throwing] });
    const failed = await session.call("fail", {});
    expect(JSON.parse(failed.text)).toEqual({
      status: "error",
      error: { code: "timeout", message: "took 60 s", hint: "Wait." },
    });
    expect((await session.call("throw", {})).envelope).toMatchObject({
      error: { code: "execution_error", message: "boom" },
    });
    expect((await session.call("fial", {})).envelope).toMatchObject({
      error: { code: "unknown_tool", hint: 'Did you mean "fail"?' },
    });
    expect((await session.call("fail", { budget: "much" })).envelope).toMatchObject({
      error: { code: "invalid_argument", message: 'budget is "much", but must be a whole number from 1.' },
    });
    expect(session.status().calls).toBe(4);
    expect(session.workLog("full")).toMatchObject({
      entries: [
        { id: resultId(1), tool: "fail", result: "Failed (timeout): took 60 s" },
        { id: resultId(2), tool: "throw", result: "Failed (execution_error): boom" },
        { id: resultId(3) },
        { id: resultId(4) },
      ],
    });
  });

  it("in the middle of a result keeps the items before it, with a warning", async () => {
    async function* broken(): AsyncGenerator<unknown> {
      yield "one";
      throw new Error("the pipe broke");
    }
    const tool = answeringTool("list", async () => ({
      fields: {},
      itemsName: "files",
      offset: 0,
      items: broken(),
    }));
    const session = await openSession({ tools: [tool] });
    expect(dataOf(await session.call("list", {}))).toMatchObject({
      files: ["one"],
      truncated: true,
      warnings: ["Stopped after 1 item: the pipe broke"],
    });
    const given = { fields: {}, itemsName: "files", offset: 0, items: broken() };
    expect(dataOf(await session.deliver(given, { tool: "elsewhere", args: {} }))).toMatchObject({
      files: ["one"],
      warnings: ["Stopped after 1 item: the pipe broke"],
    });
  });

  it("reports an offset that a result cannot have, and two tools with one name", async () => {
    const session = await openSession({ tools: [listTool(["a"])] });
    for (const args of [undefined, null]) expect(dataOf(await session.call("list", args)).files).toEqual(["a"]);
    for (const offset of [1.5, -5])
      expect((await session.recall("r1", { offset })).envelope).toMatchObject({
        error: {
          code: "invalid_argument",
          message: `offset is ${offset}, but must be a whole number from 0.`,
        },
      });
    await expect(openSession({ tools: [listTool([]), listTool(["a"])] })).rejects.toThrow(
      'two tools are called "list"',
    );
  });

  it("reports a size that a page cannot have", async () => {
    const session = await openSession({ tools: [listTool(["a"])] });
    await session.call("list", {});
    for (const page of [session.recall("r1", { maxTokens: 0 }), session.nextPage("r1:offset:0", { maxTokens: 0 })])
      expect((await page).envelope).toMatchObject({
        error: { code: "invalid_argument", message: "maxTokens is 0, but must be a whole number from 1." },
      });
  });

  it("takes the token that a page gave, and says if two results gave it", async () => {
    const session = await openSession({ tools: [listTool(files), { ...listTool(files), name: "other" }] });
    const first = dataOf(await session.call("list", { budget: 600 }));
    const token = first.continuation_token!;
    expect(token).toBe(`offset:${first.returned}`);
    expect(itemsOf(dataOf(await session.nextPage(token)))[0]).toEqual(files[first.returned]);
    await session.call("other", { budget: 600 });
    expect((await session.nextPage(token)).envelope).toMatchObject({ error: { code: "ambiguous_token" } });
  });

  it("reports tokens that lead nowhere", async () => {
    const session = await openSession();
    const codeOf = async (token: string) => (await session.nextPage(token)).envelope;
    expect(await codeOf("offset:100")).toMatchObject({
      error: { code: "invalid_token", hint: expect.stringContaining("call the tool itself again with offset=100.") },
    });
    expect(await codeOf("next")).toMatchObject({ error: { code: "invalid_token" } });
    expect(await codeOf("r99:offset:0")).toMatchObject({ error: { code: "unknown_result" } });
    expect(await codeOf("ids")).toMatchObject({ error: { code: "invalid_token" } });
    expect((await session.recall("log")).envelope).toMatchObject({ error: { code: "unknown_result" } });
  });

  it("reports a result that later ones replaced", { tags: ["deep"], timeout: 30_000 }, async () => {
    const session = await openSession({ tools: [listTool(["a"])] });
    const given = { fields: {}, itemsName: "files", items: files, offset: 0 };
    const first = dataOf(await session.deliver(given, { tool: "elsewhere", args: {}, maxTokens: 600 }));
    for (let call = 0; call < 998; call += 1) await session.call("list", {});
    expect(await session.nextPage(first.continuation_token!)).toMatchObject({
      id: resultId(1_000),
      envelope: { status: "success" },
    });
    await session.call("list", {});
    expect((await session.nextPage(first.continuation_token!)).envelope).toEqual({
      status: "error",
      error: {
        code: "dropped_result",
        message: `the result ${resultId(1)} is no longer stored`,
        hint: "A session keeps its results for 1000 steps, large ones up to 200 MB together. Call the tool again.",
      },
    });
  });

  it("does not hide items or facts with a field of the same name", async () => {
    const fields = { total: "mine", files: "mine", root: "src" };
    const session = await openSession({ tools: [listTool(["a"], { fields, total: 1 })] });
    const data = dataOf(await session.call("list", {}));
    expect(data).toMatchObject({
      root: "src",
      files: ["a"],
      total: 1,
      left_out: { fields: ["total", "files"] },
    });
    const rest = await readOn(session, await session.nextPage(data.left_out!.token), {});
    expect(rest.fields).toEqual(fields);
  });
});

describe("an item larger than a page", () => {
  const text = Array.from({ length: 3_000 }, (_, index) => `+ line ${index}`).join("\n");
  const hunks = [
    { file: "a.ts", text: "+ one" },
    { file: "b.ts", text },
    { file: "c.ts", text: "+ two" },
  ];

  it("is cut at a line, says so, and its rest comes before the next item", async () => {
    const session = await openSession({ tools: [listTool(hunks, { total: 3 })] });
    const first = dataOf(await session.call("list", { budget: 2_000 }));
    expect(first).toMatchObject({ files: [hunks[0]], continuation_token: "offset:1" });

    const second = dataOf(await session.call("list", { budget: 2_000, offset: 1 }));
    expect(second.cut).toMatchObject({ item: 1, at: "/text", from: 0, length: text.length });
    expect(second.continuation_token).toBe(`${resultId(2)}:offset:1+${second.cut!.to}`);
    expect(second.budget_note).toBe(
      `Item 1: characters 0 to ${second.cut!.to} of ${text.length}, too large for one page. ` +
        `Use next_page with token ${resultId(2)}:offset:1+${second.cut!.to} to continue.`,
    );
    expect((itemsOf(second)[0] as { text: string }).text.endsWith("\n")).toBe(true);

    const joined = await readOn(session, await session.call("list", { budget: 2_000 }), { budget: 2_000 });
    expect(joined.items).toEqual(hunks);
    const lastPart = joined.pages.map(dataOf).findLast(({ cut }) => cut !== undefined);
    expect(lastPart).toMatchObject({ continuation_token: "offset:2" });
    expect(lastPart!.budget_note).toContain("Call list with offset=2 to continue.");
  });
});

describe("page limits of a client", () => {
  it("apply in tokens and in characters, as soon as they are known", async () => {
    let limit = {};
    const session = await openSession({ tools: [listTool(files)], pageLimit: () => limit });
    expect((await session.call("list", {})).tokens).toBeGreaterThan(7_500);
    limit = { tokens: 2_000 };
    expect((await session.call("list", {})).tokens).toBeLessThanOrEqual(2_000);
    limit = { characters: 12_000 };
    const { text } = await session.call("list", {});
    expect(text.length).toBeLessThanOrEqual(12_000);
    expect(text.length).toBeGreaterThan(11_000);
  });
});
