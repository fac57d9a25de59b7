import { defaultMaxSnapshotTokens, renderSnapshot } from "../../compose/index.ts";
import { openDirectory } from "../../workspace/index.ts";
import { chooseCounter, counterOptions } from "../choose-counters.ts";
import { type Command, defineCommand } from "../command.ts";
import { scanDirectory } from "../compose/scan-directory.ts";
import { wholeNumber } from "../whole-number.ts";

export const snapshotCommand: Command = defineCommand({
  arguments: [{ name: "DIR", optional: true, summary: "the project (default: here)" }],
  options: {
    "max-tokens": { value: "N", summary: `the limit of the text (default: ${defaultMaxSnapshotTokens})` },
    ...counterOptions,
  },
  details: `What an agent needs to know of a project before it begins, as Markdown: name and language from its manifests, its
tree, and its conventions. The tree has the files that git tracks or would track, three levels deep; a folder of more
than 20 entries is shown with their number, and a root of more than 100 is cut. Without git the folder is walked, and
.gitignore holds as well. Conventions are AGENTS.md, CLAUDE.md, GEMINI.md and their like, then CONTRIBUTING.md, with
the Markdown files that they import; a text that is there twice comes once. Links out of DIR are not followed, and
files that usually hold secrets (.env, keys) are not read.
The text is within the limit for certain: the tree closes its lowest level first, the conventions lose their end, and
both say what is missing. The same files give the same text. To a pipe or a file it goes as it was counted, with no
line break added. The counter: --counter, else that of --model, else the configuration's, else bytes/4.`,
  examples: [
    { line: "plimsoll snapshot", meaning: "the project in the current directory" },
    { line: "plimsoll snapshot services/api --max-tokens 2000", meaning: "a part of it, in few tokens" },
    { line: "plimsoll snapshot --model claude-sonnet-5", meaning: "as that model counts" },
    { line: "plimsoll snapshot --json | jq .tokens", meaning: "for programs" },
  ],
  async run(call) {
    const { options, cwd, output } = call;
    const limit = options["max-tokens"];
    const maxTokens = limit === undefined ? defaultMaxSnapshotTokens : wholeNumber(limit, "max-tokens", 0);
    const named = call.arguments[0] ?? ".";
    const directory = await openDirectory(named, cwd);
    const counter = await chooseCounter({ ...call, cwd: directory }, "bytes/4");
    const scan = await scanDirectory(directory, call, named);
    const { text, tokens, truncated, omitted } = renderSnapshot(scan, { counter, maxTokens });
    if (text === "" && !truncated) output.note("nothing was found here");
    const files = scan.paths.length;
    const json = { text, tokens, maxTokens, counter: counter.name, truncated, omitted, files };
    return { json, text, exact: true };
  },
});
