import { expect, it } from "vitest";
import { createCounter } from "../../core/tokens/index.ts";
import { prepareSession } from "./prepare-session.ts";
import { createRemovalFinder } from "./request-observer.ts";

const counter = await createCounter("bytes/4");
const call = (id: string, path: string) => ({
  role: "assistant",
  content: [{ type: "tool_use", id, name: "read_file", input: { path } }],
});
const result = (id: string, text: string) => ({
  role: "user",
  content: [{ type: "tool_result", tool_use_id: id, content: text }],
});
const messages = [
  { role: "user", content: "go" },
  ...[call("a", "src/a.ts"), result("a", "one ".repeat(400)), call("b", "src/b.ts"), result("b", "two ".repeat(100))],
  { role: "assistant", content: "done" },
];
const session = prepareSession({ file: "s", source: "transcript", messages, notes: [] }, { counter });
const placeholder = result("a", "[trimmed]");

it("names what an epoch removed by tool and by file, and each part once", () => {
  const finder = createRemovalFinder(session.blocksOf);
  const given = session.messages;
  expect(
    finder.add({ given: given.slice(0, 3), sent: given.slice(0, 3), isEpoch: false, unchanged: 0 }),
  ).toBeUndefined();
  const sent = [given[0], given[1], placeholder, given[3], given[4]] as object[];
  const removed = finder.add({ given: given.slice(0, 5), sent, isEpoch: true, unchanged: 0 });
  expect(removed?.kinds.map(({ name, count }) => [name, count])).toEqual([["read_file", 1]]);
  expect(removed?.largest.map(({ name }) => name)).toEqual(["read_file src/a.ts"]);
  expect(removed?.tokens).toBeGreaterThan(300);
  const next = finder.add({ given, sent: [given[0], given[5]] as object[], isEpoch: true, unchanged: 0 });
  expect(next?.kinds.map(({ name, count }) => [name, count]).sort()).toEqual([
    ["read_file input", 2],
    ["read_file", 1],
  ]);
});
