import { type Command, defineCommand } from "../command.ts";
import { renderProblems } from "../render-problems.ts";
import { folderArgument, readNebula } from "./read-nebula.ts";

export const validateCommand: Command = defineCommand({
  arguments: [folderArgument],
  options: {},
  details: `Reports every problem with file and line: phase files without front matter, malformed TOML, keys and values; ids that
are missing, taken or cannot name a file; dependencies on phases that are not there; circles of dependencies, as a path; scopes
that overlap where nothing keeps two phases from running at the same time and neither sets allow_scope_overlap. Unknown
keys are warnings. The exit code is 1 if there is an error; warnings leave it 0.`,
  examples: [
    { line: "plimsoll nebula validate .nebulas/search", meaning: "what is wrong with a nebula" },
    {
      line: "plimsoll nebula validate plan --json | jq '.[] | select(.severity == \"error\")'",
      meaning: "for programs",
    },
  ],
  async run(call) {
    const { problems, phases } = await readNebula(call);
    return {
      json: problems,
      text: renderProblems(problems, { count: phases, noun: "phase" }),
      failed: problems.some(({ severity }) => severity === "error"),
    };
  },
});
