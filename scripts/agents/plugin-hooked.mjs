/** The plugins in the real opencode, pi and gemini-cli: every kind of edit, recall, trimming in two processes, sub-agents,
 *  failures, uninstall. */
import { execFileSync, spawn } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { crc32, deflateSync } from "node:zlib";
import { startProvider } from "../provider/provider.mjs";
import { findClient, modelOf, prepareClient } from "./clients.mjs";
import { acceptReader } from "./plugin-reader.mjs";

const pluginOf = { opencode: "opencode", pi: "pi", gemini: "gemini-cli" };

export const opencode = { acceptPlugin: (context) => acceptClient("opencode", context) };
export const pi = { acceptPlugin: (context) => acceptClient("pi", context) };
export const gemini = { acceptPlugin: (context) => acceptClient("gemini", context) };

async function acceptClient(name, { folder, root, plimsoll, check, part }) {
  const { missing, version } = findClient(folder, name);
  if (missing !== undefined) return check(false, `${name}: not found. Install it: ${missing}`);
  console.log(`\n${pluginOf[name]} ${version}`);
  let decide = () => ({ text: "Done." });
  const model = await startProvider({ title: "A task", answer: (asked) => decide(asked) });
  /** A HOME and a project for one test. */
  const open = () => {
    const home = mkdtempSync(join(root, `${name}-`));
    const project = join(home, "project");
    mkdirSync(project);
    const env = prepareClient(folder, name, { home, url: model.url });
    symlinkSync(plimsoll, join(home, "bin/plimsoll"));
    const run = async (turns, more = []) => {
      model.calls.length = 0;
      decide = turns;
      const started = Date.now();
      const outcome = await runClient(name, { home, project, env, more });
      const requests = model.calls.map(({ body }) => body).filter(({ tools = [] }) => tools.length > 0);
      return { ...outcome, ms: Date.now() - started, requests };
    };
    const command = (...args) =>
      execFileSync(process.execPath, [plimsoll, ...args, "--quiet"], { cwd: project, env, encoding: "utf8" });
    return { name, home, project, env, run, command };
  };
  try {
    for (const [each, test] of Object.entries(tests[name])) {
      if (part === undefined || part === each) await test(open, check);
    }
  } finally {
    await model.close();
  }
}

const tests = {
  opencode: {
    edits: acceptEdits,
    reader: acceptSessions,
    trimming: acceptTrimming,
    images: acceptImages,
    agents: acceptSubAgent,
    failures: acceptAbsence,
    uninstall: acceptUninstall,
  },
  pi: {
    edits: acceptEdits,
    reader: acceptSessions,
    trimming: acceptTrimming,
    images: acceptImages,
    failures: acceptAbsence,
    uninstall: acceptUninstall,
  },
  gemini: { edits: acceptPage, failures: acceptAbsence, uninstall: acceptUninstall },
};

// What is checked.

