/** Runs `plugin check`: starts the real client with a copy of the installed plugin, in a temporary folder, against a
 *  local model that reads one file again and again. The check passes if a later result reaches the model shortened. */
import { type ExecFileOptions, execFile } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { countNoun, type Fields, isPlainObject, readJson } from "../../core/text/index.ts";
import { exists, findProgram } from "../../host/index.ts";
import type { PluginCheck, PluginPlace } from "./plugin.ts";

/** How to run a client for a check. */
export interface ClientTrial {
  /** The program on PATH. */
  readonly program: string;
  /** The files and folders of the plugin. A key is the path where it is installed, below the root; a value is its path
   *  below the HOME of the check. All must exist. */
  readonly installed: Readonly<Record<string, string>>;
  readonly args: readonly string[];
  env(url: string): Readonly<Record<string, string>>;
  /** Other files below HOME, by their paths. */
  files?(url: string): Readonly<Record<string, string>>;
  /** The call with which the model reads a file. */
  call(file: string): ModelCall;
  /** Names the part of the plugin that wrote this text, if there are several. */
  partOf?(text: string): string;
}

export async function checkClient(
  id: string,
  { root, env, scope }: PluginPlace,
  trial: ClientTrial,
): Promise<PluginCheck> {
  const { program, installed } = trial;
  const fail = (line: string): PluginCheck => ({ passed: false, lines: [line] });
  for (const path of Object.keys(installed)) {
    if (await exists(join(root, path))) continue;
    return fail(`the plugin is not installed for this ${scope}. Run "plimsoll plugin install ${id}"`);
  }
  for (const name of [program, "plimsoll"]) {
    if ((await findProgram(name, env)) === undefined) return fail(`${name} is not on PATH`);
  }
  const home = mkdtempSync(join(tmpdir(), "plimsoll-check-"));
  const file = join(home, "project/planted.txt");
  const model = await startModel(trial.call(file));
  try {
    for (const [path, to] of Object.entries(installed)) {
      cpSync(join(root, path), join(home, to), { recursive: true });
    }
    const files = { "project/planted.txt": planted.join("\n"), ...trial.files?.(model.url) };
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(home, path)), { recursive: true });
      writeFileSync(join(home, path), text);
    }
    const options = {
      cwd: join(home, "project"),
      env: { PATH: env.PATH, HOME: home, ...trial.env(model.url) },
      // Long enough for a slow computer, and for a client that retries.
      timeout: 90_000,
      maxBuffer: 10_000_000,
    };
    const about = await run(program, ["--version"], options);
    const version = /\d+\.[\w.-]+/.exec(about.stdout || about.stderr)?.[0];
    const { stderr } = await run(program, trial.args, options);
    const results = model.results();
    if (results.length > 1) return { version, ...judgeResults(results, trial) };
    const message = `the client sent ${countNoun(results.length, "result")} to the model. ${stderr.trim().split("\n").at(-1)}`;
    return { version, ...fail(message.trim()) };
  } finally {
    model.close();
    rmSync(home, { recursive: true, force: true });
  }
}

const planted = Array.from({ length: 200 }, (_, index) => `planted line ${index + 1}: ${"abcdefgh".repeat(3)}`);

function judgeResults(
  [first = "", ...later]: readonly string[],
  { partOf }: ClientTrial,
): Pick<PluginCheck, "passed" | "lines"> {
  const isWhole = first.includes(planted.at(-1) ?? "");
  const short = later.find((text) => isShort(text) && text.length < first.length / 2);
  const lines = [
    `first result: ${isWhole ? "whole" : "not whole"}, ${first.length} characters`,
    short === undefined
      ? `same result again: not shortened in ${countNoun(later.length, "attempt")}`
      : `same result again: ${short.length} characters${partOf === undefined ? "" : `, shortened by ${partOf(short)}`}`,
  ];
  return { passed: isWhole && short !== undefined, lines };
}

function isShort(text: string): boolean {
  return /plimsoll recall [a-z2-7]{16}/.test(text);
}

function run(
  program: string,
  args: readonly string[],
  options: ExecFileOptions,
): Promise<Readonly<Record<"stdout" | "stderr", string>>> {
  return new Promise((resolve) => {
    const child = execFile(program, args, options, (_, stdout, stderr) =>
      resolve({ stdout: String(stdout), stderr: String(stderr) }),
    );
    child.stdin?.end();
  });
}

/** Speaks as much of Anthropic's Messages as the client needs. `results` returns the texts of the tool results in the last
 *  request. */
async function startModel(
  read: ModelCall,
): Promise<{ readonly url: string; results(): readonly string[]; close(): void }> {
  let results: readonly string[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = readJson(Buffer.concat(chunks).toString("utf8"), isPlainObject) ?? {};
    if (!request.url?.includes("/messages") || request.url.includes("count_tokens")) {
      response.writeHead(200, { "content-type": "application/json" }).end('{"data":[],"input_tokens":1000}');
      return;
    }
    const messages = (Array.isArray(body.messages) ? body.messages : []) as Fields[];
    const blocks = messages.flatMap(({ content }) => content) as Fields[];
    const found = blocks
      .filter(({ type }) => type === "tool_result")
      .map(({ content }) =>
        Array.isArray(content) ? content.map(({ text }) => String(text ?? "")).join("\n") : String(content),
      );
    if (found.length >= results.length) results = found;
    const hasTools = Array.isArray(body.tools) && body.tools.length > 0;
    const isDone = found.length >= 8 || found.some(isShort);
    const call = hasTools && !isDone ? read : undefined;
    // The client starts our process beside its first turn. A real model takes longer to answer than that.
    await new Promise((resolve) => setTimeout(resolve, 300));
    sendTurn(response, { call, id: `check_${found.length}`, isStream: body.stream === true });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const close = (): void => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${port}`, results: () => results, close };
}

interface ModelCall {
  readonly name: string;
  readonly input: object;
}

function sendTurn(
  response: ServerResponse,
  { id, call, isStream }: { readonly id: string; readonly call: ModelCall | undefined; readonly isStream: boolean },
): void {
  const block = call === undefined ? { type: "text", text: "Done." } : { type: "tool_use", id: `toolu_${id}`, ...call };
  const stop_reason = call === undefined ? "end_turn" : "tool_use";
  const usage = { input_tokens: 1_000, output_tokens: 10 };
  const message = { id, type: "message", role: "assistant", model: "claude-sonnet-4-5", stop_sequence: null, usage };
  if (!isStream) {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ ...message, content: [block], stop_reason }));
    return;
  }
  const [content_block, delta] =
    call === undefined
      ? [
          { type: "text", text: "" },
          { type: "text_delta", text: "Done." },
        ]
      : [
          { ...block, input: {} },
          { type: "input_json_delta", partial_json: JSON.stringify(call.input) },
        ];
  const events = [
    { type: "message_start", message: { ...message, content: [], stop_reason: null } },
    { type: "content_block_start", index: 0, content_block },
    { type: "content_block_delta", index: 0, delta },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 10 } },
    { type: "message_stop" },
  ];
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const event of events) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  response.end();
}
