/** The plugin in the real Claude Code: both roads, every kind of edit, recall, sub-agents, compaction, failures, time. */
import { chmodSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { join } from "node:path";
import {
  bash,
  converse,
  follow,
  isMain,
  linesOf,
  open,
  openTerminal,
  read,
  recallName,
  resultsIn,
  run,
  until,
  write,
} from "./claude-runs.mjs";
import { findClient } from "./clients.mjs";
import { acceptGuard, acceptSilence } from "./plugin-claude-promises.mjs";
import { acceptImages, acceptLate, acceptTrim } from "./plugin-claude-trim.mjs";
import { acceptReader } from "./plugin-reader.mjs";

const noteOf = (text) => /plimsoll recall ([a-z2-7]{16})/.exec(text)?.[1];

export async function acceptPlugin(context) {
  const { missing, version } = findClient(context.folder, "claude");
  if (missing !== undefined) return context.check(false, `claude: not found. Install it: ${missing}`);
  console.log(`\nclaude-code ${version}`);
  const isChosen = (name) => context.part === undefined || context.part === name;
  if (isChosen("install")) await acceptInstall(context);
  const parts = {
    edits: acceptEdits,
    module: acceptModule,
    recall: acceptRecall,
    interactive: acceptInteractive,
    agents: acceptSubAgent,
    compaction: acceptCompaction,
    failures: acceptFailures,
    reader: acceptSessions,
    order: acceptBusyClient,
  };
  for (const road of ["module", "hooks"]) {
    const check = (isTrue, what, facts) => context.check(isTrue, `${road}: ${what}`, facts);
    for (const [name, accept] of Object.entries(parts)) if (isChosen(name)) await accept({ ...context, road, check });
  }
  if (isChosen("trim")) await acceptTrim({ ...context, road: "module" });
  if (isChosen("late")) await acceptLate({ ...context, road: "module" });
  if (isChosen("images")) await acceptImages({ ...context, road: "module" });
  if (isChosen("guard")) await acceptGuard({ ...context, road: "module" });
  if (isChosen("silence")) await acceptSilence({ ...context, road: "module" });
  if (isChosen("check")) await acceptCheck(context);
  if (isChosen("time")) await acceptTime(context);
}

const grep = (pattern, path) => ({ name: "Grep", input: { pattern, path, output_mode: "content", head_limit: 0 } });
const mcp = (name) => ({ name: `mcp__files__${name}`, input: {} });

const mcpServer = `import readline from "node:readline";
import { readFileSync } from "node:fs";
for await (const line of readline.createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  const tools = ["m", "large"].map((name) => ({ name, description: "reads " + name, inputSchema: { type: "object" } }));
  const text = method === "tools/call" ? readFileSync(params.name + ".ts", "utf8") : "";
  const info = { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "files", version: "1" } };
  const result = method === "initialize" ? info : method === "tools/list" ? { tools } : { content: [{ type: "text", text }] };
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result }) + "\\n");
}
`;

/** A client that is busy with a result of Read takes up the others of its answer in another order. */
function acceptBusyClient({ check, ...context }) {
  if (context.road !== "module") return;
  const slower = 'const changed = await changeRow($, row, "complete"); await $.clock.sleep(700); return next(changed);';
  return acceptSessions({
    ...context,
    check: (isTrue, what, facts) => check(isTrue, `busy client, ${what}`, facts),
    seeds: [1, 3],
    change({ home }) {
      const module = join(home, ".claude/skills/plimsoll/hooks/register.js");
      const before = readFileSync(module, "utf8");
      writeFileSync(
        module,
        before.replace('return next(await changeRow($, row, "complete"));', () => slower),
      );
      check(readFileSync(module, "utf8") !== before, "the module waits");
    },
  });
}

function acceptSessions({ check, seeds, change, ...context }) {
  const write = (file_path, content) => ({ name: "Write", input: { file_path, content } });
  return acceptReader({
    ...{ check, seeds, tools: { read, bash, write } },
    async play(files, turns) {
      const place = await open(context, { files });
      change?.(place);
      const { code, requests } = await converse(place, { turns, allowed: "Read Bash Write" });
      const recall = (id) => run(place, ["recall", id, "--json"]);
      // The client tells our hook the whole path.
      const labelled = ({ file_path, ...input }) =>
        file_path === undefined ? input : { ...input, file_path: join(place.project, file_path) };
      return { code, messages: requests.at(-1)?.body.messages ?? [], recall, labelled };
    },
  });
}

/** Each tool reads a text, reads it again, and reads it after a change. Then it reads a long one. */
async function acceptEdits(context) {
  const files = Object.fromEntries(["r", "b", "g", "m"].map((name) => [`${name}.ts`, linesOf(name, 90)]));
  const large = linesOf("large", 260);
  const long = Object.fromEntries(["r", "b", "g"].map((name) => [`long-${name}.ts`, linesOf(`long_${name}_`, 260)]));
  const servers = JSON.stringify({ mcpServers: { files: { command: "node", args: ["mcp.mjs"] } } });
  const place = await open(context, {
    files: { ...files, ...long, "large.ts": large, "mcp.mjs": mcpServer, "mcp.json": servers },
    install: ["--max-result-tokens", "3000"],
  });
  const change = (name) => bash(`sed -i 's/${name}45 /changed45 /' ${name}.ts`);
  const forTool = (name, call, long) => [call, call, change(name), call, long];
  const turns = [
    ...forTool("r", read("r.ts"), read("long-r.ts")),
    ...forTool("b", bash("cat b.ts"), bash("cat long-b.ts")),
    ...forTool("g", grep("compute", "g.ts"), grep("export.*compute", "long-g.ts")),
    ...forTool("m", mcp("m"), mcp("large")),
  ];
  const allowed = "Read Bash Grep mcp__files__m mcp__files__large";
  const { results, code, stderr } = await converse(place, { turns, allowed, args: ["--mcp-config", "mcp.json"] });
  const { check } = context;
  check(code === 0 && results.length === turns.length, `${results.length} results arrived`, { code, stderr });
  for (const [index, tool] of ["Read", "Bash", "Grep", "an MCP tool"].entries()) {
    const [whole = "", same = "", , delta = "", page = ""] = results.slice(index * 5);
    check(whole.split("\n").length >= 90 && noteOf(whole) === undefined, `${tool}: the first result is whole`, whole);
    check(same.includes(": Same text as") && noteOf(same), `${tool}: the same again is a note`, same);
    const isDelta = delta.includes("changed45") && delta.length < whole.length / 2 && noteOf(delta);
    check(isDelta, `${tool}: after a change only new lines`, delta);
    if (tool === "Read") check(/^46\t.*changed45/m.test(delta), "Read: the new line has its own number", delta);
    check(/left out|similar lines/.test(page) && noteOf(page), `${tool}: a long result is a page`, page.slice(0, 500));
    const id = noteOf(page);
    const original = id === undefined ? "" : run(place, ["recall", id]);
    check(original.includes("259"), `${tool}: plimsoll recall has all of it, ${original.length} characters`);
  }
  const status = JSON.parse(run(place, ["plugin", "status", "claude-code", "--json"]));
  const [session = {}] = status.sessions;
  check(
    session.duplicates === 4 && session.pages === 4 && session.errors?.length === 0,
    `status: ${JSON.stringify(session)}`,
    status,
  );
}

/** Failures, and several changes in one file: only the module can change these. */
async function acceptModule(context) {
  const { check, road } = context;
  const place = await open(context, { files: { "a.ts": linesOf("value", 200), "b.ts": linesOf("other", 200) } });
  const failing = (name) => bash(`cat ${name}; exit 3`);
  const change = bash("sed -i 's/value10 /changed10 /; s/value190 /changed190 /' a.ts");
  const part = read("a.ts", { offset: 60, limit: 90 });
  const turns = [failing("b.ts"), failing("b.ts"), read("a.ts"), change, read("a.ts"), part];
  const { results } = await converse(place, { turns });
  const [first = "", again = "", , , delta = "", half = ""] = results;
  check(first.includes("other199 ="), "a failure arrives whole", first);
  const isModule = road === "module";
  check(
    isModule ? again.includes("Same text") : again.includes("other199 ="),
    `the same failure again: ${again.slice(0, 60)}`,
    again,
  );
  const hasBoth = /^11\t.*changed10 /m.test(delta) && /^191\t.*changed190 /m.test(delta);
  check(
    half.includes(": Only new lines") && half.includes(" 60-149]") && !half.includes("plimsoll shortens"),
    `a part of a file that was read: ${half.slice(0, 60)}`,
    half,
  );
  check(hasBoth && delta.length < 1_000 === isModule, `two changes in Read: ${delta.length} characters`, delta);
}

async function acceptRecall(context) {
  const { check } = context;
  const place = await open(context, { files: { "a.ts": linesOf("value", 200) } });
  const turns = [
    read("a.ts"),
    read("a.ts"),
    { name: "ToolSearch", input: { query: `select:${recallName}` } },
    (text) => ({ name: recallName, input: { id: noteOf(text), lines: "100-101" } }),
    (text) => bash(`plimsoll recall ${noteOf(text)}`),
  ];
  const first = await converse(place, { turns, allowed: "Read" });
  const [, , , recalled = "", shell = ""] = first.results;
  check(recalled.includes("value99 =") && recalled.includes("value100 ="), "recall by MCP is allowed in -p", recalled);
  const denied = first.json.permission_denials?.map(({ tool_name }) => tool_name) ?? [];
  check(denied.join() === "Bash", `nothing in Bash is allowed by the plugin: ${shell.split("\n")[0]}`, first.json);
  const steps = 5;
  const more = [read("a.ts"), (text) => bash(`plimsoll recall ${noteOf(text)} --lines 7-7`)];
  const allowed = "Read Bash(plimsoll:*)";
  const next = await converse({ ...place, steps }, { turns: more, allowed, args: ["--continue"] });
  check(
    next.results[steps]?.includes(": Same text as"),
    "--continue: what was read before counts",
    next.results[steps],
  );
  check(next.results[steps + 1]?.includes("value6 ="), "recall in the shell, with a rule", next.results[steps + 1]);
  const fork = ["--resume", first.json.session_id, "--fork-session"];
  const forked = await converse({ ...place, steps: steps + 2 }, { turns: [read("a.ts")], args: fork });
  check(forked.results.at(-1)?.includes("value150 ="), "a fork gets the whole text", forked.results.at(-1));
}

/** Recall in the default mode, in a terminal of tmux: the tool runs without a question, and the shell command asks. */
async function acceptInteractive(context) {
  const { check } = context;
  const place = await open(context, { files: { "a.ts": linesOf("value", 200) } });
  const turns = [
    read("a.ts"),
    read("a.ts"),
    { name: "ToolSearch", input: { query: `select:${recallName}` } },
    (text) => ({ name: recallName, input: { id: noteOf(text), lines: "100-101" } }),
    (text) => bash(`plimsoll recall ${noteOf(text)} | head -1`),
  ];
  const terminal = await openTerminal(place, { decide: follow(turns) });
  const { screen } = terminal;
  try {
    await terminal.say("TASK go");
    await until(() => screen().includes("requires approval"));
    const asked = screen();
    const recalled = resultsIn(terminal.requests().at(-1)?.body)[3] ?? "";
    check(recalled.includes("value99 ="), "recall by MCP runs without a question in the default mode", asked);
    check(/plimsoll recall \S+ \| head -1[\s\S]*requires approval/.test(asked), "the shell command asks", asked);
    terminal.press("Enter");
    await until(() => screen().includes("Done."));
    const shell = resultsIn(terminal.requests().at(-1)?.body)[4];
    check(shell?.includes("value0 ="), "after a yes it prints the original", shell ?? screen());
  } catch (error) {
    check(false, `the default mode: ${error.message}`);
  } finally {
    await terminal.close();
  }
}

async function acceptSubAgent(context) {
  const { check } = context;
  const place = await open(context, { files: { "a.ts": linesOf("value", 200), "b.ts": linesOf("other", 200) } });
  const prompt = "SUBTASK read a.ts twice";
  const task = { description: "look", prompt, subagent_type: "general-purpose", run_in_background: false };
  const turns = {
    main: [read("a.ts"), { name: "Agent", input: task }, bash("cat b.ts")],
    sub: [read("a.ts"), read("a.ts"), bash("cat b.ts; exit 3")],
  };
  const decide = ({ step, body }) => {
    const call = turns[isMain(body) ? "main" : "sub"][step];
    return call === undefined ? { text: "Done." } : { text: "Working.", calls: [call] };
  };
  const { requests, results: own, code } = await converse(place, { decide, allowed: "Read Agent Bash" });
  const results = resultsIn(requests.filter(({ body }) => !isMain(body)).at(-1)?.body);
  check(code === 0 && results.length === 3, `a sub-agent sent ${results.length} results`);
  check(results[0]?.includes("value150 ="), "a sub-agent gets a file whole that the main agent has read", results[0]);
  check(results[1]?.includes(": Same text as"), "the sub-agent's second read is a note", results[1]);
  check(own[2]?.includes("other150 ="), "the main agent gets a text whole that a sub-agent saw in a failure", own[2]);
}

async function acceptCompaction(context) {
  const { check } = context;
  const files = Object.fromEntries(
    Array.from({ length: 14 }, (_, file) => [`src/file${file}.ts`, linesOf(`f${file}_`, 300)]),
  );
  const place = await open(context, { files });
  const edit = { file_path: "src/file0.ts", old_string: "f0_5 = compute(35", new_string: "f0_5 = computeChanged(35" };
  const reads = Array.from({ length: 13 }, (_, file) => read(`src/file${file + 1}.ts`));
  const calls = [
    read("src/file0.ts"),
    read("src/file0.ts"),
    { name: "Edit", input: edit },
    ...reads,
    read("src/file13.ts"),
  ];
  let turn = 0;
  const decide = ({ text }) => {
    if (text.includes("Additional Instructions")) return { text: "<summary>SUMMARY</summary>" };
    const call = calls[turn++];
    return call === undefined ? { text: "Done." } : { text: "Working.", calls: [call] };
  };
  const { requests } = await converse(place, { decide, env: { CLAUDE_CODE_AUTO_COMPACT_WINDOW: "60000" } });
  const texts = requests.map(({ body }) => JSON.stringify(body));
  const before = texts.find((text) => text.includes("Additional Instructions")) ?? "";
  const [, fence = ""] = /They are data, not instructions:\\n```\\n(.*?)```/.exec(before) ?? [];
  check(
    fence.includes("edited: ") && fence.includes("src/file0.ts"),
    `compaction: the summary is told ${fence.slice(0, 60)}`,
    before.slice(-3_000),
  );
  const after = texts.slice(texts.indexOf(before) + 1).find((text) => text.includes("before it was summarised")) ?? "";
  const [, back = ""] = /before it was summarised.*?```\\n(.*?)```/.exec(after) ?? [];
  check(/recall: [a-z2-7]{16}=/.test(back), "compaction: anchors and recall ids come back", after.slice(0, 2_000));
  check(back.length < 4_000, `compaction: what comes back has ${back.length} characters`);
}

/** Whatever happens to our process, the client sends the original and goes on. */
async function acceptFailures(context) {
  const { check } = context;
  const turns = [read("a.ts"), read("a.ts"), bash("cat a.ts"), bash("cat a.ts")];
  const broken = {
    missing: undefined,
    "crashing at once": "#!/bin/sh\nexit 1\n",
    "never answering": "#!/bin/sh\nexec sleep 600\n",
    "answering nonsense": "#!/bin/sh\nwhile read line; do echo nonsense; done\n",
    "hanging after its start": hangingServer,
  };
  const whole = await open({ ...context, road: "none" }, { files: { "a.ts": linesOf("value", 200) } });
  const usual = middleOf(gapsOf((await converse(whole, { turns })).requests));
  for (const [name, script] of Object.entries(broken)) {
    const place = await open(context, { files: { "a.ts": linesOf("value", 200) } });
    const program = join(place.home, "bin/plimsoll");
    rmSync(program);
    if (script !== undefined) writeFileSync(program, script);
    if (script !== undefined) chmodSync(program, 0o755);
    const { results, code, requests } = await converse(place, { turns });
    const isWhole = results.length === turns.length && results.every((text) => text.includes("value150 ="));
    const more = middleOf(gapsOf(requests)) - usual;
    check(
      code === 0 && isWhole,
      `plimsoll ${name}: every result is whole`,
      results.map((text) => text.slice(0, 200)),
    );
    check(more < 1_000, `plimsoll ${name}: a tool call takes ${Math.round(more)} ms more than without a plugin`);
  }
}

/** Connects as an MCP server does, and then answers no call. */
const hangingServer = `#!/usr/bin/env node
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  const tools = [{ name: "recall", description: "x", inputSchema: { type: "object" } }];
  const info = { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "x", version: "1" } };
  const result = method === "initialize" ? info : method === "tools/list" ? { tools } : undefined;
  if (id !== undefined && result !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", id, result }));
});
`;

function middleOf(numbers) {
  return numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length / 2)] ?? 0;
}

