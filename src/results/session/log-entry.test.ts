import { expect, it } from "vitest";
import { listTool, openSession } from "./sample-tool.contract.ts";

const key = "a8Kd03mZq91LxW7vBt5R";

it("an entry has no value that looks like a secret, but the delivered page is unchanged", async () => {
  const lines = [`API_KEY=${key}`, "-----BEGIN PRIVATE KEY-----", "MIIEabc", "-----END PRIVATE KEY-----"];
  const session = await openSession({ tools: [listTool(lines)] });
  const { text } = await session.call("list", { note: `Bearer ${key}`, password: "hunter2hunter2" });
  for (const line of lines) expect(text).toContain(line);
  await session.deliver(
    { fields: {}, itemsName: "lines", items: [`token: ${key}`], offset: 0 },
    { tool: "other", args: { headers: [{ Authorization: `Bearer ${key}` }] } },
  );
  const log = JSON.stringify(session.workLog("full"));
  expect(log).not.toMatch(new RegExp(`${key}|MIIE|hunter2`));
  expect(log).toContain("[redacted]");
  expect(log).toContain("API_KEY=");
});

it("the result of a file that usually has secrets is not logged, whichever tool read it", async () => {
  const session = await openSession({});
  for (const args of [{ path: "/srv/.env" }, { paths: ["a.txt", "id_rsa"] }, { uri: "file:///a/.npmrc" }]) {
    const result = { fields: {}, itemsName: "lines", items: ["plain words"], offset: 0 };
    await session.deliver(result, { tool: "read_text_file", args });
  }
  await session.deliver(
    { fields: {}, itemsName: "lines", items: ["plain words"], offset: 0 },
    { tool: "search", args: { pattern: "secrets", path: "src" } },
  );
  const { entries } = session.workLog("full") as { entries: readonly { result: string }[] };
  expect(entries.map(({ result }) => result)).toEqual(["[redacted]", "[redacted]", "[redacted]", "plain words"]);
});

it("data of any depth is logged, and cut where it is too deep", async () => {
  const session = await openSession({});
  let deep: unknown = `token: ${key}`;
  for (let depth = 0; depth < 3_000; depth += 1) deep = depth % 2 === 0 ? [deep] : { deep };
  const result = { fields: { deep }, itemsName: "lines", items: [], offset: 0 };
  await session.deliver(result, { tool: "other", args: { deep } });
  expect(JSON.stringify(session.workLog("full"))).not.toContain(key);
});
