/** Records sessions of the real clients: each works on a scripted task, goes on in a second process, and is billed by a
 *  model with a prompt cache. `expected.json` beside a recording has what the model billed. */

import { spawn } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startProvider } from "../provider/provider.mjs";
import { clientNames, findClient, modelOf, prepareClient } from "./clients.mjs";

/** Where each client keeps its sessions below HOME. */
const placesOf = {
  claude: [".claude/projects"],
  codex: [".codex/sessions"],
  opencode: [".local/share/opencode/opencode.db"],
  gemini: [".gemini/tmp"],
  pi: [".pi/agent/sessions"],
  copilot: [".copilot/session-state"],
  cline: [".cline/data/sessions"],
  qwen: [".qwen/projects"],
};

/** Writes one folder for each client below `target`. `clients` has an installation of each; see clients.mjs. */
export async function recordClients({ clients, target }) {
  for (const name of clientNames) {
    const { missing, version } = findClient(clients, name);
    if (missing !== undefined) {
      console.log(`${name}: not installed (${missing})`);
      continue;
    }
    const home = join(target, name);
    rmSync(home, { recursive: true, force: true });
    const billed = await recordClient(name, { clients, home });
    writeFileSync(join(home, "expected.json"), JSON.stringify({ paths: placesOf[name], ...billed }, null, 2));
    console.log(`${name} ${version}: ${billed.calls} calls recorded`);
  }
}

async function recordClient(name, { clients, home }) {
  const project = join(home, "project");
  mkdirSync(project, { recursive: true });
  for (let file = 0; file < files; file++) writeFileSync(join(project, `f${file}.ts`), sourceOf(`f${file}`));
  let turns = [];
  let turn = 0;
  const decide = ({ text, tools, step }) => {
    // A sub-agent sees only its own task.
    if (text.includes("SIDE task") && !text.includes("TASK do it")) return answerAt(step, sideTurns(tools, project));
    return answerAt(turn++, turns(tools));
  };
  const model = await startProvider({ title: "A task", answer: decide });
  try {
    const env = prepareClient(clients, name, { home, url: model.url });
    const reads = (tools) => Array.from({ length: files }, (_, file) => reading(tools, join(project, `f${file}.ts`)));
    turns = (tools) => [...reads(tools), ...agentCall(tools)];
    await runClient(name, { home, project, env, args: firstArgs[name] });
    turn = 0;
    turns = (tools) => reads(tools).slice(0, 4);
    await runClient(name, { home, project, env, args: nextArgs[name] });
  } finally {
    await model.close();
  }
  const answered = model.calls.filter(({ body }) => hasTools(body));
  const sum = (kind) => answered.reduce((total, { tokens }) => total + tokens[kind], 0);
  const [uncached, write5m, write1h, read, output] = ["uncached", "write5m", "write1h", "read", "output"].map(sum);
  return { calls: answered.length, input: uncached + write5m + write1h + read, read, output, write5m, write1h };
}

const files = 10;

function sourceOf(name) {
  return Array.from({ length: 120 }, (_, n) => `export const value${n}_${name} = compute(${n}, "text");\n`).join("");
}

/** Clients ask for titles and the like without tools. */
function hasTools({ tools = [] }) {
  return tools.some((tool) => tool.functionDeclarations?.length !== 0);
}

const codexFlags = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", ...["-m", modelOf("codex")]];

const firstArgs = {
  claude: ["-p", "TASK do it", "--model", modelOf("claude"), "--allowedTools", "Read Task Agent Bash"],
  codex: ["exec", ...codexFlags, "TASK do it"],
  opencode: ["run", "-m", modelOf("opencode"), "TASK do it"],
  gemini: ["-m", modelOf("gemini"), "--yolo", "--skip-trust", "-p", "TASK do it"],
  pi: ["-p", "--provider", "scripted", "--model", "claude-sonnet-4-5", "TASK do it"],
  copilot: ["-p", "TASK do it", "--allow-all-tools"],
  cline: ["--json", "--compaction", "off", "TASK do it"],
  qwen: ["--auth-type", "openai", "--yolo", "-p", "TASK do it"],
};

/** cline continues no session without a terminal. */
const nextArgs = {
  claude: ["--continue", ...firstArgs.claude],
  codex: ["exec", ...codexFlags, "resume", "--last", "TASK do it"],
  opencode: ["run", "--continue", "-m", modelOf("opencode"), "TASK do it"],
  gemini: ["--resume", "latest", ...firstArgs.gemini],
  pi: ["--continue", ...firstArgs.pi],
  copilot: ["--continue", ...firstArgs.copilot],
  cline: firstArgs.cline,
  qwen: ["--continue", ...firstArgs.qwen],
};

function answerAt(step, turns) {
  return turns[step] === undefined ? { text: "All done." } : { text: "Working.", calls: [turns[step]] };
}

/** A read with the tool that the client offers. Codex reads with a command. */
function reading(tools, path) {
  if (tools.includes("Read")) return { name: "Read", input: { file_path: path } };
  if (tools.includes("read_file")) return { name: "read_file", input: { file_path: path } };
  if (tools.includes("read_files")) return { name: "read_files", input: { files: [{ path }] } };
  if (tools.includes("view")) return { name: "view", input: { path } };
  if (tools.includes("read")) return { name: "read", input: { filePath: path, path } };
  if (tools.includes("exec_command")) return { name: "exec_command", input: { cmd: `cat ${path}` } };
  return { name: "shell", input: { command: ["cat", path] } };
}

/** Only Claude Code's sub-agents work without a question. */
function agentCall(tools) {
  const name = ["Agent", "Task"].find((each) => tools.includes(each));
  if (name === undefined) return [];
  const input = { description: "Look around", prompt: "SIDE task: read files", subagent_type: "general-purpose" };
  // The second one reads from the cache what the first one has written.
  return [0, 1].map(() => ({ name, input }));
}

function sideTurns(tools, project) {
  return [0, 1, 2].map((file) => reading(tools, join(project, `f${file}.ts`)));
}

function runClient(name, { home, project, env, args }) {
  return new Promise((done) => {
    const child = spawn(join(home, "bin", name), args, { cwd: project, env, stdio: ["ignore", "ignore", "pipe"] });
    let stderr = "";
    child.stderr.on("data", (chunk) => {
      stderr += chunk;
    });
    const timer = setTimeout(() => child.kill("SIGKILL"), 180_000);
    child.on("exit", (code) => {
      clearTimeout(timer);
      if (code !== 0) console.error(`${name}: ended with ${code}: ${stderr.slice(-1_000)}`);
      done();
    });
  });
}
