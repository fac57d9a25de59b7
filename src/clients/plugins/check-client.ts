/** `plugin check`: the installed plugin in the real client, in a folder of its own, against a model on loopback that reads
 *  one file again and again. A later result must reach the model shortened. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { countNoun } from "../../core/text/index.ts";
import { exists, findProgram } from "../../host/index.ts";
import type { PluginCheck, PluginPlace } from "./plugin.ts";

/** How to run a client for a check. */
export interface ClientTrial {
  /** The program on PATH. */
  readonly program: string;
  /** The files and folders of the plugin: their paths where it is installed, and below a HOME. All must be there. */
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
  for (const path of Object.keys(installed)) {
    if (await exists(join(root, path))) continue;
    return failed(`the plugin is not installed for this ${scope}. Run "plimsoll plugin install ${id}"`);
  }
  for (const name of [program, "plimsoll"]) {
    if ((await findProgram(name, env)) === undefined) return failed(`${name} is not on PATH`);
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
    const place = { home, env: { PATH: env.PATH, HOME: home, ...trial.env(model.url) } };
    const said = await run(program, ["--version"], place);
    const version = /\d+\.[\w.-]+/.exec(said.stdout || said.stderr)?.[0];
    const { stderr } = await run(program, trial.args, place);
    return { version, ...judge(model.results(), { stderr, partOf: trial.partOf }) };
  } finally {
    model.close();
    rmSync(home, { recursive: true, force: true });
  }
}

const planted = Array.from({ length: 200 }, (_, index) => `planted line ${index + 1}: ${"abcdefgh".repeat(3)}`);

function failed(line: string): PluginCheck {
  return { passed: false, lines: [line] };
}

interface JudgeOptions extends Pick<ClientTrial, "partOf"> {
  readonly stderr: string;
}

function judge(results: readonly string[], { stderr, partOf }: JudgeOptions): Omit<PluginCheck, "version"> {
  const [first = "", ...later] = results;
  if (later.length === 0) {
    const said = stderr.trim().split("\n").at(-1) ?? "";
    return failed(`the client sent ${countNoun(results.length, "result")} to the model. ${said}`.trim());
  }
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

interface Place {
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Long enough for a slow computer, and for a client that retries. */
const timeout = 90_000;

function run(
  program: string,
  args: readonly string[],
  { home, env }: Place,
): Promise<Record<"stdout" | "stderr", string>> {
  return new Promise((resolve) => {
    const options = { cwd: join(home, "project"), env, timeout, maxBuffer: 10_000_000 };
    const child = execFile(program, args, options, (_, stdout, stderr) => resolve({ stdout, stderr }));
    child.stdin?.end();
  });
}

interface Model {
  readonly url: string;
  /** The texts of the tool results in the last request. */
  results(): readonly string[];
  close(): void;
}

/** The client starts our process beside its first turn. A real model takes longer to answer than that. */
const mostReads = 8;
const thinkMs = 300;

/** Speaks as much of Anthropic's Messages as the client needs. */
async function startModel(read: ModelCall): Promise<Model> {
  let results: readonly string[] = [];
  const server = createServer(async (request, response) => {
    const body = await readBody(request);
    if (!request.url?.includes("/messages") || request.url.includes("count_tokens")) {
      response.writeHead(200, { "content-type": "application/json" }).end('{"data":[],"input_tokens":1000}');
      return;
    }
    const found = resultsIn(body);
    if (found.length >= results.length) results = found;
    const hasTools = Array.isArray(body.tools) && body.tools.length > 0;
    const isDone = found.length >= mostReads || found.some(isShort);
    const call = hasTools && !isDone ? read : undefined;
    await new Promise((resolve) => setTimeout(resolve, thinkMs));
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

type Fields = Readonly<Record<string, unknown>>;

async function readBody(request: IncomingMessage): Promise<Fields> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  try {
    return Object(JSON.parse(Buffer.concat(chunks).toString("utf8"))) as Fields;
  } catch {
    return {};
  }
}

function resultsIn({ messages }: Fields): string[] {
  const blocks = (Array.isArray(messages) ? messages : []).flatMap(({ content }) => content) as Fields[];
  return blocks.filter(({ type }) => type === "tool_result").map(({ content }) => textOf(content));
}

function textOf(content: unknown): string {
  return Array.isArray(content) ? content.map(({ text }) => String(text ?? "")).join("\n") : String(content);
}

interface ModelCall {
  readonly name: string;
  readonly input: object;
}

interface Turn {
  readonly id: string;
  readonly call: ModelCall | undefined;
  readonly isStream: boolean;
}

function sendTurn(response: ServerResponse, { id, call, isStream }: Turn): void {
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