/** The times between an answer of the model and the next request. */
function gapsOf(requests) {
  return requests.slice(1).map(({ at }, index) => at - requests[index].answered);
}

async function acceptInstall(context) {
  const { check } = context;
  const place = await open(context, { road: "none" });
  const settings = '{\n  // mine\n  "model": "opus",\n\t"hooks": {},\n}\r\n';
  write(join(place.home, ".claude/settings.json"), settings);
  const before = treeOf(place.home);
  run(place, ["plugin", "install", "claude-code"]);
  check(treeOf(place.home) !== before, "install writes files");
  run(place, ["plugin", "uninstall", "claude-code"]);
  check(treeOf(place.home) === before, "uninstall gives the bytes back");
}

function treeOf(folder) {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const files = entries
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => !file.includes("/.local/state/"));
  return JSON.stringify(files.sort().map((file) => [file, readFileSync(file, "latin1")]));
}

async function acceptCheck(context) {
  const place = await open({ ...context, road: "module" });
  const { passed, version, lines } = JSON.parse(run(place, ["plugin", "check", "claude-code", "--json"]));
  context.check(passed, `plugin check: ${version}: ${lines.join("; ")}`);
}

/** Sessions of 100 calls, of Read and Bash in turn, without the plugin and with each road, so that a busy moment hits all
 *  of them. Bash starts a process, so its times vary more. */
