/** A plan that no file holds, for tests of what comes after reading. */
import type { Nebula, Phase } from "./nebula.ts";

export function samplePhase(id: string, more: Partial<Phase> = {}): Phase {
  return {
    id,
    title: `The ${id}`,
    file: `/plan/${id}.md`,
    body: "Make it.",
    dependsOn: [],
    scope: [],
    gate: "trust",
    priority: 2,
    labels: [],
    ...more,
  };
}

export function sampleNebula(...phases: readonly Phase[]): Nebula {
  return {
    directory: "/plan",
    name: "plan",
    description: "",
    goals: [],
    constraints: [],
    execution: {},
    phases,
  };
}
