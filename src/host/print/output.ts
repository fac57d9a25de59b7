/** The two streams: results go to stdout, everything else to stderr. What they print may have names and texts of anybody:
 *  characters that control a terminal become visible escapes here. */
import { printableJson, printableLines } from "../../core/text/index.ts";
import type { Environment } from "../directories.ts";

export interface Output {
  readonly json: boolean;
  /** Whether `--quiet` asks for errors and asked-for results only. */
  readonly quiet: boolean;
  /** Whether stdout is a terminal. */
  readonly terminal: boolean;
  /** Whether a person watches the progress on stderr. */
  readonly watched: boolean;
  readonly columns: number | undefined;
  /** Styles for stdout; they do nothing if colours are off. */
  readonly style: Style;
  result(text: string): void;
  /** Prints a result exactly. Only a terminal gets a line break after it, and visible escapes. */
  exactResult(text: string): void;
  /** Prints a line that `--quiet` hides. */
  note(text: string): void;
  /** Prints a line that nothing hides. */
  problem(text: string): void;
  /** With `--json`, prints a line of JSON that `--quiet` hides. */
  event(value: object): void;
  /** Shows some lines on a terminal after one second of work. The next text replaces them. */
  progress(text: string): void;
  /** Removes the progress line. */
  settle(): void;
}

/** Where a command runs, and where it prints. */
export interface Caller {
  readonly cwd: string;
  readonly env: Environment;
  readonly output: Output;
}

export interface Style {
  bold(text: string): string;
  dim(text: string): string;
}

export interface TextStream {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
  write(text: string): unknown;
}

export interface OutputOptions {
  readonly stdout: TextStream;
  readonly stderr: TextStream;
  readonly env: Environment;
  readonly json: boolean;
  readonly quiet: boolean;
}

export function createOutput({ stdout, stderr, env, json, quiet }: OutputOptions): Output {
  const watched = !quiet && stderr.isTTY === true && env.TERM !== "dumb";
  const bar = createProgress(stderr, watched);
  const line = (stream: TextStream, text: string) => {
    bar.clear();
    stream.write(text.endsWith("\n") ? text : `${text}\n`);
  };
  const terminal = stdout.isTTY === true;
  return {
    json,
    quiet,
    terminal,
    watched,
    columns: stdout.columns,
    style: hasColours(stdout, env) ? colours : { bold: (text) => text, dim: (text) => text },
    result: (text) => line(stdout, json ? printableJson(text) : printableResult(text)),
    exactResult: (text) => (terminal ? line(stdout, printableResult(text)) : stdout.write(text)),
    note: (text) => (quiet ? undefined : line(stderr, `plimsoll: ${printableLines(text)}`)),
    problem: (text) => line(stderr, `plimsoll: ${printableLines(text)}`),
    event: (value) => (json && !quiet ? line(stderr, printableJson(JSON.stringify(value))) : undefined),
    progress: (text) => bar.show(printableLines(text)),
    settle: bar.stop,
  };
}

/** Keeps our own styles, and the line breaks of Windows. */
function printableResult(text: string): string {
  const parts = text.split(/(\r\n|\p{Cc}\[\d+m)/u);
  return parts.map((part) => (kept.has(part) ? part : printableLines(part))).join("");
}

const kept: ReadonlySet<string> = new Set(["\r\n", "\u001b[1m", "\u001b[2m", "\u001b[22m"]);

const colours: Style = {
  bold: (text) => `\u001b[1m${text}\u001b[22m`,
  dim: (text) => `\u001b[2m${text}\u001b[22m`,
};

/** See https://no-color.org and https://force-color.org. */
function hasColours(stream: TextStream, env: Environment): boolean {
  if (env.NO_COLOR) return false;
  if (env.FORCE_COLOR) return env.FORCE_COLOR !== "0" && env.FORCE_COLOR !== "false";
  return stream.isTTY === true && env.TERM !== "dumb";
}

function createProgress(
  stream: TextStream,
  enabled: boolean,
): { show(text: string): void; clear(): void; stop(): void } {
  let latest = "";
  let drawn = 0;
  let timer: NodeJS.Timeout | undefined;
  const clear = () => {
    if (drawn > 0) stream.write(`${drawn > 1 ? `\u001b[${drawn - 1}A` : ""}\r\u001b[${drawn > 1 ? "J" : "K"}`);
    drawn = 0;
  };
  const draw = () => {
    const lines = latest
      .split("\n")
      .slice(0, Math.max(1, (stream.rows || 24) - 1))
      .map((line) => line.slice(0, (stream.columns || 80) - 1));
    // One line is replaced in place, which does not flicker.
    if (drawn > 1 || lines.length > 1) clear();
    stream.write(`\r\u001b[K${lines.join("\n")}`);
    drawn = lines.length;
    timer = setTimeout(draw, 100).unref();
  };
  return {
    show: (text) => {
      latest = text;
      if (enabled) timer ??= setTimeout(draw, 1000).unref();
    },
    clear,
    stop: () => {
      clearTimeout(timer);
      timer = undefined;
      clear();
    },
  };
}
