/** Every command and tool over files that are links to secrets, pipes, devices, circles, folders or huge, one at a time,
 *  and over files that become links while they are read. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, extname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { outsideSecret } from "./hostile-repositories.ts";

const runner = fileURLToPath(new URL("./hostile-files.mjs", import.meta.url));
const swapper = fileURLToPath(new URL("./swap-files.mjs", import.meta.url));

/** Seconds for one command, and megabytes for all of them in one process. */
const [mostSeconds, mostMegabytes] = [5, 400];

const geminiLine = (project: string): string =>
  [
    { sessionId: project, projectHash: "abc", kind: "main" },
    {
      ...{ id: "a", timestamp: "2026-11-01T09:00:00.000Z", type: "gemini", content: project },
      ...{ tokens: { input: 2000, cached: 0, output: 20, total: 2020 }, model: "gemini-2.5-pro" },
    },
  ]
    .map((line) => JSON.stringify(line))
    .join("\n");

const claudeLine = (folder: string): string =>
  `${JSON.stringify({
    ...{ type: "assistant", uuid: "u1", parentUuid: null, sessionId: "s1", cwd: folder, requestId: "r1" },
    timestamp: "2026-11-01T09:00:00.000Z",
    message: {
      ...{ id: "m1", model: "claude-sonnet-4-5", role: "assistant", content: [{ type: "text", text: folder }] },
      usage: { input_tokens: 10, output_tokens: 5, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 },
    },
  })}\n`;

/** The files of a plain project with recordings in it. */
const plain: Readonly<Record<string, string>> = {
  ".plimsoll/config.yaml": "title: Ours\n",
  ".plimsoll/notes.yaml": "- Ours\n",
  ".plimsoll/packs/a/pack.yaml": "id: a\nname: A\n",
  ".plimsoll/packs/a/context.md": "# A\n\nOurs.\n",
  ".plimsoll/packs/a/skills/one/SKILL.md": "---\nname: one\ndescription: Ours.\n---\n\nOurs.\n",
  ".plimsoll/profiles/p.yaml": "id: p\npacks: [{ id: a }]\n",
  "AGENTS.md": "# Ours\n",
  "CLAUDE.md": "# Ours\n",
  ".cursor/rules/x.mdc": "Ours.\n",
  ".mcp.json": '{ "mcpServers": { "files": { "command": "x" } } }\n',
  ".claude/settings.json": "{}\n",
  ".claude/skills/one/SKILL.md": "---\nname: one\ndescription: Ours.\n---\n",
  "opencode.json": "{}\n",
  ".gitignore": "*.log\n",
  ".git/index": "",
  ".git/info/exclude": "",
  "package.json": '{ "name": "ours" }\n',
  "notes.txt": "ours\n",
  "plan/nebula.toml": '[nebula]\nname = "plan"\n',
  "plan/a.md": '+++\nid = "a"\ntitle = "A"\n+++\nDo it.\n',
  "runs/shop/.project_root": "/repo/shop\n",
  "runs/shop/chats/session-one.jsonl": geminiLine("ours"),
  "runs/p/s1.jsonl": claudeLine("/repo/ours"),
  "runs/p/s1/subagents/agent-x.jsonl": claudeLine("/repo/ours").replace('"u1"', '"u2"').replace('"m1"', '"m2"'),
  "runs/p/s1/subagents/agent-x.meta.json": '{ "agentType": "ours" }\n',
  "runs/whole.json": JSON.stringify({ messages: [{ role: "user", content: "ours" }] }),
  "checkpoint.json": "{}\n",
};

