import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createOutput, type OutputOptions } from "./output.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function capture(options: Partial<OutputOptions> & { tty?: boolean } = {}) {
  const written = { stdout: "", stderr: "" };
  const stream = (name: "stdout" | "stderr") => ({
    isTTY: options.tty,
    columns: 20,
    write: (text: string) => {
      written[name] += text;
    },
  });
  const defaults = { env: {}, json: false, quiet: false, stdout: stream("stdout"), stderr: stream("stderr") };
  return { written, output: createOutput({ ...defaults, ...options }) };
}

test("results go to stdout, notes and problems to stderr, each as whole lines", () => {
  const { written, output } = capture();
  output.result("a\n");
  output.result("b");
  output.note("c");
  output.problem("d");
  expect(written).toEqual({ stdout: "a\nb\n", stderr: "plimsoll: c\nplimsoll: d\n" });
});

test("an exact result has no line break added but on a terminal", () => {
  const piped = capture();
  piped.output.exactResult("a");
  piped.output.exactResult("b\n");
  expect(piped.written.stdout).toBe("ab\n");
  const shown = capture({ tty: true });
  shown.output.exactResult("a");
  shown.output.exactResult("b\n");
  expect(shown.written.stdout).toBe("a\nb\n");
});

const foreign = "a\u001b[31m\u009b[1m\u001b[2J\u001b]52;c;aGk=\u0007\u009b\u202eb\r\tc";
const escaped = "a\\x1b[31m\\x9b[1m\\x1b[2J\\x1b]52;c;aGk=\\x07\\x9b\\u202eb\\r\tc";

test("foreign text cannot control a terminal", () => {
  for (const tty of [true, false]) {
    const { written, output } = capture({ tty });
    output.result(`${output.style.bold("name")} ${foreign}\r\nnext`);
    output.note(foreign);
    output.problem(`${foreign}\nnext`);
    expect(written.stderr).toBe(`plimsoll: ${escaped}\nplimsoll: ${escaped}\nnext\n`);
    expect(written.stdout).toBe(`${tty ? "\u001b[1mname\u001b[22m" : "name"} ${escaped}\r\nnext\n`);
  }
  const exact = [true, false].map((tty) => {
    const { written, output } = capture({ tty });
    output.exactResult(foreign);
    return written.stdout;
  });
  expect(exact).toEqual([`${escaped}\n`, foreign]);
});

test("JSON has the same value without characters that control a terminal", () => {
  const { written, output } = capture({ json: true });
  output.result(JSON.stringify({ foreign }));
  output.event({ foreign });
  for (const text of [written.stdout, written.stderr]) {
    expect(JSON.parse(text)).toEqual({ foreign });
    for (const character of ["\u001b", "\u009b", "\u202e"]) expect(text).not.toContain(character);
  }
});

test("quiet hides notes and progress, never problems or results", () => {
  const { written, output } = capture({ quiet: true, tty: true });
  output.note("hidden");
  output.progress("hidden");
  vi.advanceTimersByTime(5000);
  output.problem("shown");
  output.result("shown");
  expect(written).toEqual({ stdout: "shown\n", stderr: "plimsoll: shown\n" });
});

test("events are lines of JSON on stderr, and only with --json", () => {
  const told = [{ json: true }, { json: true, quiet: true }, {}].map((options) => {
    const { written, output } = capture(options);
    output.event({ event: "x", text: "a\nb" });
    return written;
  });
  expect(told).toEqual([
    { stdout: "", stderr: '{"event":"x","text":"a\\nb"}\n' },
    { stdout: "", stderr: "" },
    { stdout: "", stderr: "" },
  ]);
});

test("progress shows after a second, cut to the terminal's width, and disappears before other lines", () => {
  const { written, output } = capture({ tty: true });
  output.progress("first");
  vi.advanceTimersByTime(900);
  output.progress("second, longer than the terminal is wide");
  expect(written.stderr).toBe("");
  vi.advanceTimersByTime(150);
  expect(written.stderr).toBe("\r\u001b[Ksecond, longer than");
  output.problem("x");
  expect(written.stderr.endsWith("\r\u001b[Kplimsoll: x\n")).toBe(true);
  output.settle();
  const before = written.stderr;
  vi.advanceTimersByTime(5000);
  expect(written.stderr).toBe(before);
});

test("work that ends within a second shows no progress, and neither does a pipe", () => {
  const short = capture({ tty: true });
  short.output.progress("x");
  vi.advanceTimersByTime(999);
  short.output.settle();
  const piped = capture();
  piped.output.progress("x");
  const dumb = capture({ tty: true, env: { TERM: "dumb" } });
  dumb.output.progress("x");
  vi.advanceTimersByTime(5000);
  expect([short.written.stderr, piped.written.stderr, dumb.written.stderr]).toEqual(["", "", ""]);
});

test("colours need a terminal that can show them, or FORCE_COLOR; NO_COLOR always wins", () => {
  const coloured = (tty: boolean, env: Record<string, string>) => capture({ tty, env }).output.style.bold("x") !== "x";
  expect(coloured(true, {})).toBe(true);
  expect(coloured(false, {})).toBe(false);
  expect(coloured(false, { CI: "1" })).toBe(false);
  expect(coloured(true, { TERM: "dumb" })).toBe(false);
  expect(coloured(true, { NO_COLOR: "1" })).toBe(false);
  expect(coloured(true, { NO_COLOR: "" })).toBe(true);
  expect(coloured(false, { FORCE_COLOR: "1" })).toBe(true);
  expect(coloured(true, { FORCE_COLOR: "0" })).toBe(false);
  expect(coloured(true, { FORCE_COLOR: "1", NO_COLOR: "1" })).toBe(false);
});
