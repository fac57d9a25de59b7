import { usageError } from "../../core/errors.ts";
import { refuseSharedStdin } from "../../core/messages/messages-text.ts";
import { counterOptions } from "../../host/config/choose-counters.ts";
import {
  type AccountedContext,
  composeContext,
  type LayerFlags,
  notesOnContext,
  readContextSettings,
} from "../../plans/agent/compose-context.ts";
import { type Command, defineCommand } from "../command.ts";

export const composeCommand: Command = defineCommand({
  options: {
    project: { value: "FILE", summary: "text about the project" },
    snapshot: { summary: "use a snapshot of the current project instead" },
    fabric: { value: "FILE", summary: "the fabric: what other phases reported, as Markdown" },
    prior: { value: "FILE", summary: "the answers of earlier work" },
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
    checkLayerFlags(call.options);
    const context = await composeContext(call, await readContextSettings(call));
    const { text, account } = context;
    for (const line of notesOn(context)) call.output.note(line);
    return { json: { text, ...account }, text, exact: true };
  },
});

function notesOn(context: AccountedContext): string[] {
  if (context.account.maxTokens === 0) return ["the budget is 0, so nothing is composed"];
  return notesOnContext(context);
}

/** Throws on mistakes in the options, before anything is read. */
function checkLayerFlags({ project, snapshot, fabric, prior }: LayerFlags): void {
  if (project !== undefined && snapshot) {
    throw usageError("--project and --snapshot are both given", "Use one of them.");
  }
  const files = [project, fabric, prior];
  if (files.every((name) => name === undefined) && !snapshot) {
    throw usageError(
      "no layer is given",
      "Name at least one: --project FILE or --snapshot, --fabric FILE, --prior FILE.",
    );
  }
  refuseSharedStdin(files, "layer");
}
