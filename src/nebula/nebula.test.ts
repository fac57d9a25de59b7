import { expect, test } from "vitest";
import { type Phase, wavesOf } from "./nebula.ts";

function phase(id: string, dependsOn: string = "", priority = 2): Phase {
  const rest = { scope: [], gate: "trust" as const, labels: [] };
  return { id, title: id, file: `${id}.md`, body: "", dependsOn: [...dependsOn], priority, ...rest };
}

const idsOf = (phases: readonly Phase[]) => wavesOf(phases).map((wave) => wave.map(({ id }) => id).join(""));

test("a phase is in the first wave after its dependencies", () => {
  expect(idsOf([phase("d", "bc"), phase("c", "a"), phase("b"), phase("a"), phase("e", "a")])).toEqual([
    "ab",
    "ce",
    "d",
  ]);
});

test("in a wave the smaller priority comes first, then the id", () => {
  expect(idsOf([phase("b"), phase("c", "", 1), phase("a", "", 3), phase("A")])).toEqual(["cAba"]);
});

test("without phases there are no waves, and each phase of a chain is a wave", () => {
  expect(wavesOf([])).toEqual([]);
  const chain = Array.from({ length: 5_000 }, (_, index) => ({
    ...phase(`p${index}`),
    dependsOn: index === 0 ? [] : [`p${index - 1}`],
  }));
  expect(wavesOf(chain)).toHaveLength(5_000);
});
