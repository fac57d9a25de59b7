import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Checkpoint } from "../../history/index.ts";
import { openCheckpoint } from "./checkpoint-file.ts";

let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), "plimsoll-checkpoint-"));
});
afterEach(() => rmSync(cwd, { recursive: true }));

const call = () => ({ cwd, env: { HOME: cwd, XDG_STATE_HOME: join(cwd, "state") } });
const empty: Checkpoint = { version: 2, policy: "economic", ledger: { epochs: [] } };
const read = () => readFileSync(join(cwd, "c"), "utf8");

test("what was written is read again", async () => {
  const file = await openCheckpoint("c", call());
  expect(file).toMatchObject({ file: "c", checkpoint: undefined });
  await file.write(empty);
  expect((await openCheckpoint("c", call())).checkpoint).toEqual(empty);
});

test("of two runs at once the second to end writes nothing, unless both decided alike", async () => {
  const [first, second, third] = await Promise.all([1, 2, 3].map(() => openCheckpoint("c", call())));
  await first!.write(empty);
  const written = read();
  await third!.write(empty);
  await expect(second!.write({ ...empty, policy: "rfc" })).rejects.toMatchObject({
    code: "write_failed",
    message: "another run changed it meanwhile",
    file: "c",
  });
  expect(read()).toBe(written);
});

test.each(["", "null", "7", "{", "[]x"])(
  "what is no checkpoint is refused and stays: %j",
  async (content) => {
    writeFileSync(join(cwd, "c"), content);
    await expect(openCheckpoint("c", call())).rejects.toMatchObject({
      code: "unreadable_input",
      file: "c",
      hint: "Move it away: the history is trimmed anew, at the price of one cache break.",
    });
    expect(read()).toBe(content);
  },
);

test("a place that cannot be written is refused before any work", async () => {
  await expect(openCheckpoint(".", call())).rejects.toMatchObject({ code: "refused_target" });
  writeFileSync(join(cwd, "c"), "{}");
  await expect(openCheckpoint("c/d", call())).rejects.toMatchObject({ code: "refused_target", file: "c/d" });
});
