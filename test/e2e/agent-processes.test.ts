import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";
import { adoptAgent } from "../../src/plans/agent/start-agent.ts";
import { caseCount } from "../case-count.ts";

const starter = fileURLToPath(new URL("agent-starter.mjs", import.meta.url));
const root = mkdtempSync(join(tmpdir(), "plimsoll-agents-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const limits = { timeoutMs: 60_000, maxOutputBytes: 1_000_000 };
let attempts = 0;

interface Killed {
  folder: string;
  /** What the starter said before it was killed. */
  said: string;
}

/** A process that follows an agent, killed with SIGKILL when `until` comes. */
async function killWhile(command: string, until: (folder: string) => Promise<unknown>): Promise<Killed> {
  const folder = join(root, `attempt.${attempts++}`);
  const child = spawn(process.execPath, [starter, folder, command], {
    cwd: root,
    stdio: ["ignore", "pipe", "inherit"],
  });
  let said = "";
  child.stdout.on("data", (chunk) => {
    said += chunk;
  });
  const gone = new Promise((resolve) => child.once("close", resolve));
  while (said === "") await sleep(1);
  await until(folder);
  child.kill("SIGKILL");
  await gone;
  return { folder, said };
}

function contentOf(file: string): string {
  return existsSync(file) ? readFileSync(file, "utf8") : "";
}

test("an agent outlives the kill of its run, and the next one waits for its answer", { tags: ["deep"] }, async () => {
  const { folder, said } = await killWhile("echo begun; sleep 1; cat", (at) =>
    expect.poll(() => contentOf(join(at, "stdout"))).toBe("begun\n"),
  );
  expect(said).toBe("ready\n");
  const run = await adoptAgent(folder, limits);
  expect(await run?.end).toMatchObject({ outcome: "completed", code: 0, answer: "begun\nthe prompt" });
});

test("what ended before the kill is not run again", async () => {
  const { folder } = await killWhile("echo done >>ended; cat", (at) =>
    expect.poll(() => contentOf(join(at, "state"))).toMatch(/\n0\n$/),
  );
  const run = await adoptAgent(folder, limits);
  expect(await run?.end).toMatchObject({ outcome: "completed", answer: "the prompt" });
  expect(contentOf(join(root, "ended"))).toBe("done\n");
});

test("an agent that was killed along with its run is lost", async () => {
  const { folder } = await killWhile("echo begun; sleep 60", async (at) => {
    await expect.poll(() => contentOf(join(at, "stdout"))).toBe("begun\n");
    process.kill(-Number.parseInt(contentOf(join(at, "state")), 10), "SIGKILL");
  });
  const run = await adoptAgent(folder, limits);
  expect(await run?.end).toMatchObject({ outcome: "lost", code: null, answer: "begun\n" });
});

/** Of all processes. */
function commandLines(): string[] {
  return execFileSync("ps", ["-Ao", "args"], { encoding: "utf8" }).split("\n");
}

const rounds = caseCount({ few: 2, deep: 30, long: 100 });

/** Some milliseconds into the start, or as soon as the agent has begun: a busy machine may need longer for that. */
const momentOf = (round: number) => async (folder: string) => {
  if (round % 3 === 0) await expect.poll(() => contentOf(join(folder, "state"))).not.toBe("");
  else await sleep((round * 7) % 12);
};

test("killed at any moment, an agent either ran once and is found, or never runs", {
  tags: ["deep"],
  timeout: 20_000 + rounds * 1_000,
}, async () => {
  let ran = 0;
  for (let round = 0; round < rounds; round++) {
    const mark = join(root, `mark.${round}`);
    const { folder } = await killWhile(`echo ran >>'${mark}'; cat`, momentOf(round));
    const run = await adoptAgent(folder, limits);
    if (run === undefined) {
      // The wrapper may be late: it is there from before the kill, or never will be.
      await expect.poll(() => commandLines().filter((line) => line.includes(folder))).toEqual([]);
      expect(contentOf(mark)).toBe("");
    } else {
      ran++;
      expect(await run.end).toMatchObject({ outcome: "completed", code: 0, answer: "the prompt" });
      expect(contentOf(mark)).toBe("ran\n");
    }
  }
  expect(ran).toBeGreaterThan(0);
});
