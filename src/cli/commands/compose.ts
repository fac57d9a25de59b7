import { counterOptions } from "../choose-counters.ts";
import { type Command, defineCommand } from "../command.ts";
import { type AccountedContext, composeContext } from "../compose/compose-context.ts";
import { readContextSettings } from "../compose/context-settings.ts";
import { notesOnContext } from "../compose/describe-context.ts";
import { checkLayerFlags } from "../compose/layer-inputs.ts";

export const composeCommand: Command = defineCommand({
  options: {
    project: { value: "FILE", summary: "what is to be known of the project" },
    snapshot: { summary: "take the snapshot of the project here instead" },
    fabric: { value: "FILE", summary: "the shared state of sibling work, as Markdown" },
    prior: { value: "FILE", summary: "what was done before" },
    "max-context-tokens": {
      value: "N",
      summary: "the budget of the text; 0 for none at all (default: the configuration's, 10000)",
    },
    ...counterOptions,
  },
  details: `Prints one text of the layers that are given, in the order project, fabric, prior work, with a rule between them. It
is within the budget for certain, separators and markers included. Each layer may count on its share (the
configuration's context.shares, 0.4, 0.4 and 0.2); what one does not need goes to the next, and what is still unused
to those that were truncated, the project first. Project and prior work keep their beginning. The fabric keeps its
headings: the longest section gives up items first, and says how many. Discoveries stay whole; if even they do not
fit, they are cut, and "overflow" has by how many tokens. "-" reads one of the layers from standard input.
To a pipe or a file the text goes as it was counted, with no line break added.
The counter: --counter, else that of --model, else the configuration's, else bytes/4.`,
  examples: [
    { line: "plimsoll compose --snapshot --fabric fabric.md --prior notes.md", meaning: "all three layers" },
    {
      line: "plimsoll compose --project CLAUDE.md --max-context-tokens 2000 --model gpt-5",
      meaning: "one file, cut to what that model counts as 2,000 tokens",
    },
    {
      line: "plimsoll fabric show --nebula plan | plimsoll compose --snapshot --fabric -",
      meaning: "a layer from another command",
    },
    { line: "plimsoll compose --prior log.txt --json | jq .layers", meaning: "for programs" },
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
  if (context.account.maxTokens === 0) return ["the budget is 0: nothing is composed"];
  return notesOnContext(context);
}