async function acceptEdits(open, check) {
  const place = open();
  const { name, project, run, command } = place;
  writeFileSync(join(project, "a.ts"), sourceOf("a", 60));
  command("plugin", "install", name, "--max-result-tokens", "4000");
  const again = command("plugin", "install", name, "--max-result-tokens", "4000");
  check(again.includes("nothing to change"), `${name}: a second install changes nothing`, again);
  const outcome = await run(({ step, text }) =>
    callAt(step, [
      reading(place, "a.ts"),
      reading(place, "a.ts"),
      editing(place, "a.ts"),
      reading(place, "a.ts"),
      bash("seq 1 30000 | sed 's/$/ some other words here/' | head -c 49000"),
      bash(`plimsoll recall ${/plimsoll recall (\w{16})/.exec(text)?.[1]} | head -6`),
      bash(`plimsoll plugin status ${name}`),
    ]),
  );
  const { code, ms, requests } = outcome;
  const results = resultsOf(requests.at(-1));
  check(code === 0, `${name}: ends with ${code} after ${ms} ms`, outcome.stderr);
  check(results[0]?.includes("value0_a = "), `${name}: a first read arrives whole`, results[0]);
  check(results[1]?.includes(": Same text as the result of read"), `${name}: duplicate: ${results[1]}`);
  check(/^\[[a-z2-7]{4}: Only new lines.*\n(.*\n)*.*changed30/.test(results[3]), `${name}: delta: ${results[3]}`);
  check(/\[[a-z2-7]{4}: The whole result has 1,8\d\d lines/.test(results[4]), `${name}: page: ${results[4]}`);
  check(results[5]?.includes("value0_a = "), `${name}: recall through the shell: ${results[5]?.split("\n")[0]}`);
  check(/ 1 +1 +1 /.test(results[6] ?? ""), `${name}: status counts one edit of each kind`, results[6]);
}

async function acceptSessions(open, check) {
  let place = open();
  const { name } = place;
  const write = (file, content) => {
    const path = join(place.project, file);
    return { name: "write", input: name === "pi" ? { path, content } : { filePath: path, content } };
  };
  const read = (file, part = {}) => {
    const { input, ...call } = reading(place, file);
    return { ...call, input: { ...input, ...part } };
  };
  await acceptReader({
    check: (isTrue, what, facts) => check(isTrue, `${name}: ${what}`, facts),
    tools: { read, bash, write },
    async play(files, turns) {
      const { project, command, run } = place;
      for (const [file, text] of Object.entries(files)) writeFileSync(join(project, file), text);
      command("plugin", "install", name);
      let turn = 0;
      const { code, requests } = await run(() => callAt(turn++, turns));
      // The calls of the next session have the paths of the next place.
      const recall = (id) => command("recall", id, "--json");
      place = open();
      return { code, messages: requests.at(-1)?.messages ?? [], recall };
    },
  });
}

async function acceptTrimming(open, check) {
  const place = open();
  const { name, project, run, command } = place;
  for (let file = 0; file < 9; file++) writeFileSync(join(project, `f${file}.ts`), sourceOf(`f${file}`, 100));
  const limit = { opencode: "18000", pi: "14000" }[name];
  command("plugin", "install", name, "--trim", limit);
  // Trimmed calls are gone from the request, so the model counts its own turns.
  let turn = 0;
  const reads = Array.from({ length: 16 }, (_, index) => reading(place, `f${index % 9}.ts`));
  const first = await run(() => callAt(turn++, reads));
  const known = /recall id ([a-z2-7]{16})/.exec(JSON.stringify(first.requests.at(-1)))?.[1];
  check(first.code === 0 && known !== undefined, `${name}: --trim ${limit} trims (16 reads)`, first.stderr);
  turn = 0;
  const next = [...reads.slice(0, 4), bash(`plimsoll recall ${known} | head -4`)];
  const second = await run(() => callAt(turn++, next), continueOptions[name]);
  const texts = [...first.requests, ...second.requests].map(messagesText);
  const breaks = texts.flatMap((text, index) =>
    index === 0 || text.startsWith(texts[index - 1].slice(0, -1)) ? [] : index,
  );
  const isShrunk = breaks.every((index) => texts[index].length < texts[index - 1].length);
  const restart = first.requests.length;
  check(
    breaks.length > 0 && breaks.length <= 5 && isShrunk && !breaks.includes(restart),
    `${name}: ${texts.length} requests in two processes, append-only but for trims at ${breaks.join(", ")} (restart at ${restart})`,
    texts.map(({ length }) => length),
  );
  const lost = [...first.requests, ...second.requests].flatMap(lostBases);
  check(lost.length === 0, `${name}: no note refers to a text that a trim has removed`, lost);
  const recalled = resultsOf(second.requests.at(-1)).at(-1);
  check(
    recalled?.includes(" = compute("),
    `${name}: recall ${known} through the shell: ${recalled?.split("\n")[3] ?? recalled}`,
  );
}

/** The files of notes on duplicates whose whole text is not in the same request. */
function lostBases(body) {
  const results = resultsOf(body);
  const notes = results.flatMap(
    (text) => /^\[[a-z2-7]{4}: Same text as the result of read (\S+) above/.exec(text)?.[1] ?? [],
  );
  return notes.filter((path) => {
    const first = `value0_${/(f\d)\.ts$/.exec(path)?.[1]} = `;
    return !results.some((text) => text.includes(first) && !text.startsWith("[Same"));
  });
}

const continueOptions = { opencode: ["--continue"], pi: ["--continue"] };

/** Reads pictures one after the other. Each request has at least the newest two, and older ones go two at a time. */
async function acceptImages(open, check) {
  const place = open();
  const { name, home, project, run, command } = place;
  // Otherwise the client believes that the model cannot see.
  const [settings, ...blind] = {
    opencode: [".config/opencode/opencode.json", '"claude-sonnet-4-5":{}', `"claude-sonnet-4-5":${canSee}`],
    pi: [".pi/agent/models.json", '"contextWindow"', '"input":["text","image"],"contextWindow"'],
  }[name];
  writeFileSync(join(home, settings), readFileSync(join(home, settings), "utf8").replace(...blind));
  for (let file = 0; file < 6; file++) writeFileSync(join(project, `shot${file}.png`), onePixel(file));
  command("plugin", "install", name, "--images", "2");
  const { code, requests, stderr } = await run(({ step }) =>
    callAt(
      step,
      Array.from({ length: 6 }, (_, file) => reading(place, `shot${file}.png`)),
    ),
  );
  const counts = requests.map((body) => JSON.stringify(body).split('"type":"image"').length - 1);
  check(
    code === 0 && counts.join() === "0,1,2,3,2,3,2",
    `${name}: images in each request: ${counts.join(", ")}`,
    stderr,
  );
  const notes = JSON.stringify(requests.at(-1)).split("[An image was here.").length - 1;
  check(notes === 4, `${name}: ${notes} notes in place of images in the last request`);
}

const canSee = '{"attachment":true,"modalities":{"input":["text","image"],"output":["text"]}}';

/** A PNG of one pixel whose grey is `shade`. */
function onePixel(shade) {
  const chunk = (type, data) => {
    const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
    const frame = Buffer.alloc(8);
    frame.writeUInt32BE(data.length, 0);
    frame.writeUInt32BE(crc32(body), 4);
    return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)]);
  };
  const header = Buffer.from([0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0]);
  const pixels = deflateSync(Buffer.from([0, shade]));
  const start = Buffer.from("\x89PNG\r\n\x1a\n", "latin1");
  return Buffer.concat([start, chunk("IHDR", header), chunk("IDAT", pixels), chunk("IEND", Buffer.alloc(0))]);
}

