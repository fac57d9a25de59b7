import { describe, expect, it } from "vitest";
import { dataOf, itemsOf, listTool, openSession, readOn } from "./sample-tool.contract.ts";

describe("a result of a tool that is recalled", () => {
  const items = Array.from({ length: 500 }, (_, index) => ({ path: `file-${index}`, note: "some words" }));

  it.each(["offset", "unique"] as const)(
    "never goes back, and is empty past the end (continuations: %s)",
    async (continuations) => {
      const session = await openSession({ tools: [listTool(items, { total: 500 })], continuations });
      const first = dataOf(await session.call("list", { budget: 1_000 }));
      const end = first.returned;
      const tokenAt = (offset: number) => `offset:${offset}`;
      expect(first.continuation_token).toBe(tokenAt(end));
      for (const [offset, returned, token] of [
        [end - 1, 1, tokenAt(end)],
        [end, 0, tokenAt(end)],
        [end + 100, 0, tokenAt(end + 100)],
        [500, 0, undefined],
        [99_999, 0, undefined],
      ] as const) {
        const page = dataOf(await session.recall("r1", { offset }));
        expect(page).toMatchObject({ offset, returned, truncated: token !== undefined });
        expect(page.continuation_token).toBe(token);
      }
    },
  );

  it("continues with the tool if the token asks for more than is stored", async () => {
    const session = await openSession({ tools: [listTool(items)], continuations: "unique" });
    const first = dataOf(await session.call("list", { budget: 1_000 }));
    const behind = await session.nextPage(`r1:offset:${first.returned + 3}`, { maxTokens: 600 });
    expect(itemsOf(dataOf(behind))[0]).toEqual(items[first.returned + 3]);
    expect(behind.tokens).toBeLessThanOrEqual(600);
    const inside = await session.nextPage("r1:offset:2");
    expect(itemsOf(dataOf(inside))).toEqual(items.slice(2, first.returned));
    expect(dataOf(inside).budget_note).toContain(`Call list with offset=${first.returned} to continue.`);
    const all = await readOn(session, inside, {});
    expect(all.items).toEqual(items.slice(2));
  });
});
