import { type Nebula, type Phase, renderTask, wavesOf } from "../../agent/index.ts";
import { ContextError } from "../../errors.ts";
import { countNoun, formatNumber, printable } from "../../text/index.ts";
import type { Counter } from "../../tokens/index.ts";
import { agentOptions } from "../choose-agent.ts";
import { chooseCounter, counterOptions } from "../choose-counters.ts";
import { type Command, defineCommand } from "../command.ts";
import type { Style } from "../output.ts";
import { renderTable } from "../table.ts";
import { type PhaseRun, phaseRuns, renderPhaseRuns } from "./phase-runs.ts";
import { folderArgument, usableNebula } from "./read-nebula.ts";
import { renderMermaid } from "./render-mermaid.ts";

export const showCommand: Command = defineCommand({
  arguments: [folderArgument],
  options: {
    mermaid: { summary: "print the waves as a Mermaid graph" },
    ...agentOptions,
    ...counterOptions,
  },
  details: `A wave is what can run together: its phases depend only on phases of the waves before it. In a wave the order is by
priority, smaller first, then by id. Tokens are those of the task alone: title, goals, constraints, body and how to
report; what a run composes before it comes on top. A nebula with errors is not shown: its problems are.
Below the waves is how each phase would run: where, by which command, and with which permissions. The command depends
on --agent or --agent-command. Nothing is started, and nothing needs trust.`,
  examples: [
    { line: "plimsoll nebula show .nebulas/search", meaning: "the phases in waves" },
    { line: "plimsoll nebula show plan --mermaid > plan.mmd", meaning: "as a graph" },
    { line: "plimsoll nebula show plan --json | jq '.waves[0]'", meaning: "what could start at once" },
  ],
  async run(call) {
    if (call.options.mermaid === true && call.output.json) {
      throw new ContextError("usage", "--mermaid and --json are two forms of one result", {
        hint: "Use one.",
      });
    }
    const { nebula } = await usableNebula(call);
    const counter = await chooseCounter(call, "bytes/4");
    const waves = wavesOf(nebula.phases);
    const runs = await phaseRuns(nebula, call);
    const counted = { nebula, waves, tokens: countTasks(nebula, counter), counter, runs };
    return {
      json: describe(counted),
      text: call.options.mermaid === true ? renderMermaid(waves) : renderWaves(counted, call.output.style),
    };
  },
});

interface CountedNebula {
  readonly nebula: Nebula;
  readonly waves: readonly (readonly Phase[])[];
  readonly tokens: ReadonlyMap<string, number>;
  readonly counter: Counter;
  readonly runs: readonly PhaseRun[];
}

function countTasks(nebula: Nebula, counter: Counter): ReadonlyMap<string, number> {
  return new Map(nebula.phases.map((phase) => [phase.id, counter.count(renderTask(nebula, phase))]));
}

function describe({ nebula, waves, tokens, runs }: CountedNebula): object {
  return {
    name: nebula.name,
    waves: waves.map((wave) => wave.map(({ id }) => id)),
    phases: waves.flat().map(({ id, title, dependsOn, scope, gate }) => {
      const shown = { id, title, dependsOn, scope, gate, promptTokens: tokens.get(id)! };
      return { ...shown, ...runs.find((run) => run.id === id) };
    }),
  };
}

function renderWaves({ nebula, waves, tokens, counter, runs }: CountedNebula, style: Style): string {
  const rows = waves.flatMap((wave, index) =>
    wave.map(({ id, title, dependsOn, gate, scope }) => [
      String(index + 1),
      id,
      printable(title),
      firstOf(dependsOn),
      gate,
      formatNumber(tokens.get(id)!),
      firstOf(scope),
    ]),
  );
  const [header = "", ...lines] = renderTable(
    [["wave", "id", "title", "depends on", "gate", "tokens", "scope"], ...rows],
    ["right", "left", "left", "left", "left", "right", "left"],
  );
  const total = [...tokens.values()].reduce((sum, each) => sum + each, 0);
  const size = `${countNoun(rows.length, "phase")} in ${countNoun(waves.length, "wave")}`;
  const summary = `${printable(nebula.name)}: ${size}, ${formatNumber(total)} tokens of tasks by ${counter.name}`;
  if (rows.length === 0) return summary;
  return [style.dim(header), ...lines, "", summary, "", ...renderPhaseRuns(runs)].join("\n");
}

/** The table is to be read at a glance; all of them are in the JSON. */
const mostShown = 3;

function firstOf(items: readonly string[]): string {
  const more = items.length - mostShown;
  const shown = items.slice(0, mostShown).map(printable).join(", ");
  return more > 0 ? `${shown}, +${more}` : shown;
}
