import { expect, test } from "vitest";
import { createParallelCalls } from "./parallel-calls.ts";

const call = (tool: string) => ({ tool, input: {} });

test("calls that overlap are parallel, also over a third one", () => {
  const calls = createParallelCalls();
  calls.begin("slow", call("slow"));
  calls.begin("a", call("a"));
  expect(calls.end("a")).toEqual({ isParallel: false, unfinished: [call("slow")] });
  // The model goes on to write its answer while calls already run.
  calls.begin("b", call("b"));
  expect(calls.end("b")).toEqual({ isParallel: true, unfinished: [call("slow")] });
  expect(calls.end("slow")).toEqual({ isParallel: true, unfinished: [] });
  calls.begin("next", call("next"));
  expect(calls.end("next")).toEqual({ isParallel: false, unfinished: [] });
});

test("a call that never ends is forgotten with its turn, and one that failed at once", () => {
  const calls = createParallelCalls();
  for (const key of ["stuck", "failed", "a"]) calls.begin(key, call(key));
  calls.drop("failed");
  expect(calls.end("a")).toEqual({ isParallel: false, unfinished: [call("stuck")] });
  calls.endTurn();
  calls.begin("b", call("b"));
  expect(calls.end("b")).toEqual({ isParallel: false, unfinished: [] });
});

test("a call that is left behind does not make all later calls parallel", () => {
  const calls = createParallelCalls();
  calls.begin("stuck", call("stuck"));
  const results = Array.from({ length: 50 }, (_, index) => {
    calls.begin(index, call("a"));
    return calls.end(index);
  });
  expect(results[10]).toEqual({ isParallel: true, unfinished: [call("stuck")] });
  expect(results.at(-1)).toEqual({ isParallel: false, unfinished: [] });
});
