/** Runs `plimsoll run` and a nebula of three phases with the real claude, codex, opencode, gemini and pi against a
 *  scripted model, and checks what they did: `npm run accept:agents -- DIR [NAME…]`. DIR has an installation of each
 *  agent; scripts/agents/clients.mjs says where. Uses loopback only. */
import { execFile, execFileSync, spawn } from "node:child_process";
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
  return !["copilot", "cline", "qwen"].includes(name);
}

// The model does what the task says: it writes a file with the tool that the client offers, then runs a command.

function follow({ text, tools, step }) {
  // In a worktree the client says where it works.
  const [worktree] = /\/[\w./-]+\/worktrees\/[\w./-]+\/phases\/\w+/.exec(text) ?? [];
  const named = [
    ...text.matchAll(/(write the file|touch the file|EXECUTE) ((?<!EXECUTE )[\w.-]*\/[\w./-]+|(?<=EXECUTE )[\w.-]+)/g),
  ];
  const asked = named.filter(([whole], index) => named.findIndex(([other]) => other === whole) === index);
  const turns = asked.map(([, what, name]) => {
    const path = name.replace(/^WORKTREE/, worktree ?? ".");
    if (what === "write the file") return writing(path, tools);
    return running(what === "touch the file" ? `touch ${path}` : name.replaceAll("_", " "), tools);
  });
  if (turns[step] !== undefined) return { text: "Working.", calls: [turns[step]] };
  if (text.includes("# Review: "))
    return { text: text.includes("BAD WORK") ? "FINDINGS\n- src/one.txt: BAD WORK" : "ACCEPT" };
  return { text: `The work on ${asked[0]?.[2]} is done.` };
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

function reportsDenials(name) {
  return name === "claude" || name === "codex";
}

async function accept(name) {
  const { missing, version } = findClient(folder, name);
  if (missing !== undefined) return check(false, `${name}: not found. Install it: ${missing}`);
  console.log(`\n${name} ${version}`);
  const tests = [
    acceptEdit,
    acceptRead,
    acceptConventions,
    acceptNebula,
    acceptBudget,
    acceptLoop,
    acceptApiErrors,
    acceptLevels,
    acceptNotes,
  ].filter(({ name }) => (process.env.ONLY ?? name).split(",").includes(name));
  for (const test of tests) await test(name);
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
  // The models of the others have no known price.
  if (reportsDenials(name) || name === "gemini")
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

/** An edit, a failing check, the same session told about it, a passing check, a merge. */
async function acceptLoop(name) {
  const place = await open(name);
  // The check says what to do next, and the model does what it is told.
  write(place, "check.sh", `test -s src/two.txt && exit 0\necho "please write the file $PWD/src/two.txt"\nexit 1\n`);
  writePhase(place, {
    more: 'check = ["sh check.sh"]\nmax_review_cycles = 3\n',
    body: "Please write the file WORKTREE/src/one.txt",
  });
  const { code, json, stderr } = await apply(place, ["--worktrees"]);
  const [phase] = json.phases ?? [];
  const outcomes = phase?.history?.map(({ outcome }) => outcome).join(", ");
  check(code === 0 && outcomes === "check_failed, completed", `${name}: attempts: ${outcomes}`, { code, json, stderr });
  const merged = git(place, ["ls-tree", "-r", "--name-only", "nebula/accept"]);
  check(merged.includes("src/one.txt") && merged.includes("src/two.txt"), `${name}: both edits are merged`, merged);
  const told = model.calls.map(({ body }) => JSON.stringify(body)).filter((text) => text.includes("not accepted yet"));
  const isSame =
    told.length > 0 && told.every((text) => text.includes("WORKTREE/src/one.txt") && text.includes("Working."));
  check(isSame, `${name}: ${told.length} requests after the failed check have the earlier turns`, {
    told: told.length,
    stderr,
  });
  const costs = phase?.history?.map(({ costUsd }) => costUsd) ?? [];
  if (reportsDenials(name)) {
    check(
      costs.length === 2 && costs.every((each) => each > 0),
      `${name}: cost of each attempt: ${costs.join(", ")}`,
      json,
    );
    const usage = phase?.history?.map(({ usage }) => usage.inputTokens).join(", ");
    check(costs[1] < costs[0], `${name}: the second attempt costs only what it added; input tokens: ${usage}`, costs);
  }
}

/** An API that refuses every request must be on the screen soon. */
async function acceptApiErrors(name) {
  for (const status of [401, 529]) {
    const failing = await startProvider({
      failures: Object.fromEntries([...Array(2_000).keys()].map((n) => [n, status])),
    });
    const home = mkdtempSync(join(root, `${name}-home-`));
    const place = openProject(name, prepareClient(folder, name, { home, url: failing.url }));
    writePhase(place, { more: "", body: "Say hello." });
    const seen = await new Promise((settle) => {
      const args = ["nebula", "apply", "plan", "--agent", name, "--model", modelOf(name)];
      const child = spawn(process.execPath, [plimsoll, ...args], { cwd: place.project, env: place.env });
      const timer = setTimeout(() => child.kill("SIGINT"), 90_000);
      let text = "";
      let shown;
      child.stderr.on("data", (chunk) => {
        text += chunk;
        const line = /^.*(?:the API answers|unexpected status|API Error|error).*$/im.exec(text)?.[0];
        if (line === undefined || shown !== undefined) return;
        shown = { line, at: Date.now() };
        child.kill("SIGINT");
      });
      child.on("close", () => {
        clearTimeout(timer);
        settle(shown ?? { line: text });
      });
    });
    // The time of the client's own start is not counted.
    const seconds = ((seen.at ?? Number.NaN) - (failing.calls.find((call) => call.number > 0)?.at ?? 0)) / 1_000;
    await failing.close();
    check(seconds < 10, `${name}: ${status} is on the screen ${seconds.toFixed(1)} s after the request: ${seen.line}`);
  }
}

/** A session that goes on may do no more than it could at first. */
async function acceptLevels(name) {
  if (!reportsDenials(name)) return;
  const place = await open(name);
  write(
    place,
    "check.sh",
    'echo "please write the file $PWD/src/two.txt and touch the file $PWD/src/three.txt"\nexit 1\n',
  );
  writePhase(place, { more: 'check = ["sh check.sh"]\nmax_review_cycles = 2\n', body: "Say hello." });
  const { code, json, stderr } = await apply(place, ["--allow", "read"]);
  const attempts = json.phases?.[0]?.attempts;
  const files = git(place, ["status", "--porcelain", "-uall"]);
  check(code === 1 && attempts === 2 && files === "", `${name}: a resumed attempt with --allow read changed nothing`, {
    files,
    json,
    stderr,
  });
  const told = model.calls.filter(({ body }) => JSON.stringify(body).includes("not accepted yet"));
  check(told.length > 1, `${name}: it was resumed and tried to, in ${told.length} requests`);
}

/** A command that was denied beside checks that pass is a note, a write outside of the scope is named, and a reviewer
 *  accepts. */
async function acceptNotes(name) {
  const place = await open(name);
  write(place, "check.sh", "echo CHECK-HAS-RUN\n");
  writePhase(place, {
    more: 'check = ["sh check.sh"]\nreviewer = {}\n',
    body: "Please write the file WORKTREE/src/one.txt and write the file WORKTREE/other.txt and EXECUTE sh_check.sh and EXECUTE curl_--version",
  });
  const { code, json, stderr } = await apply(place, ["--worktrees"]);
  check(code === 0, `${name}: completes with a denied command beside a passed check`, { code, json, stderr });
  check(
    stderr.includes("it changed other.txt, outside of its scope, src/**"),
    `${name}: the write outside is named`,
    stderr,
  );
  const ran = model.calls.some(({ body }) => JSON.stringify(body).includes("CHECK-HAS-RUN"));
  check(ran === (name !== "pi"), `${name}: the agent could run the check itself: ${ran}`);
  const reviews = model.calls.filter(
    ({ body }) => JSON.stringify(body).includes("# Review: ") && body.tools?.length !== 0,
  );
  check(reviews.length > 0, `${name}: the reviewer was asked in ${reviews.length} requests`);
  if (name === "claude")
    check(stderr.includes("That does not matter: its checks pass"), "claude: the denial is a note", stderr);
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

function writePhase(place, { more, body }) {
  write(place, "plan/nebula.toml", '[nebula]\nname = "accept"\n');
  write(place, "plan/one.md", `+++\nid = "one"\ntitle = "Phase one"\nscope = ["src/**"]\n${more}+++\n\n${body}\n`);
  commitAll(place);
}

function run(place, [task, ...more]) {
  const { name, project } = place;
  const args = ["run", task.replaceAll("PROJECT", project), "--agent", name, "--model", modelOf(name)];
  return command(place, [...args, ...more, "--json"]);
}

function apply(place, more) {
  const args = ["nebula", "apply", "plan", "--agent", place.name, "--model", modelOf(place.name)];
  const trusting = { ...place, env: { ...place.env, PLIMSOLL_TRUST: "1" } };
  return command(trusting, [...args, "--json", ...more]);
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
