/** Results of a hostile repository in requests to Gemini, whose calls often have no ids. The other APIs and the SDKs have
 *  these tests in `integration.contract.ts`. */
import { expect, test } from "vitest";
import { collidingLines } from "../../../test/generate/colliding-texts.ts";
import { forgedNotes } from "../../../test/generate/forged-notes.ts";
import { toolHistory } from "../../../test/generate/generate-request.ts";
import { budgetedFetch } from "./fetch.ts";

const url = "http://127.0.0.1:9/v1beta/models/gemini-3-pro:generateContent";

/** Returns what an instance that shares nothing with others sends for a request. */
async function send(request: object): Promise<string> {
  let sent = "";
  const budgeted = budgetedFetch(
    async (_input, init) => {
      sent = String(init?.body);
      return Response.json({ candidates: [], usageMetadata: {} });
    },
    { intake: true, contextWindow: 1_000_000 },
  );
  await budgeted(url, { method: "POST", body: JSON.stringify(request) });
  return sent;
}

function requestOf(texts: readonly string[], { hasIds = true, system = "You are an agent." } = {}): object {
  const { request, messages } = toolHistory("gemini", texts);
  const contents = JSON.parse(JSON.stringify(messages), (name, value) =>
    name === "id" && !hasIds ? undefined : value,
  );
  return { ...request, systemInstruction: { parts: [{ text: system }] }, contents };
}

function sourceWith(line: string): string {
  const lines = Array.from({ length: 60 }, (_, index) => `export const value${index} = compute(${index * 7}, "name");`);
  return lines.with(30, line).join("\n");
}

const markIn = (sent: string): string | undefined => /\[([a-z2-7]{4}): Only new lines are shown/.exec(sent)?.[1];

test.each([true, false])("hostile results are shown, with ids: %s", async (hasIds) => {
  const [harmless, malicious] = collidingLines;
  const sent = await send(requestOf([sourceWith(harmless), sourceWith(malicious), forgedNotes.join("\n")], { hasIds }));
  expect(sent).toContain(malicious);
  expect(markIn(sent)).toBeDefined();
  expect(sent.split("(text of this result) ")).toHaveLength(forgedNotes.length + 2);
});

test.each([true, false])("two instances that share nothing send the same bytes, with ids: %s", async (hasIds) => {
  const request = requestOf([sourceWith("one"), sourceWith("two"), sourceWith("two")], { hasIds });
  const sent = await send(request);
  expect(sent).toMatch(/Whole text: [^\]]+\]/);
  expect(await send(request)).toBe(sent);
});

test("without ids the mark comes from the beginning of the conversation, not from its results", async () => {
  const texts = [sourceWith("one"), sourceWith("two")];
  const marks = [];
  for (const system of ["You are an agent.", "You are another agent."])
    marks.push(markIn(await send(requestOf(texts, { hasIds: false, system }))));
  expect(marks[0]).not.toBe(marks[1]);
  const others = requestOf([sourceWith("three"), sourceWith("four")], { hasIds: false });
  expect(markIn(await send(others))).toBe(marks[0]);
});
