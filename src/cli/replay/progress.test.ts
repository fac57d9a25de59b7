import { expect, test } from "vitest";
import { createReplayProgress } from "./progress.ts";

function watched(terminal: boolean) {
  const clock = { ms: 0 };
  const [shown, noted]: [string[], string[]] = [[], []];
  const output = {
    terminal,
    progress: (text: string) => void shown.push(text),
    note: (text: string) => void noted.push(text),
  };
  return { clock, shown, noted, progress: createReplayProgress(output, () => clock.ms) };
}

const run = { what: "session 1 of 2, rfc at 64,000", file: "a.jsonl", calls: 5_000 };

test("a long session shows at which call it is, ten times a second at most", async () => {
  const { clock, shown, progress } = watched(true);
  const pause = progress.start(run);
  expect(pause(1)).toBeUndefined();
  clock.ms = 150;
  await pause(1_200);
  clock.ms = 200;
  expect(pause(1_300)).toBeUndefined();
  expect(shown).toEqual([
    "session 1 of 2, rfc at 64,000: a.jsonl",
    "session 1 of 2, rfc at 64,000, call 1,200 of 5,000: a.jsonl",
  ]);
});

test("off a terminal there is one line a session and policy at most, and none within ten seconds of another", async () => {
  const { clock, noted, progress } = watched(false);
  progress.start({ ...run, file: "at once" });
  clock.ms = 10_000;
  await progress.start(run)(100);
  clock.ms = 15_000;
  progress.start({ ...run, file: "too soon" });
  clock.ms = 21_000;
  progress.start({ ...run, calls: 1 });
  expect(noted).toEqual([
    "session 1 of 2, rfc at 64,000: a.jsonl, 5,000 calls",
    "session 1 of 2, rfc at 64,000: a.jsonl, 1 call",
  ]);
});

test("on a terminal the line that changes is enough", () => {
  const { clock, noted, progress } = watched(true);
  clock.ms = 60_000;
  progress.start(run);
  expect(noted).toEqual([]);
});
