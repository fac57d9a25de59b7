import { expect, test } from "vitest";
import type { Phase } from "../plans/nebula/index.ts";
import { renderMermaid } from "./nebula-report.ts";

function phase(id: string, title: string, dependsOn: readonly string[] = []): Phase {
  const rest = {
    file: "",
    body: "",
    scope: [],
    gate: "trust" as const,
    priority: 2,
    labels: [],
  };
  return { id, title, dependsOn, ...rest };
}

test("a wave is a subgraph, and arrows point from a phase to its dependents", () => {
  expect(
    renderMermaid([[phase("a", "First"), phase("end", "Second")], [phase("c", "Third", ["a", "end"])]]),
  ).toBe(`graph LR
  subgraph wave1["wave 1"]
    p1["a<br/>First"]
    p2["end<br/>Second"]
  end
  subgraph wave2["wave 2"]
    p3["c<br/>Third"]
  end
  p1 --> p3
  p2 --> p3`);
});

test("nothing in a title can end its label", () => {
  const title = 'a "b"] <script>\n&amp; #35; `c` \\ — é';
  expect(renderMermaid([[phase("a", title)]])).toContain(
    '    p1["a<br/>a #34;b#34;] #60;script#62; #38;amp#59; #35;35#59; #96;c#96; #92; — é"]\n',
  );
});
