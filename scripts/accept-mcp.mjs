/** Runs the real claude, codex, opencode and gemini with our MCP server and with `mcp wrap --lazy`, against a scripted
 *  model, and checks what the model got: `npm run accept:mcp -- DIR [NAME[:PART]…] [--packages FOLDER]`. DIR has an installation
 *  of each client; scripts/agents/clients.mjs says where. FOLDER has @playwright/mcp and chrome-devtools-mcp; without it
 *  --lazy runs with the reference servers alone. Uses loopback only. */
import { execFile, execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { findClient, modelOf, prepareClient } from "./agents/clients.mjs";
import { startProvider } from "./provider/provider.mjs";

const plimsoll = fileURLToPath(new URL("../dist/cli/main.js", import.meta.url));
const modules = fileURLToPath(new URL("../node_modules/", import.meta.url));
const { values, positionals } = parseArgs({ options: { packages: { type: "string" } }, allowPositionals: true });
const [directory, ...chosen] = positionals;
if (directory === undefined) {
  console.error("usage: npm run accept:mcp -- DIR [NAME[:PART]…] [--packages FOLDER]");
  process.exit(2);
}
const folder = resolve(directory);
const root = realpathSync(mkdtempSync(join(tmpdir(), "plimsoll-accept-")));
const failures = [];
let conversation;
let play;
/** Gives the new results to the play and returns the calls that it asks for. */
function follow({ body, results, tools }) {
  play.tools ??= tools;
  const messages = body.messages ?? body.input ?? body.contents ?? [];
  if (compactionPrompts.test(JSON.stringify(messages.at(-1)))) {
    play.compactions += 1;
    play.isCompacting = true;
    return { text: "<summary>The files were read.</summary>" };
  }
  if (results.length < play.seen) {
    play.compactions += play.isCompacting ? 0 : 1;
    play.seen = 0;
  }
  play.isCompacting = false;
  const fresh = results.slice(play.seen);
  play.seen = results.length;
  // A compaction may take results away before the model has seen them. Then it asks again.
  const isLost = play.calls !== undefined && fresh.length < play.calls.length;
  const { value, done } = isLost
    ? { value: play.calls }
    : play.turns.next(fresh.slice(-(play.calls?.length ?? 0)).map(play.client.clean ?? ((each) => each)));
  if (done) return { text: "The work is done." };
  play.requests += 1;
  play.calls = value;
  return {
    text: "Working.",
    calls: value.map(([server, name, input]) => ({ ...play.client.call(server, name), input })),
  };
}

/** What claude and codex ask when they shorten their history. The others ask without tools. */
const compactionPrompts = /create a detailed summary of the conversation|CONTEXT CHECKPOINT COMPACTION/i;

async function accept(choice) {
  const [name, part] = choice.split(":");
  const { missing, version } = findClient(folder, name);
  if (missing !== undefined) return check(false, `${name}: not found. Install it: ${missing}`);
  console.log(`\n${name} ${version}`);
  const tests = {
    turns: acceptTurns,
    shared: acceptShared,
    lazy: acceptLazy,
    commands: acceptCommands,
    long: acceptLong,
    room: acceptRoom,
    direct: acceptDirect,
  };
  for (const [each, test] of Object.entries(tests)) if (part === undefined || part === each) await test(name);
}

// Ten turns and more in one conversation, ten calls at once, and a resumed conversation.

async function acceptTurns(name) {
  const place = open(name, { plimsoll: ours("mcp", "--total", "100000", ...clients[name].account) });
  const seen = { turns: [] };
  await converse(place, tenTurns(seen));
  check(
    seen.turns.length === simpleTurns.length && seen.turns.every(({ isFine }) => isFine),
    `${name}: ${seen.turns.length} turns`,
    seen.turns,
  );
  check(
    seen.joined === numbered(place, "long.ts"),
    `${name}: ${seen.pages} pages of a file, joined, are the file`,
    seen.joined?.slice(0, 300),
  );
  const diff = changedLines(git(place, ["diff", "HEAD~1", "HEAD"]));
  check(
    changedLines(seen.diff ?? "") === diff,
    `${name}: ${seen.diffPages} pages of a diff, joined, have git's lines`,
    seen.diff?.slice(0, 300),
  );
  check(seen.parallel === 10, `${name}: ${seen.parallel} of ten parallel calls came back whole`, seen.texts);
  const resumed = {};
  await converse(place, askBudget(resumed), clients[name].resume);
  check(
    resumed.used >= seen.used && seen.used > 40_000,
    `${name}: the account had ${seen.used}, resumed it has ${resumed.used}`,
    resumed,
  );
}

const simpleTurns = [
  ["project_files", {}, /^src/m],
  ["search_content", { pattern: "value77 ", mode: "files" }, /long\.ts/],
  ["search_content", { pattern: "value77 ", context_lines: 1 }, /^long\.ts\n77-.*\n78:.*\n79-/],
  ["vcs_log", {}, /^[0-9a-f]{7,} Change/],
  ["vcs_diff", { from: "HEAD~1", to: "HEAD", mode: "stat" }, /long\.ts/],
  ["vcs_status", {}, /main/],
  ["vcs_blame", { path: "src/p1.txt" }, /line 60 of file 1/],
  ["read_file", { path: "../outside" }, /outside/],
];

function* tenTurns(seen) {
  for (const [tool, input, expected] of simpleTurns) {
    const [text] = yield [["plimsoll", tool, input]];
    seen.turns.push({ tool, isFine: expected.test(text ?? ""), text });
  }
  const numbers = Array.from({ length: 10 }, (_, index) => index + 1);
  const texts = yield numbers.map((number) => ["plimsoll", "read_file", { path: `src/p${number}.txt` }]);
  const isWhole = (number) => texts.includes(numberedLines(smallFile(number)));
  Object.assign(seen, { parallel: numbers.filter(isWhole).length, texts });
  const file = yield* readOn("read_file", { path: "long.ts" });
  Object.assign(seen, { joined: file.text, pages: file.pages });
  const diff = yield* readOn("vcs_diff", { from: "HEAD~1", to: "HEAD" });
  Object.assign(seen, { diff: diff.text, diffPages: diff.pages });
  yield* askBudget(seen);
}

/** A page that continues a file repeats the name of the file. */
function changedLines(diff) {
  const lines = diff.split("\n").filter((line) => /^[-+](?![-+])/.test(line));
  return lines.join("\n");
}

/** Calls a tool until a page has no continuation. */
function* readOn(tool, input) {
  const bodies = [];
  let next = {};
  while (next !== undefined && bodies.length < 40) {
    const [text] = yield [["plimsoll", tool, { ...input, ...next }]];
    const lines = (text ?? "").split("\n");
    const note = /^\[.*\]$/.test(lines.at(-1)) ? lines.pop() : "";
    const offset = /next: offset=(\d+)/.exec(note)?.[1];
    bodies.push(lines.join("\n"));
    next = offset === undefined ? undefined : { offset: Number(offset) };
  }
  return { text: bodies.join("\n"), pages: bodies.length };
}

function* askBudget(seen) {
  const [text] = yield [["plimsoll", "budget_status", {}]];
  const [, left, total] = /Budget: (-?\d+)k of (\d+)k left/.exec(text ?? "") ?? [];
  Object.assign(seen, { status: text, used: (total - left) * 1_000 });
}

// Two servers with one --session

async function acceptShared(name) {
  const files = [process.execPath, join(modules, "@modelcontextprotocol/server-filesystem/dist/index.js")];
  const place = open(name, {
    plimsoll: ours("mcp", "--total", "100000", "--session", "both"),
    files: ours("mcp", "wrap", "--total", "100000", "--session", "both", "--", ...files, "PROJECT"),
  });
  const seen = {};
  await converse(place, twoServers(seen, place));
  check(
    seen.after - seen.before >= 1_000,
    `${name}: two servers with one --session: ${seen.before}, then ${seen.after}`,
    seen,
  );
}

function* twoServers(seen, { project }) {
  yield* askBudget(seen);
  seen.before = seen.used;
  [seen.text] = yield [["files", "read_text_file", { path: join(project, "long.ts") }]];
  yield* askBudget(seen);
  seen.after = seen.used;
}

// mcp wrap --lazy

async function acceptLazy(name) {
  const reference = (each) => ({
    command: process.execPath,
    args: [join(modules, `@modelcontextprotocol/server-${each}/dist/index.js`)],
  });
  const place = open(name, { lazy: ours("mcp", "wrap", "--lazy", "--config", "PROJECT/servers.json") });
  const servers = {
    files: { ...reference("filesystem"), args: [...reference("filesystem").args, place.project] },
    all: reference("everything"),
  };
  write(place, "servers.json", JSON.stringify({ mcpServers: { ...servers, ...packagedServers() } }));
  const seen = {};
  await converse(place, findAndCall(seen, place));
  check(/^files_read_text_file \[read-only\]/m.test(seen.found), `${name}: find_tool found a tool`, seen);
  check(/"path"/.test(seen.described), `${name}: describe_tool showed its arguments`, seen);
  check(seen.read?.includes("line 60 of file 1"), `${name}: call_read_tool returned the file`, seen);
  check(/required property \\*"b/.test(seen.wrong), `${name}: wrong arguments: ${seen.wrong?.split("\n")[0]}`, seen);
  check(/ 5\b/.test(seen.sum), `${name}: call_tool returned ${seen.sum}`, seen);
  if (values.packages !== undefined)
    check(/browser/.test(seen.web), `${name}: a tool of Playwright's server: ${seen.web?.split("\n")[0]}`, seen);
}

function packagedServers() {
  if (values.packages === undefined) return {};
  const at = (path) => ({ command: process.execPath, args: [join(resolve(values.packages), "node_modules", path)] });
  return { web: at("@playwright/mcp/cli.js"), chrome: at("chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js") };
}

function* findAndCall(seen, { project }) {
  [seen.found] = yield [["lazy", "find_tool", { query: "read a text file" }]];
  [seen.described] = yield [["lazy", "describe_tool", { name: "files_read_text_file" }]];
  [seen.read] = yield [
    ["lazy", "call_read_tool", { name: "files_read_text_file", arguments: { path: join(project, "src/p1.txt") } }],
  ];
  [seen.wrong] = yield [["lazy", "call_tool", { name: "all_get-sum", arguments: { a: 2 } }]];
  [seen.sum] = yield [["lazy", "call_tool", { name: "all_get-sum", arguments: { a: 2, b: 3 } }]];
  if (values.packages !== undefined) [seen.web] = yield [["lazy", "find_tool", { query: "close the browser page" }]];
}

// run_command

async function acceptCommands(name) {
  const place = open(name, { plimsoll: ours("mcp", "--allow-commands", "node") });
  write(place, "test.js", manyTests);
  const seen = {};
  await converse(place, runCommands(seen));
  check(
    /^not ok 1500 /m.test(seen.tests) && /^# fail 1$/m.test(seen.tests) && /^\[exit code 1/m.test(seen.tests),
    `${name}: run_command keeps the failure, the sum and the exit code of 2,000 tests`,
    seen,
  );
  check(seen.tests?.length < 16_000, `${name}: run_command returned ${seen.tests?.length} characters`, seen);
  check(/ok 1400 /.test(seen.recalled), `${name}: recall has the rest: ${seen.recalled?.split("\n")[0]}`, seen);
  check(/python3[\\"]+ is not allowed here/.test(seen.other), `${name}: ${seen.other}`, seen);
  check(/without one/.test(seen.shell), `${name}: ${seen.shell}`, seen);
}

const manyTests = `for (let n = 1; n <= 2_000; n++) console.log((n === 1500 ? "not ok " : "ok ") + n + " - adds " + "abc"[n % 3]);
console.log("# fail 1");
process.exitCode = 1;
`;

function* runCommands(seen) {
  const run = (command) => [["plimsoll", "run_command", { command }]];
  [seen.tests] = yield run("node test.js");
  const id = /recall with id (\w+)/.exec(seen.tests)?.[1];
  [seen.recalled] = yield [["plimsoll", "recall", { id, pattern: "ok 1400 " }]];
  [seen.other] = yield run("python3 test.py");
  [seen.shell] = yield run("node test.js | head -1");
}

// A conversation that is longer than the window: a wrapped server gives each file in as many calls as at the beginning.

const filesystem = join(modules, "@modelcontextprotocol/server-filesystem/dist/index.js");
const wrapFiles = (...flags) =>
  ours("mcp", "wrap", "--as", "files", ...flags, "--", process.execPath, filesystem, "PROJECT");

async function acceptLong(name) {
  const place = open(name, { files: wrapFiles() });
  clients[name].shortenWindow(place);
  const reads = [];
  await converse(place, readOften(place, reads, 30));
  const { compactions } = play;
  await converse(place, readOften(place, reads, 2), clients[name].resume);
  const counts = reads.map(({ pages }) => pages);
  const [first, last] = [counts[0], Math.max(...counts.slice(-2))];
  const expected = { claude: 1, opencode: 1 }[name] ?? last;
  check(
    reads.length === 32 && last <= first && first === expected,
    `${name}: ${reads.length} reads of 10,300 tokens took ${counts.join(",")} calls, over ${compactions} compactions and a resume`,
    reads.at(-1),
  );
  check(
    reads.every(({ small }) => small === 7),
    `${name}: ${reads.reduce((sum, { small }) => sum + small, 0)} results of 1,500 tokens came whole`,
    reads.find(({ small }) => small !== 7),
  );
}

// With a total, a compaction that the plugin reports gives the room back.

async function acceptRoom(name) {
  if (name !== "claude") return;
  const place = open(name, { files: wrapFiles("--total", "100000") });
  clients[name].shortenWindow(place);
  symlinkSync(plimsoll, join(place.home, "bin/plimsoll"));
  place.hasPlugin = true;
  execFileSync(process.execPath, [plimsoll, "plugin", "install", "claude-code", "--quiet"], {
    cwd: place.project,
    env: place.env,
  });
  const reads = [];
  await converse(place, readOften(place, reads, 20));
  const counts = reads.map(({ pages }) => pages);
  const after = reads.filter(({ compactions }, index) => compactions > (reads[index - 1]?.compactions ?? 0));
  check(
    after.length > 0 && Math.max(...counts) <= counts[0],
    `${name}: with --total 100000, reads took ${counts.join(",")} calls; after compactions ${after.map(({ pages }) => pages).join(",")}`,
    reads,
  );
}

function* readOften(place, reads, rounds) {
  const lines = (count) =>
    Array.from(
      { length: count },
      (_, index) => `export const price${index} = ${index * 7}; // of item ${index}\n`,
    ).join("");
  // Some clients stop a model that makes the same call again and again.
  for (let index = 0; index < 7; index += 1) {
    write(place, `large-${index}.ts`, lines(600));
    write(place, `small-${index}.ts`, lines(85));
  }
  const read = (path) => ["files", "read_text_file", { path: join(place.project, path) }];
  for (let round = 0; round < rounds; round += 1) {
    const compactions = play.compactions;
    const [first] = yield [read(`large-${round % 7}.ts`)];
    let [pages, text] = [1, first ?? ""];
    for (let token = nextToken(text); token !== undefined && pages < 40; token = nextToken(text)) {
      [text] = yield [["files", "next_page", { token }]];
      pages += 1;
    }
    const small = yield Array.from({ length: 7 }, (_, index) => read(`small-${index}.ts`));
    const isWhole = (each) => each.includes("price84 = 588") && nextToken(each) === undefined;
    reads.push({ pages, compactions, small: small.filter(isWhole).length, text: text.slice(-200) });
  }
}

function nextToken(text = "") {
  return /token=([\w:+-]+)/.exec(text.slice(-400))?.[1];
}

// Claude Code finds other tools by a search, but calls those for pages at once.

async function acceptDirect(name) {
  if (name !== "claude") return;
  const place = open(name, { files: wrapFiles() });
  delete place.env.ENABLE_TOOL_SEARCH;
  const seen = {};
  await converse(place, readDirectly(place, seen));
  const listed = (play.tools ?? []).filter((tool) => tool.startsWith("mcp__files__")).sort();
  check(
    listed.join() === "mcp__files__next_page,mcp__files__recall",
    `${name}: the first request has ${listed.join(" and ")} of the server's tools`,
    play.tools,
  );
  check(/mcp__files__next_page token=/.test(seen.first), `${name}: a note names the tool as the model sees it`, seen);
  check(/price700 = /.test(seen.page), `${name}: next_page answers without a search`, seen);
  check(/price4321 = /.test(seen.recalled), `${name}: recall answers without a search`, seen);
}

function* readDirectly(place, seen) {
  const lines = Array.from({ length: 5_000 }, (_, index) => `export const price${index} = ${index * 7};\n`);
  write(place, "huge.ts", lines.join(""));
  yield [["", "ToolSearch", { query: "select:mcp__files__read_text_file" }]];
  [seen.first] = yield [["files", "read_text_file", { path: join(place.project, "huge.ts") }]];
  [seen.page] = yield [["files", "next_page", { token: nextToken(seen.first) }]];
  const id = /id (\w{16})/.exec(seen.first?.slice(-300))?.[1];
  [seen.recalled] = yield [["files", "recall", { id, pattern: "price4321 " }]];
}

/** How each client is told of servers, asked and resumed, and how its model names their tools. */
const clients = {
  claude: {
    account: [],
    clean: (text) => text.replace(/\n*<system-reminder>[\s\S]*<\/system-reminder>\s*/, ""),
    // Otherwise the client hides the tools until the model searches for them.
    env: { ENABLE_TOOL_SEARCH: "false" },
    install: (place, servers) => write(place, ".mcp.json", JSON.stringify({ mcpServers: servers })),
    args: ({ project, hasPlugin }, more) => {
      // The plugin has a server of its own.
      const strict = hasPlugin ? [] : ["--strict-mcp-config"];
      const config = ["--mcp-config", join(project, ".mcp.json"), ...strict];
      const allowed = ["--allowedTools", "mcp__plimsoll,mcp__files,mcp__lazy"];
      const session = more.length > 0 ? more : ["--session-id"];
      return ["-p", "MCP-TASK", "--model", modelOf("claude"), ...config, ...allowed, ...session, conversation];
    },
    resume: ["--resume"],
    call: (server, name) => ({ name: server === "" ? name : `mcp__${server}__${name}` }),
    shortenWindow: ({ env }) => {
      env.CLAUDE_CODE_AUTO_COMPACT_WINDOW = "100000";
    },
  },
  codex: {
    account: [],
    install: (place, servers) => {
      const entries = Object.entries(servers).map(([id, { command, args }]) => {
        return `[mcp_servers.${id}]\nrequired = true\ncommand = ${JSON.stringify(command)}\nargs = ${JSON.stringify(args)}\n`;
      });
      appendFileSync(join(place.home, ".codex/config.toml"), `\n${entries.join("\n")}`);
    },
    args: (_, more) => {
      const options = ["--dangerously-bypass-approvals-and-sandbox", "--model", modelOf("codex")];
      return ["exec", ...options, ...more, "MCP-TASK"];
    },
    resume: ["resume", "--last"],
    clean: (text) => text.replace(/^Wall time: [^\n]*\nOutput:\n/, ""),
    call: (server, name) => ({ namespace: `mcp__${server}`, name }),
    shortenWindow: ({ home }) => {
      const file = join(home, ".codex/config.toml");
      writeFileSync(file, `model_auto_compact_token_limit = 100000\n${readFileSync(file, "utf8")}`);
    },
  },
  opencode: {
    account: ["--session", "accept"],
    install: ({ home }, servers) => {
      const mcp = Object.entries(servers).map(([id, { command, args }]) => {
        return [id, { type: "local", command: [command, ...args], enabled: true }];
      });
      addSettings(join(home, ".config/opencode/opencode.json"), { mcp: Object.fromEntries(mcp) });
    },
    args: (_, more) => ["run", "-m", modelOf("opencode"), ...more, "MCP-TASK"],
    resume: ["--continue"],
    call: (server, name) => ({ name: `${server}_${name}` }),
    shortenWindow: ({ home }) => {
      const file = join(home, ".config/opencode/opencode.json");
      const settings = JSON.parse(readFileSync(file, "utf8"));
      // Wide enough for the whole conversation: with the scripted model, opencode 1.18 stops at its compaction.
      const limit = { context: 1_000_000, output: 8_000 };
      settings.provider.scripted.models = { "claude-sonnet-4-5": { limit } };
      writeFileSync(file, JSON.stringify(settings));
    },
  },
  gemini: {
    account: ["--session", "accept"],
    install: ({ home }, servers) => addSettings(join(home, ".gemini/settings.json"), { mcpServers: servers }),
    args: (_, more) => ["-m", modelOf("gemini"), "--yolo", "--skip-trust", ...more, "-p", "MCP-TASK"],
    resume: ["--resume", "latest"],
    clean: (text) => text.replace(/^<untrusted_context>\n|\n<\/untrusted_context>$/g, ""),
    call: (server, name) => ({ name: `mcp_${server}_${name}` }),
    shortenWindow: ({ home }) =>
      addSettings(join(home, ".gemini/settings.json"), { model: { compressionThreshold: 0.1 } }),
  },
};

function addSettings(file, settings) {
  writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), ...settings }));
}

