import { countNoun, formatNumber, printable } from "../../core/text/index.ts";
import type { Output } from "../../host/index.ts";
import { type CountReport, chooseCounters, renderTable } from "../../host/index.ts";
import { type Command, defineCommand } from "../command.ts";
import { counterOptions } from "../shared-options.ts";

/** How many files of a directory a terminal shows; the others share one line. */
const shownOnTerminal = 20;

export const countCommand: Command = defineCommand({
  arguments: [{ name: "FILE", optional: true, repeated: true, summary: 'file, directory, or "-" for standard input' }],
  options: {
    counter: { ...counterOptions.counter, value: "NAME[,NAME...]", list: true },
    model: counterOptions.model,
    all: { summary: `list every file on a terminal, not only the ${shownOnTerminal} largest` },
  },
  details: `Without FILE, counts what is piped in, or else the current directory. In directories it skips links and
the files that .gitignore and .git/info/exclude leave out. Lists the largest files first; JSON is sorted by path.
Skips binary files in a directory. If a named file, or one that may be text, cannot be counted, the exit code is 1.
The counter is that of --counter, or else of --model, or else of the configuration, or else auto.`,
  examples: [
    { line: "plimsoll count .", meaning: "the current directory" },
    { line: "plimsoll count AGENTS.md docs --model claude-sonnet-5", meaning: "with that model's counter" },
    { line: "git diff | plimsoll count - --counter exact:o200k", meaning: "standard input, exactly" },
    { line: "plimsoll count src --counter bytes/4,exact:o200k", meaning: "compare two counters" },
    { line: "plimsoll count . --json | jq .total", meaning: "JSON for programs" },
  ],
  async run(call) {
    const { arguments: given, options, cwd, stdin, stdinKind, output } = call;
    const counters = await chooseCounters(call, "auto");
    // /dev/null does not count as piped input: a script without input means the directory.
    const names = given.length > 0 ? given : [stdinKind === "piped" ? "-" : "."];
    const { countInputs } = await import("../../host/files/count-files.ts");
    const report = await countInputs(names, { cwd, stdin, stdinKind, counters, progress: output.progress });
    tellSkipped(report.skipped, output);
    if (report.files.some(({ path, bytes }) => path === "-" && bytes === 0)) output.note("standard input was empty");
    return {
      json: { ...report, skipped: report.skipped.map(({ path, reason }) => ({ path, reason })) },
      get text() {
        return renderReport(report, { output, all: options.all === true || !output.terminal });
      },
      failed: report.skipped.some(({ failed }) => failed),
    };
  },
});

/** Reports failures one by one, and files that are not text in one line per reason. */
function tellSkipped(skipped: CountReport["skipped"], output: Output): void {
  for (const { path, reason, failed } of skipped) if (failed) output.problem(`${printable(path)}: ${reason}`);
  const harmless = skipped.filter(({ failed }) => !failed);
  for (const reason of new Set(harmless.map((each) => each.reason))) {
    const paths = harmless.filter((each) => each.reason === reason).map(({ path }) => printable(path));
    const more = paths.length > 3 ? ` and ${formatNumber(paths.length - 3)} more` : "";
    output.note(`skipped, ${reason}: ${paths.slice(0, 3).join(", ")}${more}`);
  }
}

function renderReport({ files, total }: CountReport, { output, all }: { output: Output; all: boolean }): string {
  const counters = Object.keys(total.tokens);
  const row = ({ bytes, tokens }: CountReport["total"], label: string) => [
    ...counters.map((name) => formatNumber(tokens[name] ?? 0)),
    formatNumber(bytes),
    label,
  ];
  const sorted = [...files].sort((a, b) => (b.tokens[counters[0]!] ?? 0) - (a.tokens[counters[0]!] ?? 0));
  const shown = all ? sorted : sorted.slice(0, shownOnTerminal);
  const hidden = sorted.length - shown.length;
  const rows = [[...counters, "bytes", "file"], ...shown.map((file) => row(file, printable(file.path)))];
  const totalRow = row(total, `total of ${countNoun(files.length, "file")}`);
  const more = hidden === 0 ? [] : [[...counters.map(() => ""), "", `... and ${formatNumber(hidden)} more (--all)`]];
  const lines = renderTable([...rows, ...more, totalRow], [...counters.map(() => "right" as const), "right", "left"]);
  return [output.style.dim(lines[0]!), ...lines.slice(1, -1), output.style.bold(lines.at(-1)!)].join("\n");
}
