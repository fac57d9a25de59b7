import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { ContextError } from "../core/errors.ts";
import {
  type Call,
  type Command,
  type CommandEntry,
  type CommandExit,
  type CommandResult,
  defineCommand,
  type Program,
} from "./command.ts";
import { describeCommands } from "./commands/completion.ts";
import { runCli } from "./run-cli.ts";

function entry(name: string, loaded: Awaited<ReturnType<CommandEntry["load"]>>): CommandEntry {
  return { name, summary: `does ${name}`, load: async () => loaded };
}

function command(run: (call: Call) => Promise<CommandResult | CommandExit | undefined>): Command {
  return defineCommand({
    arguments: [{ name: "ID", optional: true, summary: "which one" }],
    options: {
      "max-tokens": { value: "N", summary: "how many" },
      level: { short: "l", value: "L", choices: ["low", "high"], summary: "level" },
    },
    examples: [{ line: "plimsoll packs list", meaning: "all" }],
    run,
  });
}

const examples = [{ line: "plimsoll packs", meaning: "more" }];
const echo = command(async ({ arguments: given, options }) => ({
  json: { given, options },
  text: `got ${given.join()}`,
}));
const throwing = (error: unknown) => command(() => Promise.reject(error));
const program: Program = {
  summary: "A program.",
  examples,
  subcommands: [
    entry("packs", { examples, subcommands: [entry("list", echo), entry("lint", echo)] }),
    entry("bug", throwing(new TypeError("undefined is not a function", { cause: new Error("root") }))),
    entry("odd", throwing("just a text")),
    entry(
      "wrong",
      throwing(
        new ContextError("invalid_config", "first\na/b:2: second", {
          file: "a\u001bb",
          line: 3,
          hint: "Do this.",
        }),
      ),
    ),
    entry("counter", throwing(new ContextError("unknown_counter", 'unknown counter "x"'))),
    entry(
      "silent",
      command(async () => undefined),
    ),
    entry("runner", {
      ...command(async ({ arguments: words, output }) => {
        output.note(JSON.stringify(words));
        return { exitCode: words.length };
      }),
      arguments: [{ name: "WORD", repeated: true, mayBeEmpty: true, summary: "for another program" }],
    }),
    entry(
      "failed",
      command(async () => ({ json: [], text: "", failed: true })),
    ),
    entry(
      "interrupted",
      command(async () => ({ json: ["half"], text: "half", failed: true, interrupted: true })),
    ),
    entry(
      "exact",
      command(async ({ arguments: [text = ""] }) => ({ json: { text }, text, exact: true })),
    ),
    entry(
      "dear",
      command(async () => ({
        json: [1],
        get text(): string {
          throw new Error("rendered for nobody");
        },
      })),
    ),
    { name: "broken", summary: "", load: () => Promise.reject(new Error("cannot load")) },
  ],
};

async function run(...args: string[]) {
  return runWith({}, ...args);
}

async function runWith({ isTTY }: { isTTY?: boolean }, ...args: string[]) {
  const written = { stdout: "", stderr: "" };
  const stream = (name: "stdout" | "stderr") => ({
    isTTY,
    write: (text: string) => {
      written[name] += text;
    },
  });
  const world = {
    env: {},
    stdin: Readable.from([]),
    stdinKind: "other" as const,
    cwd: () => "/",
    stdout: stream("stdout"),
    stderr: stream("stderr"),
  };
  const code = await runCli(args, world, program);
  return { code, ...written };
}

test("a subcommand runs with its arguments and options, global switches at any place", async () => {
  for (const args of [
    ["packs", "list", "a", "--max-tokens", "5", "-l", "low", "--json"],
    ["--json", "packs", "-q", "list", "--max-tokens=5", "--level=low", "a"],
  ]) {
    const { code, stdout } = await run(...args);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ given: ["a"], options: { "max-tokens": "5", level: "low" } });
  }
  expect(await run("packs", "list", "a")).toEqual({ code: 0, stdout: "got a\n", stderr: "" });
});

test("a group alone shows its help, as does help with its name", async () => {
  const group = await run("packs");
  expect(group).toMatchObject({ code: 0, stderr: "" });
  expect(group.stdout).toContain("Usage: plimsoll packs COMMAND");
  expect(group.stdout).toMatch(/list +does list\n +lint +does lint/);
  expect(await run("help", "packs")).toEqual(group);
  expect((await run("help", "packs", "lint")).stdout).toContain("Usage: plimsoll packs lint [options] [ID]");
});

test("an unknown subcommand is wrong usage with a suggestion", async () => {
  expect(await run("packs", "lsit")).toEqual({
    code: 2,
    stdout: "",
    stderr: 'plimsoll: unknown command "packs lsit". Did you mean "list"?\n',
  });
});

test("a value outside the choices is wrong usage", async () => {
  const { code, stderr } = await run("packs", "list", "--level", "hgih");
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr: 'plimsoll: --level is "hgih". Did you mean "high"? Choose from low, high.\n',
  });
});

