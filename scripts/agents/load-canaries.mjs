/** Finds out which instruction files a real client loads: each file holds a word of its own, and the client's first
 *  request shows which words reached the model, and how often. */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { startProvider } from "../provider/provider.mjs";
import { modelOf, prepareClient } from "./clients.mjs";

/** The word that stands for a file. It has no letters of the file's name, so that listing names shows nothing. */
function canaryFor(path) {
  return `canary-${createHash("sha256").update(path).digest("hex").slice(0, 12)}`;
}

/** Writes a project and a user's files. Keys are paths; those below `~/` belong to the user. A value that begins with `-> ` makes a
 *  link; any other is the file's text, and `canary` in it becomes the file's own word.
 *  Returns the folders. */
export async function writeProject(files, { git = true } = {}) {
  const base = mkdtempSync(join(tmpdir(), "plimsoll-load-"));
  const [root, home] = [join(base, "project"), join(base, "home")];
  mkdirSync(root, { recursive: true });
  mkdirSync(home, { recursive: true });
  const { symlinkSync } = await import("node:fs");
  for (const [path, text] of Object.entries(files)) {
    const place = path.startsWith("~/") ? join(home, path.slice(2)) : join(root, path);
    mkdirSync(dirname(place), { recursive: true });
    if (text.startsWith("-> ")) symlinkSync(text.slice(3), place);
    else writeFileSync(place, text.replaceAll("canary", canaryFor(path)));
  }
  if (git) await run("git", ["init", "-q"], { cwd: root });
  return { base, root, home, remove: () => rmSync(base, { recursive: true, force: true, maxRetries: 10 }) };
}

/** Starts a client in a folder of the project and returns its first request with tools, as one text. */
export async function firstRequest(name, { clients, home, folder }) {
  const model = await startProvider({ title: "A task", checks: false, answer: () => ({ text: "All done." }) });
  const scratch = mkdtempSync(join(tmpdir(), "plimsoll-client-"));
  try {
    const env = { ...prepareClient(clients, name, { home, url: model.url }), TMPDIR: scratch };
    const end = await run(join(home, "bin", name), commands[name], { cwd: folder, env });
    const request = model.calls.find(({ body }) => hasTools(body));
    if (request === undefined) return { failure: `${name} sent no request: ${end.stderr.slice(-600)}` };
    return { text: JSON.stringify(request.body) };
  } finally {
    await model.close();
    rmSync(scratch, { recursive: true, force: true, maxRetries: 10 });
  }
}

/** Returns how often each file's word is in a text. */
export function countCanaries(text, paths) {
  return Object.fromEntries(paths.map((path) => [path, text.split(canaryFor(path)).length - 1]));
}

function hasTools({ tools = [] }) {
  return tools.some((tool) => tool.functionDeclarations?.length !== 0);
}

const task = "Say hello.";
const commands = {
  claude: ["-p", task, "--model", modelOf("claude")],
  codex: ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-m", modelOf("codex"), task],
  copilot: ["-p", task, "--allow-all-tools", "--no-auto-update"],
  gemini: ["-m", modelOf("gemini"), "--yolo", "--skip-trust", "-p", task],
  opencode: ["run", "-m", modelOf("opencode"), task],
  pi: ["-p", "--provider", "scripted", "--model", "claude-sonnet-4-5", task],
};

function run(command, args, { cwd, env = process.env }) {
  return new Promise((done, fail) => {
    const child = spawn(command, args, { cwd, env, stdio: ["ignore", "ignore", "pipe"] });
    let stderr = "";
    child.stderr.on("data", (chunk) => {
      stderr += chunk;
    });
    const timer = setTimeout(() => child.kill("SIGKILL"), 120_000);
    child.on("error", fail);
    child.on("exit", (code) => {
      clearTimeout(timer);
      done({ code, stderr });
    });
  });
}
