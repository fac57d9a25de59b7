import { usageError } from "../../core/errors.ts";
import { wholeNumber } from "../../core/text/index.ts";
import { composeContext, readContextSettings } from "../../plans/index.ts";
import { type Command, defineCommand } from "../command.ts";
import { notesOnContext } from "../context-notes.ts";
import { counterOptions, layerOptions } from "../shared-options.ts";
import { readLayer, refuseSharedStdin } from "../text-input.ts";

export const composeCommand: Command = defineCommand({
  options: {
    project: { value: "FILE", summary: "text about the project" },
    snapshot: { summary: "use a snapshot of the current project instead" },
    ...layerOptions,
    "max-context-tokens": {
      value: "N",
      summary: "token budget of the text; 0 composes nothing (default: from the configuration, 10000)",
    },
    ...counterOptions,
  },
  details: `Prints the given layers as one text, in the order project, fabric, prior work, with a rule between
them. The text never exceeds the budget, separators and markers included.
Each layer can count on its share of the budget (context.shares of the configuration: 0.4, 0.4 and 0.2). Other
layers use what a layer does not need, the project first. Project and prior work keep their beginning. The fabric
keeps its headings: the longest section loses items first and says how many. Discoveries stay whole. If even they
do not fit, they are cut, and "overflow" is the number of tokens that are missing.
"-" reads one layer from standard input. A pipe or a file gets the text as it was counted, without a final line
break. The counter is that of --counter, or else of --model, or else of the configuration, or else bytes/4.`,
  examples: [
    { line: "plimsoll compose --snapshot --fabric fabric.md --prior notes.md", meaning: "all three layers" },
    {
      line: "plimsoll compose --project CLAUDE.md --max-context-tokens 2000 --model gpt-5",
      meaning: "one file, cut to 2,000 tokens of that model",
    },
    {
      line: "plimsoll fabric show --nebula plan | plimsoll compose --snapshot --fabric -",
      meaning: "read a layer from another command",
    },
    { line: "plimsoll compose --prior log.txt --json | jq .layers", meaning: "JSON for programs" },
  ],
  async run(call) {
    const { project, snapshot, fabric, prior, counter, model, "max-context-tokens": budget } = call.options;
    // Mistakes in the options are reported before anything is read.
    if (project !== undefined && snapshot) {
      throw usageError("--project and --snapshot are both given", "Use one of them.");
    }
    const files = [project, fabric, prior];
    if (files.every((name) => name === undefined) && !snapshot) {
      const hint = "Name at least one: --project FILE or --snapshot, --fabric FILE, --prior FILE.";
      throw usageError("no layer is given", hint);
    }
    refuseSharedStdin(files, "layer");
    const options = { counter, model, maxContextTokens: wholeNumber(budget, "max-context-tokens", 0) };
    const settings = await readContextSettings({ ...call, options });
    // Read even if the budget is 0, so that a wrong name is always an error.
    const layers = {
      project: await readLayer(project, call),
      fabric: await readLayer(fabric, call),
      priorWork: await readLayer(prior, call),
    };
    const context = await composeContext(layers, { ...settings, snapshot }, call);
    const { text, account } = context;
    const isEmpty = account.maxTokens === 0;
    const notes = isEmpty ? ["the budget is 0, so nothing is composed"] : notesOnContext(context);
    for (const line of notes) call.output.note(line);
    return { json: { text, ...account }, text, exact: true };
  },
});