/** What a file outside says, so that whoever reads it as the given kind shows the secret. */
function secretText(name: string): string {
  switch (extname(name)) {
    case ".yaml":
      return name.endsWith("notes.yaml")
        ? `- ${outsideSecret}\n`
        : `id: a\nname: ${outsideSecret}\ntitle: ${outsideSecret}\n`;
    case ".json":
      return JSON.stringify({
        name: outsideSecret,
        agentType: outsideSecret,
        mcpServers: { [outsideSecret]: { command: "x" } },
      });
    case ".jsonl":
      return name.includes("chats") ? geminiLine(outsideSecret) : claudeLine(`/${outsideSecret}`);
    case ".toml":
      return `[nebula]\nname = "${outsideSecret}"\n`;
    default:
      return name.endsWith(".project_root")
        ? `/${outsideSecret}\n`
        : `+++\nid = "a"\ntitle = "${outsideSecret}"\n+++\n${outsideSecret}\n`;
  }
}

type Plant = (path: string, outside: string) => void;

const plants: Readonly<Record<string, Plant>> = {
  "a link to a secret": (path, outside) => symlinkSync(outside, path),
  "a pipe": (path) => execFileSync("mkfifo", [path]),
  "a link to /dev/zero": (path) => symlinkSync("/dev/zero", path),
  "a circle of links": (path) => symlinkSync(path, path),
  "a folder": (path) => mkdirSync(path),
  "a huge file": (path) => {
    writeFileSync(path, "");
    truncateSync(path, 10_000_000_000);
  },
};

const hookInput = (root: string): string =>
  JSON.stringify({ session_id: "s1", cwd: root, transcript_path: join(root, "runs/p/s1.jsonl"), cost: {} });

const mcpInput = [
  {
    method: "initialize",
    params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "t", version: "1" } },
  },
  ...["project_files", "vcs_status", "vcs_diff", "vcs_log"].map((name) => ({
    method: "tools/call",
    params: { name, arguments: {} },
  })),
  { method: "tools/call", params: { name: "search_content", arguments: { pattern: "outside|ours" } } },
  ...["notes.txt", "CLAUDE.md", "runs/p/s1.jsonl"].flatMap((path) =>
    ["read_file", "vcs_blame"].map((name) => ({ method: "tools/call", params: { name, arguments: { path } } })),
  ),
]
  .map((message, id) => `${JSON.stringify({ jsonrpc: "2.0", id, ...message })}\n`)
  .join("");

interface CommandLine {
  readonly args: readonly string[];
  readonly input?: string;
}

/** Every command that reads a project or recordings. */
function commandsIn(root: string): CommandLine[] {
  const lines = [
    ...["inject --dry-run --all", "inject --status", "inject --check", "import --dry-run", "init"],
    ...["packs list", "packs show a", "packs lint", "notes list", "sync", "audit", "config", "count .", "snapshot"],
    ...["compose --snapshot", "run --dry-run --agent-command true x", "nebula validate plan", "nebula show plan"],
    ...[
      "nebula apply plan --dry-run --agent-command true",
      "fabric show --nebula plan",
      "session list",
      "trust --list",
    ],
    ...["bill runs --by project --no-index --html bill.html", "bill runs --by agent --what-if", "bill runs --json"],
    ...["replay runs --html replay.html", "trim messages.json --window 1000 --checkpoint checkpoint.json"],
    ...["mcp install --dry-run --tool claude-code,cursor,opencode", "mcp install --dry-run --wrap files --lazy"],
    ...["plugin install claude-code --scope project --dry-run", "plugin status claude-code", "store stats", "guard"],
    ...["inject", "inject --uninstall"],
  ];
  return [
    ...lines.map((line) => ({ args: line.split(" ") })),
    { args: ["statusline"], input: hookInput(root) },
    { args: ["guard", "--hook"], input: hookInput(root) },
    { args: ["mcp"], input: mcpInput },
  ];
}

interface Place {
  readonly root: string;
  readonly home: string;
  readonly outside: string;
}

