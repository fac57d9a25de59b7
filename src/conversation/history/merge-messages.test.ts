import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { dedupToolResults, mergeConsecutiveSameRole } from "./rfc-repairs.ts";

const user = (content: unknown) => ({ role: "user", content });
const result = (id: string, content: string) => ({ type: "tool_result", tool_use_id: id, content });
const tool = (...content: object[]) => ({ role: "tool", content });

describe("merging neighbours of the same role", () => {
  it("joins texts and parts in order", () => {
    const image = { type: "image", source: {} };
    expect(mergeConsecutiveSameRole([user("a"), user([image]), user("b")])).toEqual([
      user([{ type: "text", text: "a" }, image, { type: "text", text: "b" }]),
    ]);
  });

  it("makes one tool message of the results of parallel calls", () => {
    expect(mergeConsecutiveSameRole([tool(result("c1", "x")), tool(result("c2", "y"))])).toEqual([
      tool(result("c1", "x"), result("c2", "y")),
    ]);
  });

  it("adds no part for an empty text", () => {
    expect(mergeConsecutiveSameRole([user(""), user("b")])).toEqual([user([{ type: "text", text: "b" }])]);
    expect(mergeConsecutiveSameRole([user("a"), user("")])).toEqual([user([{ type: "text", text: "a" }])]);
    expect(mergeConsecutiveSameRole([user(""), user("")])).toEqual([user([])]);
  });

  it("keeps the first one's other fields, and a lone message as it is", () => {
    const messages = [
      { ...user("a"), name: "Ann" },
      { ...user("b"), name: "Bob" },
      { role: "assistant", content: "c" },
    ];
    const merged = mergeConsecutiveSameRole(messages);
    expect(merged[0]).toMatchObject({ name: "Ann" });
    expect(merged[1]).toBe(messages[2]);
    expect(messages[0]).toEqual({ ...user("a"), name: "Ann" });
  });

  it("leaves no two neighbours of the same role, and loses no part", () => {
    const message = fc.record({
      role: fc.constantFrom("system", "user", "assistant", "tool"),
      content: fc.array(fc.record({ type: fc.constant("text"), text: fc.string() }), { maxLength: 3 }),
    });
    fc.assert(
      fc.property(fc.array(message, { maxLength: 12 }), (messages) => {
        const merged = mergeConsecutiveSameRole(messages);
        for (let index = 1; index < merged.length; index++)
          expect(merged[index]!.role).not.toBe(merged[index - 1]!.role);
        expect(merged.flatMap(({ content }) => content as readonly object[])).toEqual(
          messages.flatMap(({ content }) => content),
        );
        expect(mergeConsecutiveSameRole(merged)).toEqual(merged);
      }),
    );
  });
});

describe("dropping repeated results", () => {
  it("keeps the last result of a call, at its place", () => {
    const [old, other, latest] = [result("c1", "old"), result("c2", "x"), result("c1", "new")];
    const messages = [tool(old, other, latest)];
    expect(dedupToolResults(messages)).toEqual([tool(other, latest)]);
    expect(messages[0]!.content).toHaveLength(3);
  });

  it("leaves other messages, other roles and results without an id alone", () => {
    const nameless = { type: "tool_result", content: "x" };
    const messages = [
      tool(result("c1", "a")),
      tool(result("c1", "b")),
      { role: "user", content: [result("c1", "a"), result("c1", "b")] },
      { role: "tool", content: "text" },
      tool(nameless, nameless),
    ];
    const deduped = dedupToolResults(messages);
    for (const [index, message] of messages.entries()) expect(deduped[index]).toBe(message);
  });
});
