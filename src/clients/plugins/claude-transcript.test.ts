import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createTranscript, notesIn } from "./claude-transcript.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "plimsoll-transcript-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const use = (uuid: string, parentUuid: string, id: string, answer = "msg_1") => ({
  ...{ uuid, parentUuid, type: "assistant" },
  message: { id: answer, content: [{ type: "tool_use", id, name: "Bash", input: {} }] },
});
const result = (uuid: string, parentUuid: string, tool_use_id: string, content = "text") => ({
  ...{ uuid, parentUuid, type: "user" },
  message: { content: [{ type: "tool_result", tool_use_id, content }] },
});
const said = (uuid: string, parentUuid: string | null, content: string) => ({
  ...{ uuid, parentUuid, type: "user", message: { content } },
});

async function read(rows: readonly object[]) {
  const path = join(folder, "session.jsonl");
  writeFileSync(path, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  const transcript = createTranscript(path);
  await transcript.read();
  return transcript;
}

/** As the client writes parallel calls: the rows of the answer follow each other, and each result follows its call. */
const parallel = [
  ...[said("u1", null, "go"), use("a1", "u1", "one"), use("a2", "a1", "two"), use("a3", "a2", "lost")],
  result("r2", "a2", "two", "[abcd: Same text. plimsoll recall abcdefghijklmnop]"),
  result("r3", "a3", "lost", "[Tool call interrupted: the process ended before this call's result was recorded]"),
  result("r1", "a1", "one"),
  { uuid: "a4", parentUuid: "r1", type: "assistant", message: { id: "msg_2", content: "next" } },
];

test("the results of parallel calls are there, but not one that the client lost in a crash", async () => {
  const transcript = await read(parallel);
  const stateOf = transcript.resultState();
  expect(["one", "two", "lost", "unknown"].map(stateOf)).toEqual([true, true, undefined, undefined]);
  expect(transcript.blocks().flatMap(notesIn)).toEqual([{ mark: "abcd", id: "abcdefghijklmnop" }]);
});

test("after a rewind the results of the old branch are not there, whether they are written or not", async () => {
  const rewound = [
    ...parallel,
    use("a5", "a4", "late", "msg_3"),
    said("u2", "u1", "again"),
    use("a6", "u2", "new", "msg_4"),
  ];
  const stateOf = (await read(rewound)).resultState();
  expect(["one", "two", "late", "new"].map(stateOf)).toEqual([false, false, false, undefined]);
});

test("results from before a pause of 65 minutes may have been cleared", async () => {
  const at = (row: object, minutes: number) => ({ ...row, timestamp: new Date(minutes * 60_000).toISOString() });
  const rows = [at(said("u1", null, "go"), 0), at(use("a1", "u1", "one"), 1), at(result("r1", "a1", "one"), 2)];
  const more = (minutes: number) => [at(said("u2", "r1", "on"), minutes), at(use("a2", "u2", "two", "msg_2"), minutes)];
  expect((await read([...rows, ...more(66)])).resultState()("one")).toBe(true);
  expect((await read([...rows, ...more(67)])).resultState()("one")).toBe(false);
});
