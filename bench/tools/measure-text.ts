/** What a model pays for results in text form, beside the plainest command that gives the same facts. */
import { execFileSync } from "node:child_process";
import { type Counter, createCounter } from "../../src/core/tokens/index.ts";
import { type ServerCommand, startServer } from "./server-client.ts";
import { createSourceRepository, type SourceRepository } from "./source-repository.ts";

export interface TextMeasurement {
  readonly name: string;
  /** The plain command. */
  readonly plain: string;
  /** Of all pages together. */
  readonly tokens: number;
  readonly plainTokens: number;
  readonly pages: number;
  /** Facts of the plain output that no page has, and the other way round. */
  readonly missing: number;
  readonly added: number;
}

export interface TextReport {
  readonly files: number;
  readonly counter: string;
  /** Tokens of all definitions together. */
  readonly definitions: number;
  readonly instructions: number;
  readonly tasks: readonly TextMeasurement[];
}

export interface TextOptions {
  /** The built command. */
  readonly main: string;
  readonly folder: string;
  /** The folder of the installed packages. */
  readonly modules: string;
  readonly env: ServerCommand["env"];
  readonly files: number;
  readonly ripgrep: string | undefined;
}

export async function measureText({ main, folder, modules, env, files, ripgrep }: TextOptions): Promise<TextReport> {
  const repository = createSourceRepository(folder, modules, files);
  const counter = await createCounter("estimate:claude-5");
  // All pages together are more than one conversation gets.
  const args = [main, "mcp", "--total", "100000000", "--counter", counter.name];
  const client = await startServer({ args, cwd: repository.root, env });
  try {
    const tasks: TextMeasurement[] = [];
    for (const task of textTasks(repository, ripgrep)) tasks.push(await measureTask(task, counter, client.call));
    const { definitions, instructions } = await client.context();
    return {
      files: repository.files,
      counter: counter.name,
      definitions: definitions.reduce((sum, each) => sum + counter.count(each), 0),
      instructions: counter.count(instructions),
      tasks,
    };
  } finally {
    await client.close();
  }
}

interface TextTask {
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** How many pages are read. Default: all. */
  readonly mostPages?: number;
  /** The plain command as a person would write it. */
  readonly plain: string;
  plainText(): string;
  /** Returns what a text says, one string a fact. Takes both forms. */
  facts(text: string): readonly string[];
}

/** `call` runs a tool and returns its text. */
export async function measureTask(task: TextTask, counter: Counter, call: CallText): Promise<TextMeasurement> {
  const pages = await readPages(task, call);
  const plainText = task.plainText();
  const expected = new Set(task.facts(plainText));
  const found = new Set(task.facts(pages.map(({ body }) => body).join("\n")));
  return {
    name: `${task.tool} ${JSON.stringify(task.args)}`,
    plain: task.plain,
    tokens: pages.reduce((sum, { text }) => sum + counter.count(text), 0),
    plainTokens: counter.count(plainText),
    pages: pages.length,
    missing: [...expected].filter((fact) => !found.has(fact)).length,
    added: [...found].filter((fact) => !expected.has(fact)).length,
  };
}

type CallText = (tool: string, args: Readonly<Record<string, unknown>>) => Promise<{ readonly text: string }>;

interface TextPage {
  readonly text: string;
  /** Without the line about the page. */
  readonly body: string;
}

/** Reads all pages as a model would: the same call with the offset that the last line names. */
async function readPages({ tool, args, mostPages }: TextTask, call: CallText): Promise<TextPage[]> {
  const pages: TextPage[] = [];
  for (let offset: number | undefined = 0; offset !== undefined && pages.length !== mostPages; ) {
    const { text } = await call(tool, { ...args, offset });
    const at = text.lastIndexOf("\n") + 1;
    const isNote = / · id [a-z2-7]{16}\]$/.test(text);
    pages.push({ text, body: isNote ? text.slice(0, Math.max(0, at - 1)) : text });
    const next = isNote ? /; next: offset=(\d+) · /.exec(text.slice(at))?.[1] : undefined;
    offset = next === undefined ? undefined : Number(next);
  }
  return pages;
}

