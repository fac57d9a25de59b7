import { stat } from "node:fs/promises";
import { relative, resolve } from "node:path";
import { countNoun, formatNumber, printable } from "../../core/text/index.ts";
import type { Counter } from "../../core/tokens/index.ts";
import type { Output } from "../../host/index.ts";
import {
  chooseCounters,
  listFiles,
  readForeignText,
  readTextFile,
  readTextStream,
  renderTable,
  type TextLimit,
  type TextRead,
  textLimit,
  type Unread,
} from "../../host/index.ts";
import { type Command, defineCommand, type StdinKind } from "../command.ts";
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
function tellSkipped(skipped: readonly SkippedFile[], output: Output): void {
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
  const sorted = [...files].sort((a, b) => size(b, counters) - size(a, counters));
  const shown = all ? sorted : sorted.slice(0, shownOnTerminal);
  const hidden = sorted.length - shown.length;
  const rows = [[...counters, "bytes", "file"], ...shown.map((file) => row(file, printable(file.path)))];
  const totalRow = row(total, `total of ${countNoun(files.length, "file")}`);
  const more = hidden === 0 ? [] : [[...counters.map(() => ""), "", `... and ${formatNumber(hidden)} more (--all)`]];
  const lines = renderTable([...rows, ...more, totalRow], [...counters.map(() => "right" as const), "right", "left"]);
  return [output.style.dim(lines[0]!), ...lines.slice(1, -1), output.style.bold(lines.at(-1)!)].join("\n");
}

function size(file: CountedFile, counters: readonly string[]): number {
  return file.tokens[counters[0]!] ?? 0;
}

interface CountedFile {
  readonly path: string;
  readonly bytes: number;
  readonly tokens: Readonly<Record<string, number>>;
}

interface SkippedFile {
  readonly path: string;
  readonly reason: string;
  /** Whether the total misses it: it was named, or it may be text. */
  readonly failed: boolean;
}

interface CountReport {
  readonly files: readonly CountedFile[];
  readonly skipped: readonly SkippedFile[];
  readonly total: { readonly bytes: number; readonly tokens: Readonly<Record<string, number>> };
}

interface CountInputsOptions {
  readonly cwd: string;
  readonly stdin: AsyncIterable<Buffer>;
  readonly stdinKind: StdinKind;
  readonly counters: readonly Counter[];
  progress(text: string): void;
}

/** Counts files, files of directories, and standard input (`-`), each once. A failure does not stop the others. */
async function countInputs(names: readonly string[], options: CountInputsOptions): Promise<CountReport> {
  const { inputs, skipped } = await gatherInputs(names, options);
  const files: CountedFile[] = [];
  const limit = limitOf(options.counters);
  let done = 0;
  for (const { path, within } of inputs.values()) {
    options.progress(path === "-" ? "reading standard input" : `counted ${done} of ${inputs.size} files`);
    const read = await readInput(path, { within, limit, options });
    const shown = shownPath(path, options);
    if ("text" in read) files.push({ path: shown, bytes: read.bytes, tokens: tokensOf(read.text, options.counters) });
    else skipped.set(path, skip(read, shown, within === undefined));
    done++;
  }
  files.sort(byPath);
  return { files, total: totalOf(files, options.counters), skipped: [...skipped.values()].sort(byPath) };
}

/** For one long word of this size an exact counter needs seconds, in which it ignores interrupts, and half a
 *  gigabyte. */
const maxExactMegabytes = 10;

function limitOf(counters: readonly Counter[]): TextLimit | undefined {
  const exact = counters.find(({ name }) => name.startsWith("exact:"));
  if (exact === undefined) return undefined;
  const reason = `${exact.name} counts at most ${maxExactMegabytes} MB: split the file, or choose an estimate`;
  return { maxBytes: maxExactMegabytes * 1024 * 1024, reason };
}

interface ReadOptions {
  readonly within: string | undefined;
  readonly limit: TextLimit | undefined;
  readonly options: CountInputsOptions;
}

async function readInput(path: string, { within, limit, options }: ReadOptions): Promise<TextRead> {
  if (path === "-") return readStdin(options, limit);
  // A file that was named may be a pipe.
  return within === undefined ? readTextFile(path, limit) : readForeignText(path, { within, ...(limit ?? textLimit) });
}

async function readStdin({ stdin, stdinKind }: CountInputsOptions, limit: TextLimit | undefined): Promise<TextRead> {
  if (stdinKind === "directory") return { reason: "is a directory", kind: "failed" };
  return readTextStream(stdin, limit);
}

interface Input {
  path: string;
  /** The directory that was named. Absent for a file that was named itself. */
  within?: string;
}

/** Inputs and skipped files by path, because directories may be nested. */
interface Gathered {
  inputs: Map<string, Input>;
  skipped: Map<string, SkippedFile>;
}

async function gatherInputs(names: readonly string[], options: CountInputsOptions): Promise<Gathered> {
  const gathered: Gathered = { inputs: new Map(), skipped: new Map() };
  const paths = new Set(names.map((name) => (name === "-" ? name : resolve(options.cwd, name))));
  for (const path of paths) {
    if (path !== "-" && (await isDirectory(path))) await gatherDirectory(path, gathered, options);
    else gathered.inputs.set(path, { path });
  }
  // Links in directories are skipped; named links are followed.
  for (const path of gathered.inputs.keys()) gathered.skipped.delete(path);
  return gathered;
}

async function gatherDirectory(
  directory: string,
  { inputs, skipped }: Gathered,
  options: CountInputsOptions,
): Promise<void> {
  options.progress(`listing ${shownPath(directory, options)}`);
  const list = await listFiles(directory);
  for (const path of list.files) if (!inputs.has(path)) inputs.set(path, { path, within: directory });
  for (const { path, ...unread } of list.skipped) skipped.set(path, skip(unread, shownPath(path, options), false));
}

async function isDirectory(path: string): Promise<boolean> {
  // Problems with the path are reported when it is read.
  return stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
}

function shownPath(path: string, { cwd }: CountInputsOptions): string {
  return path === "-" ? path : relative(cwd, path) || ".";
}

function tokensOf(text: string, counters: readonly Counter[]): Record<string, number> {
  return Object.fromEntries(counters.map((counter) => [counter.name, counter.count(text)]));
}

function skip({ reason, kind }: Unread, path: string, named: boolean): SkippedFile {
  return { path, reason, failed: named || kind === "failed" };
}

function byPath(a: { path: string }, b: { path: string }): number {
  return a.path < b.path ? -1 : a.path > b.path ? 1 : 0;
}

function totalOf(files: readonly CountedFile[], counters: readonly Counter[]): CountReport["total"] {
  const sum = (size: (file: CountedFile) => number) => files.reduce((total, file) => total + size(file), 0);
  const tokens = counters.map(({ name }) => [name, sum((file) => file.tokens[name] ?? 0)] as const);
  return { bytes: sum((file) => file.bytes), tokens: Object.fromEntries(tokens) };
}