// One project, one HOME and one conversation

function ours(...args) {
  return { command: process.execPath, args: [plimsoll, ...args] };
}

function open(name, servers) {
  const home = mkdtempSync(join(root, `${name}-home-`));
  const project = mkdtempSync(join(root, `${name}-project-`));
  const env = prepareClient(folder, name, { home, url: model.url });
  const place = { name, home, project, env: { ...env, ...clients[name].env } };
  const long = Array.from({ length: 700 }, (_, index) => `export const value${index} = compute(${index}, "ünïcödé");`);
  write(place, "long.ts", `${long.join("\n")}\n`);
  for (let index = 1; index <= 10; index += 1) write(place, `src/p${index}.txt`, smallFile(index));
  git(place, ["init", "-q", "-b", "main"]);
  commitAll(place, "Start");
  write(
    place,
    "long.ts",
    `${long.map((line, index) => (index % 20 === 0 ? `${line} // changed` : line)).join("\n")}\n`,
  );
  commitAll(place, "Change");
  const filled = Object.entries(servers).map(([id, { command, args }]) => {
    return [id, { command, args: args.map((each) => each.replace("PROJECT", project)) }];
  });
  conversation = randomUUID();
  clients[name].install(place, Object.fromEntries(filled));
  return place;
}

function smallFile(index) {
  return Array.from({ length: 60 }, (_, line) => `line ${line + 1} of file ${index}\n`).join("");
}