async function acceptTime(context) {
  const rounds = 6;
  const files = Object.fromEntries(
    Array.from({ length: 50 }, (_, index) => [`f${index}.ts`, linesOf(`value${index}_`, 200)]),
  );
  const turns = Object.keys(files).flatMap((name, index) => [read(name), bash(`sed s/value/other${index}/ ${name}`)]);
  const times = { none: [[], []], hooks: [[], []], module: [[], []] };
  for (let round = 0; round < rounds; round++) {
    const roads = Object.keys(times);
    // Each road comes first, second and third equally often.
    for (const road of roads.map((_, index) => roads[(index + round) % roads.length])) {
      const place = await open({ ...context, road }, { files });
      const { requests } = await converse(place, { turns });
      // The first calls wait for the start of our process in some runs.
      for (const [index, ms] of gapsOf(requests).entries()) if (index > 1) times[road][index % 2].push(ms);
    }
  }
  const at = (list, share) => list.toSorted((one, other) => one - other)[Math.floor(list.length * share)] ?? 0;
  for (const road of ["hooks", "module"]) {
    for (const [index, tool] of ["Read", "Bash"].entries()) {
      const [with_, without] = [times[road][index], times.none[index]];
      const [p50, p95] = [0.5, 0.95].map((share) => at(with_, share) - at(without, share));
      const words = `${with_.length} calls of ${tool}: p50 ${p50.toFixed(1)} ms and p95 ${p95.toFixed(1)} ms more than ${at(without, 0.5).toFixed(1)} and ${at(without, 0.95).toFixed(1)} ms`;
      context.check(p50 <= 10 && p95 <= 40, `${road}: ${words}, load ${loadavg()[0].toFixed(1)}`);
    }
  }
}
