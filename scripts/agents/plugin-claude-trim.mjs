/** Trimmed requests in the real Claude Code: of a long conversation, of sub-agents, and where nothing can be trimmed. */
import { readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { converse, linesOf, open, read, recallName, run } from "./claude-runs.mjs";

/** Long conversations in two processes, with a broken helper, and with the variable under which the client refuses changed
 *  requests. */
export async function acceptTrim(context) {
  const { check } = context;
  const files = Object.fromEntries(Array.from({ length: 24 }, (_, at) => [`f${at}.ts`, linesOf(`f${at}_`, 150)]));
  const reads = Object.keys(files).map((name) => read(name));
  const limit = 50_000;
  const place = await open(context, { files, install: ["--trim", String(limit)] });
  // Trimmed calls are gone from the request, so the model counts its own turns.
  const follow = (turns) => {
    let turn = 0;
    return { decide: ({ text }) => answerAt(turns[turn++], text) };
  };
  const env = { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: undefined };
  const first = await converse(place, { ...follow(reads), env });
  const known = /recall id ([a-z2-7]{16})/.exec(JSON.stringify(first.requests.at(-1)?.body))?.[1];
  check(first.code === 0 && known !== undefined, `--trim ${limit} trims ${reads.length} reads`, first.stderr);
  const again = [...reads.slice(0, 3), findRecall, { name: recallName, input: { id: known } }];
  const second = await converse(place, { ...follow(again), args: ["--continue"], env });
  const { texts, breaks, isShrunk } = trimsIn([...first.requests, ...second.requests]);
  const restart = first.requests.length;
  check(
    breaks.length >= 2 && breaks.length <= 8 && isShrunk && !breaks.includes(restart),
    `${texts.length} requests in two processes, append-only but for trims at ${breaks.join(", ")} (restart at ${restart})`,
    texts.map(({ length }) => length),
  );
  const largest = Math.max(...first.requests.map(({ body }) => JSON.stringify(body).length));
  check(largest / 4 < limit * 1.15, `the largest request has ${largest} characters`);
  const recalled = second.results.at(-1) ?? "";
  check(recalled.includes(" = compute("), `recall ${known} through MCP: ${recalled.split("\n")[1]}`, recalled);
  await acceptAgents(context);
  await acceptUntrimmed(context, { files, limit, follow, reads });
}

const answerAt = (calls, text) => {
  const made = typeof calls === "function" ? calls(text) : calls;
  return made === undefined ? { text: "Done." } : { text: "Working.", calls: [made].flat() };
};

const findRecall = { name: "ToolSearch", input: { query: `select:${recallName}` } };

const readers = ["main", "one", "two", "three"];
const readerOf = ({ messages }) => /SUBTASK (\w+)/.exec(JSON.stringify(messages[0]))?.[1] ?? "main";

/** One sub-agent, and then two at once beside the main agent. Each reads files of its own until it was trimmed twice. */
async function acceptAgents(context) {
  const namesOf = (reader) => Array.from({ length: 22 }, (_, at) => `${reader}${at}`);
  const files = Object.fromEntries(readers.flatMap(namesOf).map((name) => [`${name}.ts`, linesOf(`${name}_`, 150)]));
  const place = await open(context, { files, install: ["--trim", "40000"] });
  const start = (reader, more) => ({
    name: "Agent",
    input: { description: reader, prompt: `SUBTASK ${reader}: read`, subagent_type: "general-purpose", ...more },
  });
  const recallFirst = (text) => ({ name: recallName, input: { id: /recall id ([a-z2-7]{16})/.exec(text)?.[1] } });
  const turnsOf = (reader) => [...namesOf(reader).map((name) => read(`${name}.ts`)), findRecall, recallFirst];
  const turns = Object.fromEntries(readers.map((reader) => [reader, turnsOf(reader)]));
  turns.main.splice(8, 0, start("one", { run_in_background: false }), [start("two"), start("three")]);
  const decide = ({ text, body }) => answerAt(turns[readerOf(body)].shift(), text);
  const env = { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: undefined };
  const { code, requests, stderr } = await converse(place, { decide, allowed: "Read Agent", env });
  context.check(code === 0, "--trim with three sub-agents", stderr);
  for (const reader of readers) {
    const own = requests.filter(({ body }) => readerOf(body) === reader);
    await checkReader({ ...context, reader, requests: own });
  }
}

async function checkReader({ check, reader, requests }) {
  const { texts, breaks, isShrunk } = trimsIn(requests);
  check(
    breaks.length >= 2 && breaks.length <= 6 && isShrunk,
    `${reader}: ${requests.length} requests, append-only but for trims at ${breaks.join(", ")}`,
    texts.map(({ length }) => length),
  );
  const { validateRequest } = await import("../../dist/public/messages.js");
  // The scripted model does not think.
  const problems = requests.flatMap(({ body }) => validateRequest({ ...body, thinking: undefined }));
  const others = readers.filter((other) => other !== reader);
  const foreign = others.filter((other) => texts.some((text) => new RegExp(` ${other}\\d+_1 =`).test(text)));
  const isClean = problems.length === 0 && foreign.length === 0;
  check(isClean, `${reader}: valid requests, and nothing of other agents`, { problems, foreign });
  const recalled = texts.at(-1)?.split(`"name":"${recallName}"`).at(-1) ?? "";
  const isOwn = new RegExp(` ${reader}\\d+_149 = compute`).test(recalled);
  check(isOwn, `${reader}: recall returns a trimmed file`, recalled.slice(0, 500));
}

/** A conversation of 300 calls under --trim, in which our process stands still three times, six seconds each. */
export async function acceptLate(context) {
  const { check } = context;
  const files = Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`f${at}.ts`, linesOf(`f${at}_`, 150)]));
  const place = await open(context, { files, install: ["--trim", "50000"] });
  let turn = 0;
  let stopped = 0;
  const decide = async () => {
    if (turn > 300) return { text: "Done." };
    turn++;
    if ([60, 150, 240].includes(turn)) for (const pid of helpersIn(place.project)) stop(pid);
    // Each result is new, so only a trim makes requests smaller.
    const command = `sed s/compute/compute${turn}/ f${turn % 30}.ts`;
    return { text: "Working.", calls: [{ name: "Bash", input: { command, description: "run" } }] };
  };
  const stop = (pid) => {
    stopped++;
    process.kill(pid, "SIGSTOP");
    setTimeout(() => process.kill(pid, "SIGCONT"), 6_000);
  };
  const env = { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: undefined };
  const { code, requests, stderr, ms } = await converse(
    { ...place, timeoutMs: 1_200_000 },
    { decide, env, allowed: "Bash" },
  );
  const texts = requests.map(({ body }) => messagesText(body));
  const news = requests.map(({ body }) => messagesText({ messages: body.messages.slice(-2) }).length);
  const grown = texts.flatMap((text, at) => (at > 0 && text.length > texts[at - 1].length + news[at] ? at : []));
  const { breaks } = trimsIn(requests);
  check(
    code === 0 && stopped === 3 && requests.length > 300 && grown.length === 0,
    `${requests.length} requests with ${stopped} stops of 6 s: larger than the last one plus what is new: ${grown.length}; trims: ${breaks.length}; largest ${Math.max(...texts.map(({ length }) => length))} characters; ${Math.round(ms / 1000)} s`,
    { code, grown, stderr },
  );
  const status = JSON.parse(run(place, ["plugin", "status", "claude-code", "--json"]));
  const said = status.sessions[0]?.errors?.filter((error) => error.includes("was late")) ?? [];
  check(said.length > 0, `status says: ${said.join("; ")}`, status);
}

