import { countNoun, formatNumber, printable } from "../../text/index.ts";
import { chooseCounters, counterOptions } from "../choose-counters.ts";
import { type Command, defineCommand } from "../command.ts";
import { type CountedFile, type CountReport, countInputs, type SkippedFile } from "../count-inputs.ts";
import type { Output } from "../output.ts";
import { renderTable } from "../table.ts";

/** On a terminal a directory shows its largest files; the rest is one line. */
const shownOnTerminal = 20;

export const countCommand: Command = defineCommand({
  arguments: [
    { name: "FILE", optional: true, repeated: true, summary: 'file, directory, or "-" for standard input' },
  ],
  options: {
    counter: { ...counterOptions.counter, value: "NAME[,NAME...]", list: true },
    model: counterOptions.model,
    all: { summary: `list every file on a terminal, not the ${shownOnTerminal} largest` },
  },
  details: `Without FILE: what is piped in, else the current directory. Directories are walked without what .gitignore and
.git/info/exclude leave out, and without links. Files come largest first, in JSON by path. Binary files in a
directory are skipped; a file that is named, or may be text, and cannot be counted makes the exit code 1.
The counter: --counter, else that of --model, else the configuration's, else auto.`,
  examples: [
    { line: "plimsoll count .", meaning: "the current directory" },
    { line: "plimsoll count AGENTS.md docs --model claude-sonnet-5", meaning: "as that model counts" },
    { line: "git diff | plimsoll count - --counter exact:o200k", meaning: "standard input, exactly" },
    { line: "plimsoll count src --counter bytes/4,exact:o200k", meaning: "two counters side by side" },
    { line: "plimsoll count . --json | jq .total", meaning: "for programs" },
  ],
  async run(call) {
    const { arguments: given, options, cwd, stdin, stdinKind, output } = call;
    const counters = await chooseCounters(call, "auto");
    // Not /dev/null: a script without input means the directory.
    const names = given.length > 0 ? given : [stdinKind === "piped" ? "-" : "."];
    const report = await countInputs(names, { cwd, stdin, stdinKind, counters, progress: output.progress });
    tellSkipped(report.skipped, output);
    if (report.files.some(({ path, bytes }) => path === "-" && bytes === 0))
      output.note("standard input was empty");
    return {
      json: { ...report, skipped: report.skipped.map(({ path, reason }) => ({ path, reason })) },
      get text() {
        return renderReport(report, { output, all: options.all === true || !output.terminal });
      },
      failed: report.skipped.some(({ failed }) => failed),
    };
  },
});

/** What failed is told one by one. What is merely no text is one line for each reason. */
function tellSkipped(skipped: readonly SkippedFile[], output: Output): void {
  for (const { path, reason, failed } of skipped) if (failed) output.problem(`${printable(path)}: ${reason}`);
  const harmless = skipped.filter(({ failed }) => !failed);
  for (const reason of new Set(harmless.map((each) => each.reason))) {
    const paths = harmless.filter((each) => each.reason === reason).map(({ path }) => printable(path));
    const more = paths.length > 3 ? ` and ${formatNumber(paths.length - 3)} more` : "";
    output.note(`skipped, ${reason}: ${paths.slice(0, 3).join(", ")}${more}`);
  }
}

function renderReport(
  { files, total }: CountReport,
  { output, all }: { output: Output; all: boolean },
): string {
  const counters = Object.keys(total.tokens);
  const row = ({ bytes, tokens }: CountReport["total"], label: string) => [
    ...counters.map((name) => formatNumber(tokens[name] ?? 0)),
    formatNumber(bytes),
    label,
  ];
  const sorted = [...files].sort((a, b) => size(b, counters) - size(a, counters));
  const shown = all ? sorted : sorted.slice(0, shownOnTerminal);
  const hidden = sorted.length - shown.length;
  const rows = [[...counters, "bytes", "file"], ...shown.map((file) => row(file, printable(file.path)))];
  const totalRow = row(total, `total of ${countNoun(files.length, "file")}`);
  const more =
    hidden === 0 ? [] : [[...counters.map(() => ""), "", `... and ${formatNumber(hidden)} more (--all)`]];
  const lines = renderTable(
    [...rows, ...more, totalRow],
    [...counters.map(() => "right" as const), "right", "left"],
  );
  return [output.style.dim(lines[0]!), ...lines.slice(1, -1), output.style.bold(lines.at(-1)!)].join("\n");
}

function size(file: CountedFile, counters: readonly string[]): number {
  return file.tokens[counters[0]!] ?? 0;
}
