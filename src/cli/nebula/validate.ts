import { agentOptions } from "../choose-agent.ts";
import { type Command, defineCommand } from "../command.ts";
import { renderProblems } from "../render-problems.ts";
import { phaseRuns, renderPhaseRuns } from "./phase-runs.ts";
import { folderArgument, readNebula } from "./read-nebula.ts";

export const validateCommand: Command = defineCommand({
  arguments: [folderArgument],
  options: { ...agentOptions },
  details: `Reports every problem with file and line: phase files without front matter, malformed TOML, keys and values; ids that
are missing, taken or cannot name a file; dependencies on phases that are not there; circles of dependencies, as a path; scopes
that overlap where nothing keeps two phases from running at the same time and neither sets allow_scope_overlap. Unknown
keys are warnings. The exit code is 1 if there is an error; warnings leave it 0. Without an error, it shows how each phase would run:
where, by which command (see --agent), and with which permissions. Nothing is started, and nothing needs trust.`,
  examples: [
    { line: "plimsoll nebula validate .nebulas/search", meaning: "what is wrong with a nebula" },
    {
      line: "plimsoll nebula validate plan --json | jq '.[] | select(.severity == \"error\")'",
      meaning: "for programs",
    },
  ],
  async run(call) {
    const { problems, phases, nebula } = await readNebula(call);
    const runs = nebula === undefined ? [] : renderPhaseRuns(await phaseRuns(nebula, call));
    const found = renderProblems(problems, { count: phases, noun: "phase" });
    return {
      json: problems,
      text: [found, ...(runs.length === 0 ? [] : ["", ...runs])].join("\n"),
      failed: problems.some(({ severity }) => severity === "error"),
    };
  },
});