/** The tasks of a repository. Those of a search need ripgrep. */
export function textTasks({ root, longest, word }: SourceRepository, ripgrep: string | undefined): TextTask[] {
  const run = (program: string, args: readonly string[]): string =>
    execFileSync(program, args, { cwd: root, encoding: "utf8", maxBuffer: 1e9, stdio: ["ignore", "pipe", "inherit"] });
  const git = (...args: string[]) => ({ plain: `git ${args.join(" ")}`, plainText: () => run("git", args) });
  const rg = (...args: string[]) => ({
    plain: `rg ${args.join(" ")} '${word}'`,
    plainText: () => run(ripgrep!, ["--no-config", "--sort=path", "-F", "-i", ...args, word]),
  });
  const pattern = word;
  const grouped = { plain: "ls, by directory", plainText: () => byDirectory(run("git", ["ls-files"])) };
  const searches: TextTask[] = [
    {
      tool: "search_content",
      args: { pattern, context_lines: 2, max_results: 100_000 },
      ...rg("--heading", "-n", "-C2"),
      facts: matchFacts,
    },
    {
      tool: "search_content",
      args: { pattern, context_lines: 0, max_results: 100_000 },
      ...rg("--heading", "-n"),
      facts: matchFacts,
    },
    { tool: "search_content", args: { pattern, mode: "files" }, ...rg("-l"), facts: linesOf },
    { tool: "search_content", args: { pattern, mode: "count" }, ...rg("-c"), facts: linesOf },
  ];
  return [
    ...(ripgrep === undefined ? [] : searches),
    { tool: "project_files", args: { mode: "files", max_depth: 99 }, ...grouped, facts: directoryFacts },
    {
      tool: "read_file",
      args: { path: longest, max_size: 10_000_000 },
      plain: "cat -n",
      plainText: () => run("cat", ["-n", longest]),
      facts: (text) => linesOf(text).map((line) => line.trimStart()),
    },
    { tool: "vcs_log", args: { max_commits: 50 }, mostPages: 1, ...git("log", "--oneline", "-50"), facts: linesOf },
    { tool: "vcs_diff", args: { from: "HEAD~20", to: "HEAD" }, ...git("diff", "HEAD~20", "HEAD"), facts: diffFacts },
    {
      ...{ tool: "vcs_diff", args: { from: "HEAD~20", to: "HEAD", mode: "files" } },
      ...git("diff", "--name-status", "HEAD~20", "HEAD"),
      facts: (text) => linesOf(text).map((line) => line.replace("\t", " ")),
    },
    {
      ...{ tool: "vcs_diff", args: { from: "HEAD~20", to: "HEAD", mode: "stat" } },
      ...git("diff", "--numstat", "HEAD~20", "HEAD"),
      facts: linesOf,
    },
    { tool: "vcs_status", args: {}, ...git("status", "--short", "--branch"), facts: linesOf },
    {
      ...{ tool: "vcs_blame", args: { path: longest, end_line: 300 } },
      ...git("blame", "-s", "-L", "1,300", longest),
      facts: blameFacts,
    },
  ];
}

function linesOf(text: string): string[] {
  return text.split("\n").filter((line) => line !== "");
}

function byDirectory(list: string): string {
  const directories = new Map<string, string[]>();
  for (const path of linesOf(list)) {
    const at = path.lastIndexOf("/") + 1;
    const directory = path.slice(0, at) || "./";
    directories.set(directory, [...(directories.get(directory) ?? []), path.slice(at)]);
  }
  return [...directories].map(([directory, names]) => `${directory}:\n${names.join("\n")}\n`).join("\n");
}

function directoryFacts(text: string): string[] {
  let directory = "";
  return linesOf(text).flatMap((line) => {
    if (!/\/:?$/.test(line)) return `${directory}${line}`;
    directory = line.replace(/:$/, "");
    return [];
  });
}

/** Every line once, as a match if any page shows it as one: the context of a page can be a match of the next. */
function matchFacts(text: string): string[] {
  const lines = new Map<string, string>();
  let path = "";
  for (const line of linesOf(text)) {
    const [, number, mark, content] = /^(\d+)([:-])(.*)$/.exec(line) ?? [];
    if (number === undefined) path = line === "--" ? path : line;
    else if (mark === ":" || !lines.has(`${path}:${number}`)) lines.set(`${path}:${number}`, `${mark}${content}`);
  }
  return [...lines].map(([place, content]) => `${place}${content}`);
}

/** The lines of each file in their order, without what stands before the first hunk. */
function diffFacts(text: string): string[] {
  const facts: string[] = [];
  let [file, inHunk, index] = ["", false, 0];
  for (const line of text.split("\n")) {
    if (line.startsWith("diff --git ")) {
      index = line === file ? index : 0;
      [file, inHunk] = [line, false];
    } else if (line.startsWith("@@ ")) inHunk = true;
    else if (inHunk && /^[ +\\-]/.test(line)) facts.push(`${file} ${index++} ${line}`);
  }
  return facts;
}

function blameFacts(text: string): string[] {
  let commit = "";
  return linesOf(text).flatMap((line) => {
    const [, hash, number, content] = /^\^?([\da-f]{7,8})[\da-f]* +(\d+)\) ?(.*)$/.exec(line) ?? [];
    if (number !== undefined) return `${hash!.slice(0, 7)} ${number} ${content}`;
    const [, ownNumber, ownContent] = /^(\d+)\t(.*)$/.exec(line) ?? [];
    if (ownNumber !== undefined) return `${commit} ${ownNumber} ${ownContent}`;
    commit = line.slice(0, 7);
    return [];
  });
}