function build(): Place {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "plimsoll-hostile-files-")));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  const place = { root: join(folder, "root"), home: join(folder, "home"), outside: join(folder, "outside") };
  for (const each of Object.values(place)) mkdirSync(each);
  execFileSync("git", ["init", "--quiet", place.root], { env: { PATH: process.env.PATH, HOME: place.home } });
  for (const [name, text] of Object.entries(plain)) {
    for (const [base, content] of [
      [place.root, text],
      [place.outside, secretText(name)],
    ] as const) {
      mkdirSync(dirname(join(base, name)), { recursive: true });
      writeFileSync(join(base, name), content);
    }
  }
  rmSync(join(place.root, ".git/index"));
  // A file that is named may be a pipe, so this one is always plain.
  writeFileSync(join(place.root, "messages.json"), plain["runs/whole.json"] ?? "");
  mkdirSync(join(place.home, ".config/plimsoll"), { recursive: true });
  writeFileSync(join(place.home, ".config/plimsoll/config.yaml"), "guard: { session_usd: 5, day_usd: 5 }\n");
  return place;
}

interface Outcome {
  readonly problems: readonly string[];
  /** Commands that were refused as wrong usage, so they read nothing. */
  readonly misused: readonly string[];
  readonly megabytes: number;
}

interface RunOptions {
  readonly commands?: readonly CommandLine[];
  readonly rounds?: number;
  /** Resolves when nothing changes the files any more. Only then they are looked through. */
  readonly settle?: () => Promise<void>;
}

/** Runs all commands in one process. A command that takes too long ends it. */
async function runAll(
  { root, home }: Place,
  { commands = commandsIn(root), rounds = 1, settle }: RunOptions = {},
): Promise<Outcome> {
  const job = join(home, "job.json");
  writeFileSync(job, JSON.stringify({ cwd: root, env: { PATH: process.env.PATH, HOME: home }, commands, rounds }));
  const child = spawn(process.execPath, [runner, job], { stdio: ["ignore", "pipe", "pipe"] });
  const ended: EndedCommand[] = [];
  let running = "";
  let megabytes = 0;
  let errors = "";
  let timer: NodeJS.Timeout | undefined;
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  for await (const line of createInterface({ input: child.stdout })) {
    clearTimeout(timer);
    const told = JSON.parse(line);
    if (told.maxRss !== undefined) megabytes = told.maxRss / 1024;
    if (told.end !== undefined) ended.push(told);
    if (told.begin === undefined) continue;
    running = told.begin;
    timer = setTimeout(() => child.kill("SIGKILL"), 10 * mostSeconds * 1000);
  }
  clearTimeout(timer);
  const [code] = child.exitCode === null ? await once(child, "close") : [child.exitCode];
  await settle?.();
  const hung = code === 0 ? [] : [`${running}: did not end (${code}) ${errors.slice(0, 500)}`];
  return {
    problems: [...ended.flatMap(problemsWith), ...hung, ...written(root), ...written(home)],
    misused: ended.flatMap((each) => (each.code === 2 ? [each.end] : [])),
    megabytes,
  };
}

interface EndedCommand {
  /** The command line. */
  readonly end: string;
  readonly code: number;
  readonly ms: number;
  readonly cpuMs: number;
  readonly stdout: string;
  readonly stderr: string;
}

function problemsWith({ end, code, ms, cpuMs, stdout, stderr }: EndedCommand): string[] {
  // A command that takes long because the machine is busy has not used much of it.
  const isSlow = ms > mostSeconds * 1000 && (cpuMs > mostSeconds * 500 || ms > 5 * mostSeconds * 1000);
  return [
    ...(code <= 2 ? [] : [`${end}: ended with ${code}: ${stderr}`]),
    ...(isSlow ? [`${end}: took ${Math.round(ms)} ms`] : []),
    ...(`${stdout}${stderr}`.includes(outsideSecret) ? [`${end}: showed the secret`] : []),
  ];
}

/** Files with the secret that commands wrote. Links are not followed. */
function written(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return written(path);
    const isRead = entry.isFile() && existsSync(path) && statSync(path).size < 50_000_000;
    return isRead && readFileSync(path).includes(outsideSecret) ? [`${path} has the secret`] : [];
  });
}

