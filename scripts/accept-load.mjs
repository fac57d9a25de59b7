/** Compares what `plimsoll audit` says that a tool loads with what the real client sends: `npm run accept:load -- DIR [CLIENT…]`. DIR
 *  has an installation of each client; scripts/agents/clients.mjs says where. Every file of a project holds a word of its own, and the
 *  client's first request shows which words reached the model. Then the same after `inject`, and after `--uninstall`. */
import { spawn, spawnSync } from "node:child_process";
import { cpSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { acceptPrompts } from "./agents/accept-prompts.mjs";
import { findClient } from "./agents/clients.mjs";
import { countCanaries, firstRequest, writeProject } from "./agents/load-canaries.mjs";
import { layouts } from "./agents/load-layouts.mjs";

/** The clients, by the id of their adapter. */
const ids = {
  claude: "claude-code",
  codex: "codex-cli",
  copilot: "copilot-cli",
  gemini: "gemini-cli",
  opencode: "opencode",
  pi: "pi",
};

const [directory, ...words] = process.argv.slice(2);
const isHelp = process.argv.slice(2).some((word) => word === "--help" || word === "-h");
const unknown = words.find((word) => !Object.hasOwn(ids, word) && !Object.hasOwn(layouts, word));
if (isHelp || directory === undefined || unknown !== undefined) {
  const usage = `usage: npm run accept:load -- DIR [CLIENT|LAYOUT…]

Compares what plimsoll audit says that a tool loads with what the real client sends to a scripted model on loopback, in
the root and in subfolders, before and after plimsoll inject, and after --uninstall. DIR has an installation of each
client: npm install --prefix DIR/claude @anthropic-ai/claude-code-linux-x64 (also codex, copilot, gemini, opencode, pi).
clients: ${Object.keys(ids).join(", ")}
layouts: ${Object.keys(layouts).join(", ")}`;
  console[isHelp ? "log" : "error"](usage);
  process.exit(isHelp ? 0 : 2);
}
const clients = resolve(directory);
// Copilot CLI looks for a newer version. In a network of its own it finds nothing but the scripted model.
if (process.env.PLIMSOLL_LOOPBACK_ONLY === undefined && hasNetworkNamespaces()) {
  const command = 'ip link set lo up && exec "$0" "$@"';
  const env = { ...process.env, PLIMSOLL_LOOPBACK_ONLY: "1" };
  const again = ["-rn", "sh", "-c", command, process.execPath, fileURLToPath(import.meta.url), clients, ...words];
  process.exit(spawnSync("unshare", again, { stdio: "inherit", env }).status ?? 1);
}

/** The project's own pack. Its word shows how often a client loads the block. */
const ruleWord = "word-of-the-block";
const pack = "id: own\nname: Own rules\nweight: 50\n";
const rule = `Always say ${ruleWord}.\n`;
const plimsoll = fileURLToPath(new URL("../dist/cli/main.js", import.meta.url));
const chosenClients = Object.keys(ids).filter((name) => !words.some((word) => ids[word]) || words.includes(name));
const chosenLayouts = Object.keys(layouts).filter(
  (name) => !words.some((word) => layouts[word]) || words.includes(name),
);
const failures = [];
let checks = 0;
for (const name of chosenClients) {
  const { missing, version } = findClient(clients, name);
  if (missing !== undefined) {
    console.log(`${name}: not installed (${missing})`);
    continue;
  }
  console.log(`${name} ${version}`);
  for (const layout of chosenLayouts) await acceptLayout(name, layout);
  await acceptPrompts(name, { clients, check, runPlimsoll, readTree });
}
console.log(
  failures.length === 0
    ? `\nAll ${checks} checks passed.`
    : `\n${failures.length} of ${checks} failed:\n${failures.join("\n")}`,
);
process.exitCode = failures.length === 0 ? 0 : 1;

async function acceptLayout(name, layout) {
  const { files, folders, tools } = layouts[layout];
  const project = await writeProject({
    ...files,
    ".plimsoll/packs/own/pack.yaml": pack,
    ".plimsoll/packs/own/context.md": rule,
  });
  // A link, or a file that only imports, has no word of its own.
  const paths = Object.keys(files).filter((path) => files[path].includes("canary"));
  const look = async () => {
    const seen = {};
    for (const folder of folders) seen[folder] = await loadedIn(name, { project, paths, folder });
    return seen;
  };
  try {
    writeFileSync(
      join(project.root, ".plimsoll/config.yaml"),
      `tools: [${[...new Set([...(tools ?? []), ids[name]])].join(", ")}]\npacks: { exclude: [base, git, node, python, security, sql, testing, typescript] }\n`,
    );
    const bytes = readTree(project.root);
    const before = await look();
    for (const folder of folders)
      compareWithAudit(`${name} ${layout} ${folder}`, before[folder], await audit(name, { project, paths, folder }));
    const injected = await runPlimsoll(["inject"], project);
    const after = await look();
    const checked = await runPlimsoll(["inject", "--check", "--json"], project);
    const all = JSON.parse(checked.stdout);
    const isFault = ({ state }) => ["hidden", "twice", "not loaded"].includes(state);
    const rows = all.filter((row) => row.adapter === ids[name]);
    const faults = rows.filter(isFault);
    for (const folder of folders) {
      const where = `${name} ${layout} ${folder} after inject`;
      const lost = paths.filter((path) => before[folder].counts[path] > 0 && after[folder].counts[path] === 0);
      check(lost.length === 0, `${where}: what was loaded is still loaded`, { lost, injected });
      // Where no choice of files reaches the tool, inject and --check say so.
      const isNamed = faults.length > 0 && injected.stderr.includes(`${ids[name]} gets`);
      check(
        after[folder].blocks === 1 || isNamed,
        `${where}: the block is there once${isNamed ? `, or named (${faults.map(({ state }) => state)})` : ""}`,
        { blocks: after[folder].blocks, injected, rows },
      );
      compareWithAudit(where, after[folder], await audit(name, { project, paths, folder }));
    }
    check((checked.code === 0) === !all.some(isFault), `${name} ${layout}: --check agrees`, checked);
    const removed = await runPlimsoll(["inject", "--uninstall"], project);
    const left = readTree(project.root);
    check(removed.code === 0 && left === bytes, `${name} ${layout}: --uninstall restores every byte`, {
      removed,
      left,
      bytes,
    });
  } finally {
    project.remove();
  }
}

/** What a client loads in a folder: how often each file's word is in the first request, and how often the block's. */
async function loadedIn(name, { project, paths, folder }) {
  // A client keeps its state in HOME.
  const home = `${project.home}-${name}`;
  rmSync(home, { recursive: true, force: true, maxRetries: 10 });
  cpSync(project.home, home, { recursive: true });
  const { text, failure } = await firstRequest(name, { clients, home, folder: join(project.root, folder) });
  if (failure !== undefined) check(false, failure);
  return { counts: countCanaries(text ?? "", paths), blocks: (text ?? "").split(ruleWord).length - 1 };
}

/** What `audit` says that the tool loads in every session. */
async function audit(name, { project, paths, folder }) {
  const { stdout } = await runPlimsoll(["audit", "--all", "--json", "--tool", ids[name], folder], project);
  const [tool] = JSON.parse(stdout).tools;
  const counts = Object.fromEntries(paths.map((path) => [path, 0]));
  for (const { path, alwaysTokens, tokens, via } of tool?.files ?? []) {
    // The word of a link is that of the file that it leads to.
    const file = /^link to (.*?)(?:, on demand)?$/.exec(via)?.[1] ?? path;
    if ((alwaysTokens ?? tokens) > 0) counts[file] = (counts[file] ?? 0) + 1;
  }
  return { counts };
}

function compareWithAudit(where, client, model) {
  const differ = Object.keys(client.counts).filter((path) => client.counts[path] !== (model.counts[path] ?? 0));
  const facts = differ.map((path) => `${path}: client ${client.counts[path]}, audit ${model.counts[path] ?? 0}`);
  check(differ.length === 0, `${where}: audit says what the client loads`, facts);
}

function runPlimsoll(args, { root, home }) {
  return new Promise((done, fail) => {
    const env = { PATH: process.env.PATH, HOME: home, NO_COLOR: "1" };
    const child = spawn(process.execPath, [plimsoll, ...args], { cwd: root, env, stdio: ["ignore", "pipe", "pipe"] });
    const output = { stdout: "", stderr: "" };
    for (const stream of ["stdout", "stderr"]) child[stream].on("data", (chunk) => (output[stream] += chunk));
    child.on("error", fail);
    child.on("exit", (code) => done({ code, ...output }));
  });
}

/** All files and links of a project as one text. */
function readTree(root) {
  const entries = readdirSync(root, { recursive: true, withFileTypes: true })
    .map((entry) => ({ entry, path: join(entry.parentPath, entry.name) }))
    .filter(({ path, entry }) => !path.includes("/.git/") && !entry.isDirectory())
    .sort((a, b) => (a.path < b.path ? -1 : 1));
  return entries
    .map(
      ({ entry, path }) =>
        `${path.slice(root.length)}: ${entry.isSymbolicLink() ? `-> ${readlinkSync(path)}` : readFileSync(path, "latin1")}`,
    )
    .join("\n");
}

function hasNetworkNamespaces() {
  return process.platform === "linux" && spawnSync("unshare", ["-rn", "sh", "-c", "ip link set lo up"]).status === 0;
}

/** Prints one line. `facts` are printed if the check failed. */
function check(isTrue, what, facts) {
  checks++;
  if (!isTrue) failures.push(what);
  console.log(`${isTrue ? "✓" : "✗"} ${what}`);
  if (!isTrue && facts !== undefined) console.log(JSON.stringify(facts, null, 2).slice(0, 3_000));
}
