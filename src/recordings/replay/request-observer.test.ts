import { expect, it } from "vitest";
import { createCounter } from "../../core/tokens/index.ts";
import { prepareSession } from "./prepare-session.ts";
import { createRemovalFinder, createRequestObserver } from "./request-observer.ts";

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

it("finds the same whether or not it looks at requests from before the first change", () => {
  const line = `const answer = compute("${"x".repeat(30)}");`;
  const quoting = [...messages.slice(0, 4), result("b", line), { role: "assistant", content: line }];
  const long = prepareSession({ file: "s", source: "transcript", messages: quoting, notes: [] }, { counter });
  const observe = (first: object, isTrimmed: boolean) => {
    const observer = createRequestObserver(long, {});
    for (const [call, length] of long.calls.entries()) {
      const given = long.messages.slice(0, length);
      const sent = [first, ...given.slice(1)];
      if (isTrimmed && call === 2) sent[4] = result("b", "[trimmed]");
      observer.add({ given, sent, unchanged: call === 0 ? 0 : (long.calls[call - 1] as number), isEpoch: false });
    }
    return observer.finish();
  };
  const own = long.messages[0] as object;
  for (const isTrimmed of [false, true]) expect(observe(own, isTrimmed)).toEqual(observe({ ...own }, isTrimmed));
  expect(observe(own, false).references.quotes).toMatchObject({ found: 1, total: 1 });
  expect(observe(own, true).references.quotes).toMatchObject({ found: 0, total: 1 });
});