test("several values for an option that takes one are wrong usage", async () => {
  const { code, stderr } = await run("packs", "list", "--level", "low,high");
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr: 'plimsoll: --level takes one value, not "low,high". Choose one of them.\n',
  });
  expect((await run("packs", "list", "--level", "low,hgih")).stderr).toContain('--level is "low,hgih"');
});

test("a bug shows its stack and exits 70, with --json as a value too", async () => {
  const { code, stdout, stderr } = await run("bug", "--json");
  expect(code).toBe(70);
  expect(stderr).toMatch(/^plimsoll: TypeError: undefined is not a function\n +at /);
  expect(stderr).toContain("Error: root");
  expect(stderr).toMatch(/This is a bug in plimsoll\..*\n$/);
  expect(JSON.parse(stdout).error).toMatchObject({
    code: "internal",
    message: "undefined is not a function",
  });
  expect(await run("odd")).toMatchObject({ code: 70, stdout: "" });
  expect(await run("broken")).toMatchObject({ code: 70, stdout: "" });
});

test("an expected error has its place, its lines and its hint, with control characters made visible", async () => {
  expect(await run("wrong")).toEqual({
    code: 1,
    stdout: "",
    stderr: "plimsoll: a\\x1bb:3: first\na/b:2: second\nDo this.\n",
  });
  expect(JSON.parse((await run("wrong", "--json")).stdout)).toEqual({
    error: {
      code: "invalid_config",
      message: "first\na/b:2: second",
      hint: "Do this.",
      file: "a\u001bb",
      line: 3,
    },
  });
});

test("an unknown counter from anywhere is wrong usage", async () => {
  expect((await run("counter")).code).toBe(2);
});

test("a command may print nothing, and may fail with a result", async () => {
  expect(await run("silent")).toEqual({ code: 0, stdout: "", stderr: "" });
  expect(await run("failed")).toEqual({ code: 1, stdout: "", stderr: "" });
  expect(await run("failed", "--json")).toEqual({ code: 1, stdout: "[]\n", stderr: "" });
  expect(await run("interrupted")).toEqual({ code: 130, stdout: "half\n", stderr: "" });
  expect(await run("interrupted", "--json")).toMatchObject({
    code: 130,
    stdout: expect.stringContaining('"half"'),
  });
});

test("a command that runs another program passes empty words on, and ends with that one's exit code", async () => {
  for (const json of [[], ["--json"]]) {
    expect(await run("runner", ...json, "--", "server", "", "--flag", "")).toEqual({
      code: 4,
      stdout: "",
      stderr: 'plimsoll: ["server","","--flag",""]\n',
    });
  }
  expect(await run("packs", "list", "--", "")).toMatchObject({ code: 2, stderr: "plimsoll: ID is empty\n" });
});

test("an exact text is printed as it is, and only a terminal gets a line break after it", async () => {
  for (const text of ["no line break", "one\n", "two\n\n"]) {
    expect(await run("exact", "--", text)).toEqual({ code: 0, stdout: text, stderr: "" });
    const shown = text.endsWith("\n") ? text : `${text}\n`;
    expect((await runWith({ isTTY: true }, "exact", "--", text)).stdout).toBe(shown);
    expect((await run("exact", "--json", "--", text)).stdout).toBe(`{\n  "text": ${JSON.stringify(text)}\n}\n`);
  }
  for (const isTTY of [true, false]) expect((await runWith({ isTTY }, "exact")).stdout).toBe("");
});

test("with --json the text is not even made", async () => {
  expect(await run("dear", "--json")).toEqual({ code: 0, stdout: "[\n  1\n]\n", stderr: "" });
});

test("short switches in one word work before a command and without one", async () => {
  const help = await run("--help");
  for (const word of ["-qh", "-hq"]) expect(await run(word)).toEqual(help);
  expect((await run("-qV")).stdout).toMatch(/^\d+\.\d+\.\d+/);
  expect(await run("-qh", "packs", "list")).toEqual(await run("help", "packs", "list"));
  expect(await run("-qx")).toMatchObject({ code: 2, stderr: expect.stringContaining('unknown option "-x"') });
});

test("help refuses words that it would ignore", async () => {
  for (const extra of ["extra", "--max-tokens", "-V"]) {
    expect(await run("help", "packs", "list", extra)).toEqual({
      code: 2,
      stdout: "",
      stderr: `plimsoll: unexpected argument "${extra}". The help of a command is "plimsoll help packs list".\n`,
    });
  }
  expect(await run("help", "packs", "list", "-q")).toMatchObject({ code: 0, stderr: "" });
});

test("completion knows the subcommands of a group", async () => {
  const nodes = await describeCommands(program.subcommands.slice(0, 1));
  expect(nodes.map(({ path }) => path.join(" "))).toEqual(["", "packs", "packs list", "packs lint"]);
  expect(nodes[2]?.options.map(({ name }) => name)).toEqual(["max-tokens", "level", "json", "quiet", "help"]);
});