function numbered({ project }, path) {
  return numberedLines(readFileSync(join(project, path), "utf8"));
}

function numberedLines(text) {
  const lines = text.trimEnd().split("\n");
  return lines.map((line, index) => `${index + 1}\t${line}`).join("\n");
}

function converse(place, turns, more = []) {
  const client = clients[place.name];
  play = { turns, client, seen: 0, requests: 0, compactions: 0 };
  const args = client.args(place, more);
  return new Promise((settle) => {
    const options = { cwd: place.project, env: place.env, timeout: 500_000, maxBuffer: 50_000_000 };
    const child = execFile(join(place.home, "bin", place.name), args, options, (error, stdout, stderr) => {
      if (play.requests === 0) console.log(error?.message, stdout.slice(-1_000), stderr.slice(-1_000));
      settle({ stdout, stderr });
    });
    child.stdin.end();
  });
}

function write({ project }, path, text) {
  mkdirSync(join(project, path, ".."), { recursive: true });
  writeFileSync(join(project, path), text);
}

function git({ project }, args) {
  const who = ["-c", "user.name=accept", "-c", "user.email=accept@example.com", "-c", "commit.gpgsign=false"];
  return execFileSync("git", [...who, ...args], { cwd: project, encoding: "utf8", maxBuffer: 50_000_000 });
}

function commitAll(place, subject) {
  git(place, ["add", "-A"]);
  git(place, ["commit", "-qm", subject]);
}

function check(isTrue, what, facts) {
  console.log(`${isTrue ? "✓" : "✗"} ${what}`);
  if (isTrue) return;
  failures.push(what);
  if (facts !== undefined) console.log(JSON.stringify(facts, null, 2).slice(0, 3_000));
}

const model = await startProvider({
  title: "A task",
  answer: (request) =>
    request.text.includes("MCP-TASK") || play.compactions > 0 ? follow(request) : { text: "A task" },
});
try {
  for (const name of chosen.length > 0 ? chosen : ["claude", "codex", "opencode", "gemini"]) await accept(name);
} finally {
  await model.close();
  rmSync(root, { recursive: true, force: true });
}
console.log(failures.length === 0 ? "\nAll checks passed." : `\n${failures.length} failed:\n${failures.join("\n")}`);
process.exitCode = failures.length === 0 ? 0 : 1;
