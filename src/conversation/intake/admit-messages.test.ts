import { expect, test } from "vitest";
import { createMessageLens } from "../../core/messages/index.ts";
import { createCounter } from "../../core/tokens/index.ts";
import { createMessageIntake } from "./admit-messages.ts";
import { createIntake } from "./intake.ts";

const counter = await createCounter("estimate:claude-5");
const source = Array.from({ length: 80 }, (_, n) => `export const value${n} = compute(${n * 7}, "name ${n}");`).join(
  "\n",
);

/** A turn that calls a tool, and the user message with the result. */
function exchange(id: string, input: object, text: string): [object, object] {
  return [
    { role: "assistant", content: [{ type: "tool_use", id, name: "Read", input }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: text }] },
  ];
}

function resultText(message: unknown): string {
  return (message as { content: { content: string }[] }).content[0]?.content ?? "";
}

async function open(messages: readonly object[]) {
  const lens = createMessageLens(messages, { counter, format: "anthropic" });
  return createMessageIntake(lens, await createIntake({ counter, sessionId: "s" }));
}

const first = exchange("a", { path: "a.ts" }, source);
const second = exchange("b", { path: "a.ts" }, `${source}\n// one more`);
const history = [{ role: "user", content: "Go." }, ...first, ...second];

test("a history gets the same messages each time, and only repeated results change", async () => {
  const intake = await open(history);
  const sent = await intake.admit(history);
  expect(sent.slice(0, 4)).toEqual(history.slice(0, 4));
  expect(sent[2]).toBe(history[2]);
  expect(resultText(sent[4])).toContain("// one more");
  expect(resultText(sent[4])).not.toContain("value3 ");
  expect((await intake.admit([...history, ...exchange("c", {}, "ok")])).slice(0, 5)).toEqual(sent);
  expect((await intake.admit(history))[4]).toBe(sent[4]);
});

test("a result that is a list with one text is shortened too, and one with an image stays", async () => {
  const asBlocks = ([call, result]: [object, object], more: readonly object[] = []) => [
    call,
    JSON.parse(JSON.stringify(result), (key, value) =>
      key === "content" && typeof value === "string" ? [{ type: "text", text: value }, ...more] : value,
    ),
  ];
  const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } };
  const blocks = [{ role: "user", content: "Go." }, ...asBlocks(first), ...asBlocks(second)];
  const shown = JSON.stringify((await (await open(blocks)).admit(blocks))[4]);
  expect(shown).toContain("// one more");
  expect(shown).not.toContain("value3 ");
  const withImage = [...blocks.slice(0, 3), ...asBlocks(second, [image])];
  expect((await (await open(withImage)).admit(withImage))[4]).toBe(withImage[4]);
});

test("a result gets its original back when a trim removes the text that it refers to", async () => {
  const intake = await open(history);
  const sent = await intake.admit(history);
  expect(await intake.restore(sent)).toBe(false);
  const trimmed = { role: "user", content: [{ type: "tool_result", tool_use_id: "a", content: "[trimmed]" }] };
  expect(await intake.restore(sent.with(2, trimmed))).toBe(true);
  expect(await intake.admit(history)).toEqual(history);
});

test("a new result does not refer to a text that a trim has removed", async () => {
  const intake = await open(history);
  const sent = await intake.admit(history.slice(0, 3));
  await intake.restore(sent.slice(0, 2));
  expect(await intake.admit(history)).toEqual(history);
});

test("a text that the agent wrote is gone when its call is trimmed", async () => {
  const write = [
    {
      role: "assistant",
      content: [{ type: "tool_use", id: "w", name: "Write", input: { path: "a.ts", text: source } }],
    },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "w", content: "written" }] },
  ];
  const messages = [{ role: "user", content: "Go." }, ...write, ...exchange("r", { path: "a.ts" }, source)];
  const intake = await open(messages);
  const sent = await intake.admit(messages);
  expect(resultText(sent[4])).toContain("as you wrote them in Write a.ts");
  expect(await intake.restore(sent.toSpliced(1, 1))).toBe(true);
  expect(await intake.admit(messages)).toEqual(messages);
});
