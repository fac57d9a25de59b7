import { expect, test } from "vitest";
import { createBackground } from "./background.ts";

test("work is done in its order, one at a time, and a failure stops nothing", async () => {
  const failures: unknown[] = [];
  const { add, settled } = createBackground((error) => failures.push(error));
  const done: string[] = [];
  const work = (name: string) => async () => {
    done.push(`${name} begins`);
    await new Promise((resolve) => setTimeout(resolve, 5));
    done.push(`${name} ends`);
    if (name === "b") throw new Error("b fails");
  };
  await Promise.all(["a", "b", "c"].map((name) => add(work(name))));
  expect(done).not.toContain("a ends");
  await settled();
  expect(done).toEqual(["a", "b", "c"].flatMap((name) => [`${name} begins`, `${name} ends`]));
  expect(failures).toEqual([new Error("b fails")]);
});

test("whoever adds much waits", async () => {
  const { add } = createBackground(() => {});
  let done = 0;
  const work = async () => {
    await new Promise((resolve) => setImmediate(resolve));
    done += 1;
  };
  for (let index = 0; index < 100; index += 1) await add(work);
  expect(done).toBeLessThan(100);
  await add(work);
  expect(done).toBe(101);
});
