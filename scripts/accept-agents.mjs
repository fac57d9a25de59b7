/** Runs `plimsoll run` and a nebula of three phases with the real claude, codex, opencode, gemini and pi against a
 *  scripted model, and checks what they did: `npm run accept:agents -- DIR [NAME…]`. DIR has an installation of each
 *  agent; scripts/agents/clients.mjs says where. Uses loopback only. */
import { execFile, execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { clientNames, findClient, modelOf, prepareClient } from "./agents/clients.mjs";
import { startProvider } from "./provider/provider.mjs";

const plimsoll = fileURLToPath(new URL("../dist/cli/main.js", import.meta.url));
const [directory, ...chosen] = process.argv.slice(2);
if (directory === undefined) {
  console.error("usage: npm run accept:agents -- DIR [NAME…]");
  process.exit(2);
}
const folder = resolve(directory);
const root = mkdtempSync(join(tmpdir(), "plimsoll-accept-"));
const written = "written by the agent\n";
const failures = [];
const model = await startProvider({ title: "A task", answer: follow });
try {
  for (const name of chosen.length > 0 ? chosen : clientNames.filter(hasPreset)) await accept(name);
  await acceptScripted();
} finally {
  await model.close();
  rmSync(root, { recursive: true, force: true });
}
console.log(failures.length === 0 ? "\nAll checks passed." : `\n${failures.length} failed:\n${failures.join("\n")}`);
process.exitCode = failures.length === 0 ? 0 : 1;

/** Only the recordings of the others are read. */
function hasPreset(name) {
  return name !== "cline" && name !== "qwen";
}

// The model does what the task says: it writes a file with the tool that the client offers, then runs a command.

function follow({ text, tools, step }) {
  const [, file] = /write the file ([\w./-]+)/.exec(text) ?? [];
  const [, made] = /touch the file ([\w./-]+)/.exec(text) ?? [];
  const turns = [
    ...(file === undefined ? [] : [writing(file, tools)]),
    ...(made === undefined ? [] : [running(`touch ${made}`, tools)]),
  ];
  return turns[step] === undefined
    ? { text: `The work on ${file} is done.` }
    : { text: "Working.", calls: [turns[step]] };
}

function writing(file, tools) {
  const path = file;
  if (tools.includes("Write")) return { name: "Write", input: { file_path: path, content: written } };
  if (tools.includes("write_file")) return { name: "write_file", input: { file_path: path, content: written } };
  if (tools.includes("exec_command")) return running(`printf '${written.replace("\n", "\\n")}' > ${path}`, tools);
  if (tools.includes("grep") && tools.includes("ls")) return { name: "write", input: { path, content: written } };
  return { name: "write", input: { filePath: path, content: written } };
}

function running(command, tools) {
  if (tools.includes("exec_command")) return { name: "exec_command", input: { cmd: command } };
  const name = ["Bash", "run_shell_command"].find((each) => tools.includes(each)) ?? "bash";
  return { name, input: { command, description: "run" } };
}

// What is checked for every client.

async function accept(name) {
  const { missing, version } = findClient(folder, name);
  if (missing !== undefined) return check(false, `${name}: not found. Install it: ${missing}`);
  console.log(`\n${name} ${version}`);
  for (const test of [acceptEdit, acceptRead, acceptConventions, acceptNebula, acceptBudget]) await test(name);
}

async function acceptEdit(name) {
  const place = await open(name);
  const { code, json, stderr } = await run(place, ["Please write the file PROJECT/src/made.txt", "--scope", "src/**"]);
  const isWritten = textOf(place, "src/made.txt") === written;
  check(code === 0 && isWritten, `${name}: an edit lands with the default --allow edit`, { code, json, stderr });
  check(json.answer?.includes("is done."), `${name}: the answer is read`, json.answer);
  if (name === "claude" || name === "codex") {
    check(json.usage?.inputTokens > 1_000, `${name}: usage is read: ${JSON.stringify(json.usage)}`, json);
    check(json.costUsd > 0, `${name}: the cost is ${json.costUsd}`, json);
  }
}

async function acceptRead(name) {
  const place = await open(name);
  const task = "Please write the file PROJECT/src/made.txt and touch the file PROJECT/src/shell.txt";
  const { code, json, stderr } = await run(place, [task, "--scope", "src/**", "--allow", "read"]);
  const isClean = git(place, ["status", "--porcelain"]) === "";
  check(isClean, `${name}: --allow read changes nothing, the shell included`, git(place, ["status", "--porcelain"]));
  const expected = name === "claude" || name === "codex" ? "denied" : "unchanged";
  check(code === 1 && json.error?.code === expected, `${name}: it ends ${expected}, exit ${code}`, { json, stderr });
  if (expected === "denied") check(json.denials.length > 0, `${name}: denied: ${json.denials.join("; ")}`);
}

/** CLAUDE.md and AGENTS.md must each be in the first request once, whoever puts them there. */
async function acceptConventions(name) {
  for (const files of [["CLAUDE.md"], ["AGENTS.md"], ["CLAUDE.md", "AGENTS.md"], ["GEMINI.md", "AGENTS.md"]]) {
    const place = await open(name, files);
    await run(place, ["Say hello. FIRST-REQUEST"]);
    const first = model.calls.map(({ body }) => JSON.stringify(body)).find(isTask) ?? "";
    const counts = files.map((file) => `${file} ${first.split(ruleOf(file)).length - 1}×`);
    check(
      counts.every((each) => each.endsWith(" 1×")),
      `${name}: first request has ${counts.join(", ")}`,
    );
  }
}

function isTask(text) {
  return text.includes("FIRST-REQUEST") && text.includes("## Structure") && /"tools":\[\{/.test(text);
}

function ruleOf(file) {
  return `RULE-OF-${file.replace(".", "-")}`;
}

async function acceptNebula(name) {
  const place = await open(name);
  writeNebula(place, { names: ["one", "two", "three"] });
  const { code, json, stderr } = await apply(place, []);
  const states = json.phases?.map(({ id, state }) => `${id} ${state}`).join(", ");
  check(code === 0, `${name}: a nebula of three phases: ${states}`, { json, stderr });
  const isMade = ["one", "two", "three"].every((each) => textOf(place, `src/${each}.txt`) === written);
  check(isMade, `${name}: each phase changed its file`);
  if (name === "claude" || name === "codex")
    check(
      json.phases?.every(({ history }) => history[0].costUsd > 0 && history[0].usage.inputTokens > 0),
      `${name}: every attempt has tokens and dollars: ${json.phases?.map(({ costUsd }) => costUsd).join(", ")}`,
      json,
    );
}

async function acceptBudget(name) {
  const place = await open(name);
  writeNebula(place, { names: ["one"], limit: "max_budget_usd = 0.01\n" });
  const { code, json, stderr } = await apply(place, []);
  const phase = json.phases?.[0];
  if (name === "claude" || name === "codex")
    check(
      code === 1 && phase?.outcome === "over_budget",
      `${name}: max_budget_usd = 0.01 ends ${phase?.outcome}: ${phase?.error}`,
      json,
    );
  else check(code === 1 && json.error?.message.includes("cannot be kept"), `${name}: max_budget_usd is an error`, json);
  if (name === "claude") check(!existsSync(join(place.project, "src/one.txt")), "claude: it stopped before its edit");
  if (json.error !== undefined) {
    const ignored = await apply(place, ["--ignore-limits"]);
    check(ignored.code === 0, `${name}: --ignore-limits runs it`, ignored);
  } else if (name !== "claude") console.log(stderr.trim().split("\n").at(-1));
}

async function acceptScripted() {
  const place = await openProject("scripted", { PATH: process.env.PATH });
  const args = ["run", "Change it", "--agent-command", "echo I did it", "--scope", "src/**", "--json"];
  const { code, json } = await command(place, args);
  check(code === 1 && json.error?.code === "unchanged", "a scripted agent that changes nothing ends unchanged", json);
}

// One project and one HOME for each check.

async function open(name, conventions = []) {
  model.calls.length = 0;
  const home = mkdtempSync(join(root, `${name}-home-`));
  const place = openProject(name, prepareClient(folder, name, { home, url: model.url }), conventions);
  return { ...place, name };
}

function openProject(name, env, conventions = []) {
  const home = env.HOME ?? mkdtempSync(join(root, "home-"));
  const project = mkdtempSync(join(root, `${name}-project-`));
  const place = { project, env: { ...env, HOME: home } };
  write(place, "package.json", '{ "name": "sample" }\n');
  write(place, "src/index.js", "export const one = 1;\n");
  for (const file of conventions) write(place, file, `${ruleOf(file)}\n`);
  git(place, ["init", "-q", "-b", "main"]);
  commitAll(place);
  return place;
}

function write({ project }, path, text) {
  mkdirSync(dirname(join(project, path)), { recursive: true });
  writeFileSync(join(project, path), text);
}

function textOf({ project }, path) {
  return existsSync(join(project, path)) ? readFileSync(join(project, path), "utf8") : undefined;
}

function git({ project }, args) {
  const who = ["-c", "user.name=accept", "-c", "user.email=accept@example.com", "-c", "commit.gpgsign=false"];
  return execFileSync("git", [...who, ...args], { cwd: project, encoding: "utf8" });
}

function commitAll(place) {
  git(place, ["add", "-A"]);
  git(place, ["commit", "-qm", "Start"]);
}

function writeNebula(place, { names, limit = "" }) {
  write(place, "plan/nebula.toml", '[nebula]\nname = "accept"\n');
  for (const [index, id] of names.entries()) {
    const needs = index === 0 ? "" : `depends_on = ["${names[index - 1]}"]\n`;
    const front = `id = "${id}"\ntitle = "Phase ${id}"\nscope = ["src/${id}.txt"]\n${needs}${limit}`;
    write(place, `plan/${id}.md`, `+++\n${front}+++\n\nPlease write the file ${place.project}/src/${id}.txt\n`);
  }
  commitAll(place);
}

function run(place, [task, ...more]) {
  const { name, project } = place;
  const args = ["run", task.replaceAll("PROJECT", project), "--agent", name, "--model", modelOf(name)];
  return command(place, [...args, ...more, "--json"]);
}

function apply(place, more) {
  const args = ["nebula", "apply", "plan", "--agent", place.name, "--model", modelOf(place.name)];
  return command(place, [...args, "--json", ...more]);
}

function command({ project, env }, args) {
  const options = { cwd: project, env, timeout: 300_000, maxBuffer: 50_000_000 };
  return new Promise((settle) => {
    execFile(process.execPath, [plimsoll, ...args], options, (error, stdout, stderr) => {
      let json = {};
      try {
        json = JSON.parse(stdout);
      } catch {}
      settle({ code: error === null ? 0 : error.code, json, stdout, stderr });
    });
  });
}

function check(isTrue, what, facts) {
  console.log(`${isTrue ? "✓" : "✗"} ${what}`);
  if (isTrue) return;
  failures.push(what);
  if (facts !== undefined) console.log(JSON.stringify(facts, null, 2).slice(0, 3_000));
}
