import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { generateSession } from "../../../test/generate/generate-session.ts";
import { type Checkpoint, createTrimmer } from "../../conversation/history/index.ts";
import { plainCounter } from "../../core/tokens/index.ts";
import { openCheckpoint, withDecisions } from "./saved-decisions.ts";

let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), "plimsoll-checkpoint-"));
});
afterEach(() => rmSync(cwd, { recursive: true }));

const call = () => ({ cwd, env: { HOME: cwd, XDG_STATE_HOME: join(cwd, "state") } });
const empty: Checkpoint = { version: 2, policy: "economic", ledger: { epochs: [] } };
const decided = (checkpoint: Checkpoint) => ({ checkpoint: async () => checkpoint });
const read = () => readFileSync(join(cwd, "c"), "utf8");

test("a written checkpoint is read again", async () => {
  const file = await openCheckpoint("c", call());
  expect(file).toMatchObject({ place: "c", options: {} });
  expect(Object.keys(file.options)).toEqual([]);
  await file.save(decided(empty));
  expect((await openCheckpoint("c", call())).options).toEqual({ checkpoint: empty });
});

test("of two runs at once the second to end writes nothing, unless both decided alike", async () => {
  const [first, second, third] = await Promise.all([1, 2, 3].map(() => openCheckpoint("c", call())));
  await first!.save(decided(empty));
  const written = read();
  await third!.save(decided(empty));
  await expect(second!.save(decided({ ...empty, policy: "rfc" }))).rejects.toMatchObject({
    code: "write_failed",
    message: "another run changed it meanwhile",
    file: "c",
  });
  expect(read()).toBe(written);
});

test.each(["", "null", "7", "{", "[]x"])(
  "a file that is not a checkpoint is refused and stays: %j",
  async (content) => {
    writeFileSync(join(cwd, "c"), content);
    await expect(openCheckpoint("c", call())).rejects.toMatchObject({
      code: "unreadable_input",
      file: "c",
      hint: "Move it away: the history is then trimmed again, which costs one cache miss.",
    });
    expect(read()).toBe(content);
  },
);

test("a place that cannot be written is refused before any work", async () => {
  await expect(openCheckpoint(".", call())).rejects.toMatchObject({ code: "refused_target" });
  writeFileSync(join(cwd, "c"), "{}");
  await expect(openCheckpoint("c/d", call())).rejects.toMatchObject({ code: "refused_target", file: "c/d" });
});

test("of two runs on one session, the second to end saves nothing and says what to do", async () => {
  const { messages } = generateSession({ seed: 11, turns: 24 });
  const at = { session: "s", store: join(cwd, "a.db") };
  // It prints nothing here.
  const caller = { ...call(), output: undefined as never };
  const trimmerOf = async (contextWindow: number, options: object = {}) => {
    const trimmer = await createTrimmer({ contextWindow, reserve: 0, counter: plainCounter, ...options });
    trimmer.reduce({ messages });
    return trimmer;
  };
  await withDecisions(at, caller, async (saved) => {
    const slower = await trimmerOf(9_000, saved.options);
    await withDecisions(at, caller, async (other) => {
      await other.save(await trimmerOf(7_000, other.options));
    });
    await expect(saved.save(slower)).rejects.toMatchObject({
      code: "store_conflict",
      message: "another trimmer of session s has trimmed the history since",
      hint: "Run the command again: it continues with the stored decisions.",
    });
  });
});
