import { spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ContextError } from "../../core/errors.ts";
import { withLock } from "./lock.ts";

let base: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "plimsoll-lock-"));
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

const env = () => ({ XDG_STATE_HOME: base });
const directory = () => join(base, "plimsoll/locks");
const lock = <T>(action: () => Promise<T>, waitMs = 5_000) => withLock("/a/b", { env: env(), waitMs }, action);
const deadPid = () => spawnSync(process.execPath, ["-e", ""]).pid;

/** The file and the claim of a held lock of `name`. */
async function heldLock(): Promise<{ file: string; claim: string }> {
  return lock(async () => {
    const file = join(directory(), readdirSync(directory())[0]!);
    return { file, claim: readFileSync(file, "utf8") };
  });
}

async function leave(claim: (own: string[]) => string): Promise<string> {
  const held = await heldLock();
  writeFileSync(held.file, claim(held.claim.split(" ")));
  return held.file;
}

test("only one holds it at a time, and its result is returned", async () => {
  let inside = 0;
  let most = 0;
  const results = await Promise.all(
    [1, 2, 3, 4, 5].map((value) =>
      lock(async () => {
        most = Math.max(most, ++inside);
        await sleep(5);
        inside--;
        return value;
      }),
    ),
  );
  expect(most).toBe(1);
  expect(results).toEqual([1, 2, 3, 4, 5]);
  expect(readdirSync(directory())).toEqual([]);
});

test("different names do not wait for each other", async () => {
  const inner = () => withLock("/other", { env: env(), waitMs: 0 }, async () => "both");
  expect(await lock(inner)).toBe("both");
});

test("names a holder that does not end when the time is over", async () => {
  const holder = spawn("sleep", ["60"]);
  try {
    await leave(([, , word, host]) => `${holder.pid} - ${word} ${host}`);
    await expect(lock(async () => {}, 60)).rejects.toMatchObject({
      code: "write_failed",
      message: expect.stringContaining(`process ${holder.pid} `),
    });
  } finally {
    holder.kill("SIGKILL");
  }
});

test("throws the caller's own error while somebody holds the lock", async () => {
  const heldError = (holder: string) => new ContextError("refused_target", `${holder} has it`);
  const second = () => withLock("/a/b", { env: env(), waitMs: 0, heldError }, async () => {});
  await expect(lock(second)).rejects.toMatchObject({
    code: "refused_target",
    message: `process ${process.pid} has it`,
  });
});

test("many take over the lock of a dead process at once, but only one gets it", async () => {
  await leave(([, , word, host]) => `${deadPid()} - ${word} ${host}`);
  let inside = 0;
  const takeOver = () =>
    lock(async () => {
      expect(++inside).toBe(1);
      await sleep(1);
      inside--;
    });
  const started = performance.now();
  await Promise.all(Array.from({ length: 10 }, takeOver));
  expect(performance.now() - started).toBeLessThan(3_000);
  expect(readdirSync(directory())).toEqual([]);
});

test("a new process with a dead one's id does not keep its lock alive", async () => {
  await leave(([pid, , word, host]) => `${pid} 1 ${word} ${host}`);
  expect(await lock(async () => "mine", 0)).toBe("mine");
});

test("a process killed while it cleared a dead lock, and its claims, are not obstacles", async () => {
  const file = await leave(([, , word, host]) => `${deadPid()} - ${word} ${host}`);
  const dead = `${deadPid()} - word ${hostname()}`;
  for (const name of [`${file}.clear`, `${file}.clear.clear`, `${file}.${deadPid()}.uuid`]) writeFileSync(name, dead);
  expect(await lock(async () => "mine", 0)).toBe("mine");
  expect(readdirSync(directory())).toEqual([]);
});

test("a process killed right after it cleared a dead lock leaves nothing", async () => {
  const { file } = await heldLock();
  const dead = `${deadPid()} - word ${hostname()}`;
  for (const name of [`${file}.clear`, `${file}.clear.clear`]) writeFileSync(name, dead);
  expect(await lock(async () => "mine", 0)).toBe("mine");
  expect(readdirSync(directory())).toEqual([]);
});

test("the lock of another machine counts until it is old", async () => {
  const file = await leave(([pid, started, word]) => `${pid} ${started} ${word} elsewhere`);
  await expect(lock(async () => {}, 30)).rejects.toMatchObject({
    message: expect.stringContaining("on elsewhere"),
  });
  utimesSync(file, 1, 1);
  expect(await lock(async () => "mine", 0)).toBe("mine");
});

test("an unreadable claim does not block forever", async () => {
  mkdirSync(directory(), { recursive: true });
  const file = await leave(() => "");
  utimesSync(file, 1, 1);
  expect(await lock(async () => "mine", 0)).toBe("mine");
});

describe("a state directory that cannot be written", () => {
  const own = () => join(base, `plimsoll-${process.getuid?.()}`);
  /** Below a file, and where the system creates no folders, in which Node's own way to create one never ends. */
  const states = () => [join(base, "file", "state"), "/proc/self"];
  const inTemporary = (state: string, action: () => Promise<void>) =>
    withLock("/a/b", { env: { XDG_STATE_HOME: state, TMPDIR: base } }, action);
  beforeEach(() => writeFileSync(join(base, "file"), ""));

  test.skipIf(process.platform !== "linux")("gives way to a folder of the user's own", async () => {
    for (const state of states()) {
      await inTemporary(state, async () => {
        expect(readdirSync(join(own(), "locks"))).toHaveLength(1);
        expect(statSync(own()).mode & 0o777).toBe(0o700);
      });
      expect(readdirSync(join(own(), "locks"))).toEqual([]);
    }
  });

  test("does not use what somebody else may have put there", async () => {
    const elsewhere = join(base, "elsewhere");
    mkdirSync(elsewhere, { mode: 0o700 });
    const refused = { code: "write_failed", message: expect.stringContaining("only you can use") };
    symlinkSync(elsewhere, own());
    await expect(inTemporary(states()[0]!, async () => {})).rejects.toMatchObject(refused);
    rmSync(own());
    mkdirSync(own());
    chmodSync(own(), 0o777);
    await expect(inTemporary(states()[0]!, async () => {})).rejects.toMatchObject(refused);
    expect(readdirSync(elsewhere)).toEqual([]);
  });
});
