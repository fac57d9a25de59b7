import { expect, test } from "vitest";
import { parseFabricBlock } from "../report/fabric-block.ts";
import { renderTask } from "./render-task.ts";

const plain = { goals: [], constraints: [] };

test("title, goals, constraints and body stand in this order, then how to report", () => {
  const task = renderTask(
    { goals: ["one", "two\nlines"], constraints: ["three"] },
    { title: "Do\nit", body: "## Why\n\n  because" },
  );
  expect(task).toContain(
    "# Do it\n\n## Goals of the whole\n\n- one\n- two lines\n\n## Constraints\n\n- three\n\n## Why\n\n  because\n\n## How to report\n\n",
  );
});

test("what is empty leaves nothing behind", () => {
  const task = renderTask({ goals: ["  "], constraints: [] }, { title: "Do it", body: "" });
  expect(task).toMatch(/^# Do it\n\n## How to report\n/);
  expect(task).toBe(renderTask(plain, { title: "Do it", body: "" }));
});

test("the block that it shows is understood when it is written so, and reports nothing when it is only repeated", async () => {
  const task = renderTask(plain, { title: "t", body: "" });
  expect(task).toContain("\n```fabric\n");
  const repeated = await parseFabricBlock(`${task}\n${task}`);
  expect(repeated).toEqual({ problems: [], rest: expect.not.stringContaining("entanglements") });
  const { report, problems } = await parseFabricBlock(task.replace("what others may call", "f()"));
  expect(problems).toEqual([]);
  expect(report).toMatchObject({ entanglements: [{}], discoveries: [{}], notes: [{}] });
});
