import { expect, it } from "vitest";
import { listTool, openSession, resultId } from "./sample-tool.contract.ts";

it("the work log has a minimal, a recent and a full view", async () => {
  const session = await openSession({ tools: [listTool(["a line", "another"])] });
  expect(session.workLog("minimal")).toEqual({ steps: 0 });
  expect(session.workLog()).toEqual({ total_steps: 0, recent: [] });
  for (let offset = 0; offset < 6; offset += 1) await session.call("list", { offset });
  expect(session.workLog("minimal")).toEqual({ steps: 6, last_result: '{"files":[]}' });
  const recent = session.workLog() as { total_steps: number; recent: readonly { id: string }[] };
  expect(recent.total_steps).toBe(6);
  expect(recent.recent.map(({ id }) => id)).toEqual([6, 5, 4, 3, 2].map((number) => resultId(number)));
  const full = session.workLog("full") as { evicted: number; entries: readonly object[] };
  expect(full.evicted).toBe(0);
  expect(full.entries).toHaveLength(6);
  expect(full.entries[1]).toEqual({
    id: resultId(2),
    tool: "list",
    args: '{"offset":1}',
    time: "2026-11-15T10:00:02.000Z",
    result: "another",
  });
});

it("an unknown view is an error", async () => {
  const session = await openSession();
  expect(() => session.workLog("short" as "full")).toThrow('there is no view "short"');
});

it("an entry has the note of its call, shortened and without secrets", async () => {
  const session = await openSession({ tools: [listTool(["a line"])] });
  await session.call("list", {}, { note: `Done: 3 of 7. PASSWORD=hunter2hunter2 ${"x".repeat(300)}` });
  const result = { fields: {}, itemsName: "lines", items: ["b"], offset: 0 };
  await session.deliver(result, { tool: "t", args: {}, note: "Next: tests" });
  const { entries } = session.workLog("full") as { entries: readonly { note?: string }[] };
  expect(entries[0]!.note).toMatch(/^Done: 3 of 7\. PASSWORD=\[redacted\] x+…$/);
  expect(entries[0]!.note).toHaveLength(160);
  expect(entries[1]).toMatchObject({ note: "Next: tests", result: "b" });
});
