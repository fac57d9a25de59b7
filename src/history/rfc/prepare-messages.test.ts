import { expect, it } from "vitest";
import { createMessageLens } from "../../messages/index.ts";
import { createCounter } from "../../tokens/index.ts";
import { createPreparation } from "./prepare-messages.ts";

const counter = await createCounter("bytes/4");
const lens = createMessageLens([], { counter, format: "anthropic" });
const reparse = <Value>(value: Value): Value => JSON.parse(JSON.stringify(value)) as Value;
const said = (role: string, text: string) => ({ role, content: [{ type: "text", text }] });
const talk = (turns: number) =>
  Array.from({ length: turns }, (_each, turn) => [
    said("user", `u${turn}`),
    said("assistant", `a${turn}`),
  ]).flat();
/** As a preparation that sees them for the first time gives them. */
const fresh = (messages: readonly object[]) => createPreparation()(messages, lens);

it("tags that are put into one of the newest messages in place go, however many messages follow", () => {
  const prepare = createPreparation();
  const block = { type: "text", text: "one" };
  const messages = [...talk(2), { role: "user", content: [block] }];
  prepare(messages, lens);
  block.text = "<checkpoint_id>c1</checkpoint_id> two";
  messages.push(said("assistant", "ok"), ...talk(10));
  expect(prepare(messages, lens)[4]).toEqual(said("user", "two"));
});

it("what is parsed anew is sent as the new objects, and merged messages stay the same objects", () => {
  const prepare = createPreparation();
  const messages = [
    ...talk(3),
    said("user", "and"),
    said("user", "then"),
    said("assistant", "ok"),
    ...talk(8),
  ];
  const before = [...prepare(messages, lens)];
  const again = reparse(messages);
  const joined = prepare(again, lens);
  expect(joined).toEqual(before);
  expect(joined[6]).toBe(before[6]);
  expect(joined[5]).toBe(again[5]);
});

it("a change in the middle, a shorter history and a broken one leave nothing wrong behind", () => {
  const prepare = createPreparation();
  const messages = [
    ...talk(4),
    said("user", "and"),
    said("user", "then"),
    said("assistant", "ok"),
    ...talk(8),
  ];
  const steps: readonly (readonly object[])[] = [
    messages,
    reparse(messages).with(3, said("user", "and more")),
    messages.slice(0, 9),
    reparse(messages),
    reparse(messages).with(8, said("assistant", "instead")),
    messages,
  ];
  for (const step of steps) {
    expect(() => prepare([...step.slice(0, 5), null as unknown as object], lens)).toThrow("messages[5]");
    expect(prepare(step, lens)).toEqual(fresh(step));
  }
});
