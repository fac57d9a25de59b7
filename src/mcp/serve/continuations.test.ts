import { expect, test } from "vitest";
import { createMemoryStore } from "../../store/index.ts";
import { createContinuations } from "./continuations.ts";

const files = { tool: "project_files", args: { path: "src" } };
const search = { tool: "search_content", args: { pattern: "x" } };

test("a token goes on with the call that gave it, also in another process", async () => {
  const store = createMemoryStore();
  await createContinuations(store, "s").remember("offset:50", files);
  const restarted = createContinuations(store, "s");
  expect(await restarted.find("offset:50")).toEqual(files);
  expect(await restarted.find("offset:50")).toEqual(files);
});

test("a token that no result gave is an error", async () => {
  const store = createMemoryStore();
  await createContinuations(store, "other").remember("offset:50", files);
  const found = await createContinuations(store, "s").find("offset:50");
  expect(found).toMatchObject({ code: "invalid_token", hint: "Call the tool itself again with offset=50." });
});

test("two calls that go on with the same token are told apart by asking, never by guessing", async () => {
  const { remember, find } = createContinuations(createMemoryStore(), "s");
  await remember("offset:50", files);
  await remember("offset:50", search);
  expect(await find("offset:50")).toMatchObject({
    code: "ambiguous_token",
    message: '2 results go on with offset:50: project_files {"path":"src"}; search_content {"pattern":"x"}',
  });
});

test("a call whose next page was asked for gives way to a later one", async () => {
  const { remember, find } = createContinuations(createMemoryStore(), "s");
  await remember("offset:50", files);
  await find("offset:50");
  await remember("offset:50", search);
  expect(await find("offset:50")).toEqual(search);
  expect(await find("offset:50")).toEqual(search);
});

test("the same call again is one call, in whatever order its arguments come", async () => {
  const { remember, find } = createContinuations(createMemoryStore(), "s");
  await remember("offset:50", { tool: "t", args: { a: 1, b: 2 } });
  await remember("offset:50", { tool: "t", args: { b: 2, a: 1 } });
  expect(await find("offset:50")).toMatchObject({ tool: "t" });
});

test("only the latest are kept", async () => {
  const store = createMemoryStore();
  const { remember, find } = createContinuations(store, "s");
  for (let offset = 1; offset <= 60; offset += 1) await remember(`offset:${offset}`, files);
  expect(await find("offset:1")).toMatchObject({ code: "invalid_token" });
  expect(await find("offset:60")).toEqual(files);
  const [record] = await store.list("mcp-continuations");
  expect(JSON.parse(record!.value)).toHaveLength(50);
});
