/** Runs of the real Claude Code with the plugin: a HOME, a project and a scripted model for each. */
import { execFile, execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
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
  const follow = ({ step, text }) => {
    const turn = turns[step - (place.steps ?? 0)];
    const calls = typeof turn === "function" ? turn(text) : turn;
    return calls === undefined ? { text: "Done." } : { text: "Working.", calls: [calls].flat() };
  };
  const model = await startProvider({ title: "A task", answer: decide ?? follow, now: () => performance.now() });
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
    ...{ cwd: place.project, timeout: 240_000, maxBuffer: 100_000_000 },
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
export const read = (file_path, more) => ({ name: "Read", input: { file_path, ...more } });