/** Our processes that work in a folder. */
function helpersIn(folder) {
  const read = (file) => {
    try {
      return file.endsWith("cwd") ? readlinkSync(file) : readFileSync(file, "utf8");
    } catch {
      return "";
    }
  };
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => read(`/proc/${pid}/cmdline`).includes("plugin\0serve") && read(`/proc/${pid}/cwd`) === folder)
    .map(Number);
}

async function acceptUntrimmed(context, { files, limit, follow, reads }) {
  const hurdles = {
    "the process hangs": { env: { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: undefined }, breaks: true },
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC is set": { env: {}, breaks: false },
  };
  for (const [words, { env, breaks }] of Object.entries(hurdles)) {
    const place = await open(context, { files, install: ["--trim", String(limit)] });
    if (breaks) {
      rmSync(join(place.home, "bin/plimsoll"));
      writeFileSync(join(place.home, "bin/plimsoll"), "#!/bin/sh\nsleep 600\n", { mode: 0o755 });
    }
    const { code, requests, ms, stderr } = await converse(place, { ...follow(reads.slice(0, 14)), env });
    const found = JSON.stringify(requests.at(-1)?.body).split("149 = compute(").length - 1;
    context.check(
      code === 0 && found === 14,
      `${words}: ${found} of 14 reads arrive whole, exit ${code}, ${Math.round(ms)} ms`,
      stderr,
    );
  }
}

/** Reads of pictures. At least two of the newest keep theirs, and two are left out at a time. */
export async function acceptImages({ check, ...context }) {
  const names = Array.from({ length: 7 }, (_, at) => `p${at}.png`);
  const place = await open(context, { install: ["--images", "2"] });
  for (const name of names) writeFileSync(join(place.project, name), Buffer.from(picture, "base64"));
  const turns = names.map((name) => read(name));
  const env = { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: undefined };
  const { code, requests, stderr } = await converse(place, { turns, env });
  const countIn = (body, word) => messagesText(body).split(word).length - 1;
  const counts = requests.map(({ body }) => countIn(body, '"media_type":"image'));
  check(
    code === 0 && counts.join() === "0,1,2,3,2,3,2,3",
    `--images 2: images in each request: ${counts.join(", ")}`,
    stderr,
  );
  const notes = countIn(requests.at(-1)?.body ?? { messages: [] }, "[An image was here.");
  check(notes === 4, `--images 2: ${notes} notes in place of images in the last request`);
}

/** A PNG of one pixel. */
const picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** Where requests are no longer the one before and more. */
function trimsIn(requests) {
  const texts = requests.map(({ body }) => messagesText(body));
  const breaks = texts.flatMap((text, index) =>
    index === 0 || text.startsWith(texts[index - 1].slice(0, -1)) ? [] : index,
  );
  return { texts, breaks, isShrunk: breaks.every((index) => texts[index].length < texts[index - 1].length) };
}

/** Cache markers move from request to request and are no content. */
function messagesText({ messages }) {
  const plain = messages.map(({ role, content }) => ({
    role,
    content: [content].flat().map((block) => {
      if (typeof block === "string") return { type: "text", text: block };
      const { cache_control: _marker, ...rest } = block;
      return rest;
    }),
  }));
  return JSON.stringify(plain);
}