async function tryPlant(kind: string, name: string): Promise<void> {
  const place = build();
  const path = join(place.root, name);
  rmSync(path, { force: true });
  plants[kind]!(path, join(place.outside, name));
  const { problems, megabytes } = await runAll(place);
  expect(problems, `${name} is ${kind}`).toEqual([]);
  expect(megabytes, `${name} is ${kind}`).toBeLessThan(mostMegabytes);
}

describe.skipIf(process.platform === "win32")("no byte from outside, an answer, and little memory", () => {
  test("in a plain project", { tags: ["deep"], timeout: 120_000 }, async () => {
    const place = build();
    const { problems, misused, megabytes } = await runAll(place);
    expect({ problems, misused }).toEqual({ problems: [], misused: [] });
    expect(megabytes).toBeGreaterThan(10);
    expect(megabytes).toBeLessThan(mostMegabytes);
  });

  test("if the runner sees what it must find", async () => {
    const place = build();
    writeFileSync(join(place.root, "CLAUDE.md"), outsideSecret);
    const { problems } = await runAll(place, { commands: [{ args: ["snapshot"] }] });
    expect(problems).toEqual(["snapshot: showed the secret", expect.stringContaining("CLAUDE.md has the secret")]);
  });

  test("with several such files at once", { timeout: 60_000 }, async () => {
    const place = build();
    const several = {
      ...{ "runs/shop/.project_root": "a link to a secret", "AGENTS.md": "a link to a secret" },
      ...{
        ".claude/settings.json": "a pipe",
        "runs/p/s1/subagents/agent-x.meta.json": "a pipe",
        ".gitignore": "a pipe",
      },
      ...{ "opencode.json": "a link to /dev/zero", "runs/p/s1/subagents/agent-y.jsonl": "a huge file" },
    };
    for (const [name, kind] of Object.entries(several)) {
      rmSync(join(place.root, name), { force: true });
      plants[kind]!(join(place.root, name), join(place.outside, name));
    }
    for (const name of ["x", "y", "z"]) symlinkSync("..", join(place.root, ".cursor/rules", name));
    const wanted = /^(bill|replay|audit|snapshot|count|import|statusline|guard --hook|mcp install .*--lazy)/;
    const commands = commandsIn(place.root).filter(({ args }) => wanted.test(args.join(" ")));
    const { problems, megabytes } = await runAll(place, { commands });
    expect(problems).toEqual([]);
    expect(megabytes).toBeLessThan(mostMegabytes);
  });

  test("while files and folders become links", { tags: ["deep"], timeout: 300_000 }, async () => {
    const place = build();
    const names = [
      ...["CLAUDE.md", "notes.txt", "plan/a.md", ".plimsoll/notes.yaml", ".plimsoll/packs/a"],
      ...["runs/shop", "runs/p/s1.jsonl"],
    ];
    const pairs = names.flatMap((name) => [join(place.root, name), join(place.outside, name)]);
    const swapping = spawn(process.execPath, [swapper, ...pairs], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    onTestFinished(() => void swapping.kill("SIGKILL"));
    await once(swapping.stdout, "data");
    // git and ripgrep open files themselves, so their tools cannot promise this.
    const input = mcpInput.replace(/^.*(vcs_|search_content).*\n/gm, "");
    const wanted = /^(snapshot|inject --dry-run|packs show|notes list|count|import|nebula validate|bill|replay|audit)/;
    const lines = commandsIn(place.root).filter(({ args }) => wanted.test(args.join(" ")));
    const settle = async (): Promise<void> => {
      expect(swapping.exitCode).toBe(null);
      swapping.kill("SIGKILL");
      await once(swapping, "close");
    };
    const { problems } = await runAll(place, { commands: [...lines, { args: ["mcp"], input }], rounds: 40, settle });
    expect(problems).toEqual([]);
  });

  describe.each(Object.keys(plants))("with %s", { tags: ["deep"] }, (kind) => {
    test.each(Object.keys(plain))("in the place of %s", { timeout: 300_000 }, (name) => tryPlant(kind, name));
  });
});
