import { wholeNumber } from "../../core/text/index.ts";
import { chooseCounter, openDirectory } from "../../host/index.ts";
import { defaultMaxSnapshotTokens, renderSnapshot } from "../../plans/compose/index.ts";
import { scanDirectory } from "../../plans/index.ts";
import { type Command, defineCommand } from "../command.ts";
import { counterOptions } from "../shared-options.ts";

export const snapshotCommand: Command = defineCommand({
  arguments: [{ name: "DIR", optional: true, summary: "the project's folder (default: the current one)" }],
  options: {
    "max-tokens": { value: "N", summary: `the most tokens of the text (default: ${defaultMaxSnapshotTokens})` },
    ...counterOptions,
  },
  details: `Prints what an agent needs to know about a project, as Markdown: name and language from its manifests,
its file tree, and its conventions. The tree has the files that git tracks or would track, three levels deep. A
folder of more than 20 entries shows only their number, and a root of more than 100 is cut. Without git, the folder
is walked and .gitignore still applies. Conventions are AGENTS.md, CLAUDE.md, GEMINI.md and similar files, then
CONTRIBUTING.md, and the Markdown files that they import. A repeated text appears once. Links out of DIR are not
followed, and files that usually hold secrets (.env, keys) are not read.
The text never exceeds the limit: the tree closes its lowest level first, the conventions lose their end, and both
say what is missing. The same files give the same text. A pipe or a file gets the text as it was counted, without a
final line break. The counter is that of --counter, or else of --model, or else of the configuration, or else
bytes/4.`,
  examples: [
    { line: "plimsoll snapshot", meaning: "the project in the current directory" },
    { line: "plimsoll snapshot services/api --max-tokens 2000", meaning: "one folder, in few tokens" },
    { line: "plimsoll snapshot --model claude-sonnet-5", meaning: "with that model's counter" },
    { line: "plimsoll snapshot --json | jq .tokens", meaning: "JSON for programs" },
  ],
  async run(call) {
    const { options, cwd, output } = call;
    const maxTokens = wholeNumber(options["max-tokens"], "max-tokens", 0) ?? defaultMaxSnapshotTokens;
    const named = call.arguments[0] ?? ".";
    const directory = await openDirectory(named, cwd);
    const counter = await chooseCounter({ ...call, cwd: directory }, "bytes/4");
    const scan = await scanDirectory(directory, call, named);
    const { text, tokens, truncated, omitted } = renderSnapshot(scan, { counter, maxTokens });
    if (text === "" && !truncated) output.note("no files were found here");
    const files = scan.paths.length;
    const json = { text, tokens, maxTokens, counter: counter.name, truncated, omitted, files };
    return { json, text, exact: true };
  },
});
