/** Runs of the real Claude Code with the plugin: a HOME, a project and a scripted model for each. */
import { execFile, execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { startProvider } from "../provider/provider.mjs";
import { modelOf, prepareClient } from "./clients.mjs";

export const recallName = "mcp__plugin_plimsoll_plimsoll__recall";

export async function open(context, { files = {}, install = [], road = context.road } = {}) {
  const root = mkdtempSync(join(context.root, "claude-"));
  const [home, project] = [join(root, "home"), join(root, "project")];
  mkdirSync(home);
  mkdirSync(project);
  const env = prepareClient(context.folder, "claude", { home, url: "" });
  symlinkSync(context.plimsoll, join(home, "bin/plimsoll"));
  for (const [name, text] of Object.entries(files)) write(join(project, name), text);
  const place = { ...context, home, project, env };
  if (road !== "none") run(place, ["plugin", "install", "claude-code", ...install]);
  if (road === "hooks") withoutModule(home);
  return place;
}

/** As in a client whose modules are off. */
function withoutModule(home) {
  const file = join(home, ".claude/skills/plimsoll/hooks/hooks.json");
  const { modules: _, ...rest } = JSON.parse(readFileSync(file, "utf8"));
  writeFileSync(file, JSON.stringify(rest));
}

export function write(file, text) {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

export function run({ plimsoll, project, env }, args) {
  return execFileSync(process.execPath, [plimsoll, ...args, "--quiet"], { cwd: project, env, encoding: "utf8" });
}

/** Runs the client with a model that makes these calls, one turn each. Returns the results in the last request. */
export async function converse(place, { turns, decide, allowed = "Read Bash Grep Glob Edit", args = [], env = {} }) {
  const answer = decide ?? follow(turns, place.steps);
  const model = await startProvider({ title: "A task", answer, now: () => performance.now() });
  const started = performance.now();
  const words = [
    "-p",
    "TASK go",
    "--model",
    modelOf("claude"),
    "--output-format",
    "json",
    "--allowedTools",
    allowed,
    ...args,
  ];
  const options = {
    ...{ cwd: place.project, timeout: place.timeoutMs ?? 240_000, maxBuffer: 100_000_000 },
    env: { ...place.env, ANTHROPIC_BASE_URL: model.url, ...env },
  };
  const end = await new Promise((settle) => {
    const child = execFile(join(place.home, "bin/claude"), words, options, (error, stdout, stderr) =>
      settle({ code: error === null ? 0 : error.code, stdout, stderr }),
    );
    child.stdin.end();
  });
  await model.close();
  const main = model.calls.filter(({ body }) => body.tools?.length > 0);
  const last = main.filter(({ body }) => isMain(body)).at(-1);
  return {
    ...end,
    ms: performance.now() - started,
    requests: main,
    results: resultsIn(last?.body),
    json: parse(end.stdout),
  };
}

/** Starts the client in a terminal of tmux. `say` types a line. */
export async function openTerminal(place, { decide, env: more = {} }) {
  const { home, project, env } = place;
  const state = {
    ...{ hasCompletedOnboarding: true, customApiKeyResponses: { approved: [env.ANTHROPIC_API_KEY], rejected: [] } },
    projects: { [project]: { hasTrustDialogAccepted: true, hasCompletedProjectOnboarding: true } },
  };
  writeFileSync(join(home, ".claude.json"), JSON.stringify(state));
  const model = await startProvider({ title: "A task", answer: decide });
  const vars = Object.entries({ ...env, ANTHROPIC_BASE_URL: model.url, TERM: "xterm-256color", ...more });
  const words = vars.flatMap(([name, value]) => (value === undefined ? [] : `${name}=${value}`));
  const terminal = (...args) => execFileSync("tmux", ["-L", basename(dirname(home)), ...args], { encoding: "utf8" });
  const command = ["env", "-i", ...words, join(home, "bin/claude"), "--model", modelOf("claude")];
  terminal("new-session", "-d", "-x", "150", "-y", "60", "-c", project, ...command);
  const screen = () => terminal("capture-pane", "-p");
  const press = (key) => terminal("send-keys", key);
  await until(() => screen().includes("? for shortcuts"));
  return {
    ...{ screen, press, model },
    async say(line) {
      terminal("send-keys", "-l", line);
      await until(() => screen().includes(line));
      press("Enter");
    },
    requests: () => model.calls.filter(({ body }) => body.tools?.length > 0),
    async close() {
      terminal("kill-server");
      await model.close();
      // The client still writes its last lines.
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    },
  };
}

export async function until(isTrue) {
  for (let attempt = 0; attempt < 200; attempt++) {
    if (isTrue()) return true;
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  return false;
}

/** Answers with one call for each turn. A turn may be a function of the request's text. */
export function follow(turns, skipped = 0) {
  return ({ step, text }) => {
    const turn = turns[step - skipped];
    const calls = typeof turn === "function" ? turn(text) : turn;
    return calls === undefined ? { text: "Done." } : { text: "Working.", calls: [calls].flat() };
  };
}

export const isMain = (body) => !JSON.stringify(body.messages[0] ?? "").includes("SUBTASK");

export function resultsIn(body) {
  const blocks = (body?.messages ?? []).flatMap(({ content }) => (Array.isArray(content) ? content : []));
  const text = (content) =>
    typeof content === "string" ? content : (content ?? []).map((each) => each.text ?? "").join("\n");
  return blocks.filter(({ type }) => type === "tool_result").map(({ content }) => text(content));
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

export const linesOf = (name, count) =>
  `${Array.from({ length: count }, (_, index) => `export const ${name}${index} = compute(${index * 7}, "${name}");`).join("\n")}\n`;
export const bash = (command) => ({ name: "Bash", input: { command, description: "run" } });
export const read = (file_path, more) => ({ name: "Read", input: { file_path, ...more } });