/** A sub-agent has a context of its own: what the main agent has read is new to it. */
async function acceptSubAgent(open, check) {
  const place = open();
  const { name, project, run, command } = place;
  writeFileSync(join(project, "a.ts"), sourceOf("a", 60));
  command("plugin", "install", name);
  const input = { description: "read", prompt: "SUBTASK read it", subagent_type: "general" };
  const { requests } = await run(({ text, step }) => {
    const isSub = JSON.stringify(JSON.parse(text).messages[0]).includes("SUBTASK");
    return callAt(step, isSub ? [reading(place, "a.ts")] : [reading(place, "a.ts"), { name: "task", input }]);
  });
  const sub = requests.filter((body) => JSON.stringify(body.messages[0]).includes("SUBTASK")).at(-1);
  const [result] = sub === undefined ? [] : resultsOf(sub);
  check(result?.includes("value0_a = "), `${name}: a sub-agent gets the whole file`, result ?? requests.length);
}

async function acceptPage(open, check) {
  const { name, home, run, command } = open();
  command("plugin", "install", "gemini-cli", "--max-result-tokens", "4000");
  // The second that the hook has is too short on a computer that runs many tests.
  const hooks = join(home, ".gemini/extensions/plimsoll/hooks/hooks.json");
  writeFileSync(hooks, readFileSync(hooks, "utf8").replace('"timeout": 1000', '"timeout": 20000'));
  const shell = (text) => ({ name: "run_shell_command", input: { command: text, description: "run" } });
  const long = "seq 1 3000 | sed 's/$/ is a line of a long output/'";
  const { code, requests } = await run(({ step, text }) =>
    callAt(step, [
      shell("seq 1 5"),
      shell(long),
      shell(`plimsoll recall ${/plimsoll recall (\w{16})/.exec(text)?.[1]} --lines 100-101`),
    ]),
  );
  const parts = (requests.at(-1)?.contents ?? []).flatMap((content) => content.parts);
  const answers = parts.flatMap(({ functionResponse }) => functionResponse?.response ?? []);
  check(code === 0 && answers[0]?.output?.includes("5"), `${name}: a short result stays`, answers[0]);
  check(
    /^\[The tool ran.*\[[a-z2-7]{4}: The whole result has/s.test(answers[1]?.error),
    `${name}: page: ${answers[1]?.error}`,
    answers[1],
  );
  check(answers[2]?.output?.includes("100 is a line"), `${name}: recall through the shell`, answers[2]);
}

/** Without plimsoll, with a broken one and with a broken store, the originals arrive and the client ends well. */
async function acceptAbsence(open, check) {
  const hurdles = {
    "plimsoll is gone": ({ home }) => rmSync(join(home, "bin/plimsoll")),
    "plimsoll crashes": ({ home }) => {
      const program = join(home, "broken/main.js");
      mkdirSync(join(home, "broken/bundle"), { recursive: true });
      writeFileSync(program, "#!/bin/sh\nexit 3\n", { mode: 0o755 });
      writeFileSync(join(home, "broken/bundle/plugin-hooks.js"), 'throw new Error("broken");\n');
      rmSync(join(home, "bin/plimsoll"));
      symlinkSync(program, join(home, "bin/plimsoll"));
    },
    "the store is damaged": ({ home, env }) => {
      env.PLIMSOLL_STORE = join(home, "store.db");
      writeFileSync(env.PLIMSOLL_STORE, "this is no database");
    },
  };
  for (const [words, prepare] of Object.entries(hurdles)) {
    const place = open();
    const { name, home, project, run, command } = place;
    writeFileSync(join(project, "a.ts"), sourceOf("a", 60));
    // Without a network, opencode would wait for its package in the user's folder.
    const lock = { packages: { "": { dependencies: { "@opencode-ai/plugin": "*" } } } };
    mkdirSync(join(home, ".config/opencode/node_modules"), { recursive: true });
    writeFileSync(join(home, ".config/opencode/package-lock.json"), JSON.stringify(lock));
    // A project's file does not say where plimsoll was at install.
    const scope = name === "gemini" ? "user" : "project";
    command("plugin", "install", pluginOf[name], "--scope", scope, "--max-result-tokens", "600");
    prepare(place);
    const { code, ms, requests, stderr } = await run(({ step }) =>
      callAt(step, [reading(place, "a.ts"), reading(place, "a.ts")]),
    );
    const found = JSON.stringify(requests.at(-1)).split("value59_a = ").length - 1;
    check(code === 0 && found === 2, `${name}: ${words}: both reads arrive whole, exit ${code}, ${ms} ms`, stderr);
  }
}

async function acceptUninstall(open, check) {
  const { name, home, project, command } = open();
  const settings = '{\n  // a comment\n  "theme": "dark",   "other": [1,2]\n}\n';
  for (const file of [".config/opencode/opencode.jsonc", ".pi/agent/settings.json", ".gemini/settings.json"]) {
    mkdirSync(dirname(join(home, file)), { recursive: true });
    writeFileSync(join(home, file), settings);
  }
  const scopes = name === "gemini" ? ["user"] : ["user", "project"];
  const before = treeOf(home);
  for (const scope of scopes) command("plugin", "install", pluginOf[name], "--scope", scope);
  const during = Object.keys(treeOf(home)).filter((path) => !(path in before) && !path.includes(".local/state"));
  for (const scope of scopes) command("plugin", "uninstall", pluginOf[name], "--scope", scope);
  const after = treeOf(home);
  for (const path of Object.keys(after)) if (path.includes(".local")) delete after[path];
  const isSame = JSON.stringify(after) === JSON.stringify(before);
  check(isSame, `${name}: uninstall gives the bytes back; install wrote ${during.join(", ")}`, Object.keys(after));
  check(existsSync(project), `${name}: the project stays`);
}

function treeOf(folder, prefix = "") {
  const found = {};
  for (const entry of readdirSync(folder).sort()) {
    const path = join(folder, entry);
    const isFolder = statSync(path).isDirectory();
    if (isFolder) Object.assign(found, { [`${prefix}${entry}/`]: "" }, treeOf(path, `${prefix}${entry}/`));
    else found[`${prefix}${entry}`] = readFileSync(path, "latin1");
  }
  return found;
}

// What the model does.

function callAt(step, turns) {
  return turns[step] === undefined ? { text: "All done." } : { text: "Working.", calls: [turns[step]].flat() };
}

function sourceOf(name, lines) {
  return Array.from({ length: lines }, (_, n) => `export const value${n}_${name} = compute(${n}, "text");\n`).join("");
}

function reading({ name, project }, file) {
  const path = join(project, file);
  if (name === "gemini") return { name: "read_file", input: { file_path: path } };
  return { name: "read", input: name === "pi" ? { path } : { filePath: path } };
}

function editing({ name, project }, file) {
  const path = join(project, file);
  const [oldText, newText] = ["value30_a = compute(30", "changed30 = compute(31"];
  if (name === "pi") return { name: "edit", input: { path, edits: [{ oldText, newText }] } };
  return { name: "edit", input: { filePath: path, oldString: oldText, newString: newText } };
}

function bash(command) {
  return { name: "bash", input: { command, description: "run" } };
}

// The texts of requests.

function resultsOf(body) {
  const blocks = (body?.messages ?? []).flatMap(({ content }) => content);
  const results = blocks.filter(({ type }) => type === "tool_result");
  return results.map(({ content }) =>
    [content]
      .flat()
      .map((each) => each.text ?? each)
      .join("\n"),
  );
}

/** Cache markers move from request to request and are no content. */
function messagesText({ messages }) {
  const plain = messages.map(({ role, content }) => ({
    role,
    content: [content].flat().map(({ cache_control: _marker, ...block }) => block),
  }));
  return JSON.stringify(plain);
}

function runClient(name, { home, project, env, more }) {
  const args = {
    opencode: ["run", ...more, "-m", modelOf(name), "TASK do it"],
    pi: ["-p", ...more, "--provider", "scripted", "--model", "claude-sonnet-4-5", "TASK do it"],
    gemini: ["-m", modelOf(name), "--yolo", "--skip-trust", "-p", "TASK do it"],
  }[name];
  return new Promise((done) => {
    const child = spawn(join(home, "bin", name), args, { cwd: project, env, stdio: ["ignore", "ignore", "pipe"] });
    let stderr = "";
    child.stderr.on("data", (chunk) => {
      stderr += chunk;
    });
    const timer = setTimeout(() => child.kill("SIGKILL"), 240_000);
    child.on("exit", (code) => {
      clearTimeout(timer);
      done({ code, stderr: stderr.slice(-2_000) });
    });
  });
}
