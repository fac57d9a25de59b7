import { expect, it } from "vitest";
import { createCounter } from "../../core/tokens/index.ts";
import { exchange, fill, user } from "./exchanges.contract.ts";
import { createTrimmer } from "./trimmer.ts";

const counter = await createCounter("bytes/4");
const notification = (index: number) =>
  user(`<task-notification>\n${fill(`task ${index} printed this `, 11_200)}\n</task-notification>`);

/** Ten notifications fill 28,000 of 36,000 tokens. Then the agent works on for 60 calls. */
async function run(isTrimmable?: "machine-made") {
  const trimmer = await createTrimmer({ contextWindow: 36_000, reserve: 0, counter, format: "anthropic", isTrimmable });
  const messages: object[] = [user("go")];
  for (let index = 0; index < 10; index++) messages.push(...exchange(index, { result: 400 }), notification(index));
  const outcomes = [];
  for (let index = 10; index < 70; index++) {
    messages.push(...exchange(index, { result: 8_000 }));
    const { isEpoch, pressure, overflow } = trimmer.reduce({ messages });
    expect(overflow).toBeUndefined();
    outcomes.push({ isEpoch, pressure });
  }
  return {
    epochs: outcomes.filter(({ isEpoch }) => isEpoch).length,
    pressures: outcomes.filter((each) => each.pressure),
  };
}

it("trims at most every fifth call if it may trim machine-made text that fills the window", async () => {
  const { epochs, pressures } = await run("machine-made");
  expect(epochs).toBeLessThanOrEqual(60 / 5);
  expect(pressures).toEqual([]);
});

it("reports the pressure of such text if it may not be trimmed", async () => {
  const { pressures } = await run();
  expect(pressures.length).toBeGreaterThan(0);
  expect(pressures[0]?.pressure?.largest[0]).toMatchObject({ role: "user", kind: "text" });
});
