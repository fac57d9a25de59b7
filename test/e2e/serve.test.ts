/** `plimsoll serve` as a program in another language meets it: lines on stdio, and HTTP. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { request as httpRequest, type RequestOptions } from "node:http";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { startProvider } from "../../scripts/provider/provider.mjs";
import { generateRequest } from "../generate/generate-request.ts";
import { createSandbox, mainFile, runProcess, type Sandbox } from "./run-plimsoll.ts";

let sandbox: Sandbox;
const children: ChildProcess[] = [];
beforeEach(() => {
  sandbox = createSandbox();
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  sandbox.remove();
});

const request = { model: "claude-sonnet-5", max_tokens: 1_000, messages: [{ role: "user", content: "hi" }] };

function answersIn(stdout: string): Record<string, unknown>[] {
  return stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

test("serve has its help frozen", async () => {
  const help = await sandbox.call(["serve", "--help"]);
  await expect(help.stdout).toMatchFileSnapshot("golden/help-serve.txt");
});

describe("on stdio", () => {
  test("answers each line, also after a broken one, and ends with its input", async () => {
    const lines = [JSON.stringify({ id: 1, request }), "{ broken", "", JSON.stringify({ id: 2, call: "c9" })];
    const { code, stdout } = await sandbox.run(["serve"], { input: lines.join("\n") });
    expect(code).toBe(0);
    const answers = answersIn(stdout);
    expect(answers).toHaveLength(3);
    expect(answers.find(({ id }) => id === 1)).toMatchObject({ call: "c1", request: { model: "claude-sonnet-5" } });
    expect(answers.find(({ id }) => id === 2)).toHaveProperty("error.code", "invalid_argument");
    expect(answers.find(({ id }) => id === undefined)).toHaveProperty("error.code", "unreadable_input");
  });

  test("reads a line of 65 MB away and goes on", { tags: ["deep"] }, async () => {
    const huge = JSON.stringify({ request: { ...request, padding: "x".repeat(65 << 20) } });
    const { code, stdout } = await sandbox.run(["serve"], { input: `${huge}\n${JSON.stringify({ id: 1, request })}` });
    expect(code).toBe(0);
    const [first, second] = answersIn(stdout);
    expect(first).toHaveProperty("error.message", expect.stringContaining("more than"));
    expect(second).toHaveProperty("id", 1);
  });

  test("ends when nobody reads its answers", async () => {
    const child = spawn(process.execPath, [mainFile, "serve"], {
      cwd: sandbox.cwd,
      env: sandbox.env,
      stdio: ["pipe", "pipe", "pipe"],
    });
    children.push(child);
    child.stdin.on("error", () => undefined);
    child.stdout.destroy();
    const writing = setInterval(() => child.stdin.write(`${JSON.stringify({ id: 1, request })}\n`), 50);
    const [code] = await once(child, "exit").finally(() => clearInterval(writing));
    expect(code).toBe(0);
  });

  test("goes on from memory if its store cannot be opened", async () => {
    sandbox.write("state.db", "this is no database, and it is long enough to be taken for one".repeat(100));
    const args = ["serve", "--store", join(sandbox.cwd, "state.db")];
    const { code, stdout, stderr } = await sandbox.run(args, { input: JSON.stringify({ id: 1, request }) });
    expect(code).toBe(0);
    expect(answersIn(stdout)[0]).toHaveProperty("call", "c1");
    expect(stderr).toContain("State stays in memory");
  });

  test("goes on after a message that can be read but not written back", async () => {
    const { code, stdout } = await sandbox.run(["serve"], { input: `${deep}\n${JSON.stringify({ id: 1, request })}` });
    expect(code).toBe(0);
    const answers = answersIn(stdout);
    expect(answers.find(({ id }) => id === 1)).toHaveProperty("call");
    expect(answers.find(({ id }) => id === undefined)).toHaveProperty("error.code", "internal");
  });

  test("refuses options that need HTTP", async () => {
    expect(await sandbox.call(["serve", "--no-token"])).toMatchObject({ code: 2, stderr: /needs --http/ });
  });
});

/** JSON.parse reads it, and JSON.stringify runs out of stack. */
const deep = `{"id":${"[".repeat(100_000)}${"]".repeat(100_000)}}`;

interface Served {
  readonly port: number;
  readonly token: string;
  readonly child: ChildProcess;
}

async function startServer(...args: string[]): Promise<Served> {
  const child = spawn(process.execPath, [mainFile, "serve", "--http", "0", ...args], {
    cwd: sandbox.cwd,
    env: sandbox.env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  children.push(child);
  let stderr = "";
  child.stderr?.on("data", (text) => {
    stderr += text;
  });
  await expect.poll(() => stderr).toMatch(/serving on http/);
  const port = Number(/127\.0\.0\.1:(\d+)/.exec(stderr)![1]);
  const token = readFileSync(join(sandbox.home, ".local/state/plimsoll/serve-token"), "utf8").trim();
  expect(stderr).not.toContain(token);
  return { port, token, child };
}

function post(
  { port, token }: Served,
  path: string,
  { body = "", headers = {}, ...options }: RequestOptions & { body?: string } = {},
): Promise<{ status: number | undefined; json: Record<string, unknown> }> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(
      {
        ...{ host: "127.0.0.1", port, path, method: "POST", ...options },
        headers: { authorization: `Bearer ${token}`, ...(headers as object) },
      },
      (response) => {
        let text = "";
        response.on("data", (part) => {
          text += part;
        });
        response.on("end", () => resolve({ status: response.statusCode, json: JSON.parse(text) }));
      },
    );
    sent.on("error", reject).end(body);
  });
}

describe("over HTTP", () => {
  test("answers calls and compression, and says what is wrong", async () => {
    const server = await startServer("--window", "40000");
    const fitted = await post(server, "/v1/calls", { body: JSON.stringify({ request }) });
    expect(fitted).toMatchObject({ status: 200, json: { call: "c1" } });
    const usage = { input_tokens: 20, output_tokens: 1 };
    const ended = await post(server, "/v1/calls", { body: JSON.stringify({ call: "c1", usage }) });
    expect(ended).toMatchObject({ status: 200, json: { event: { sentTokens: 20 } } });
    const { messages } = generateRequest("openai", { seed: 4, turns: 80 });
    const body = JSON.stringify({ model: "claude-sonnet-5", messages });
    const compressed = await post(server, "/v1/compress", { body });
    expect(compressed.status).toBe(200);
    expect(compressed.json.tokens_after).toBeLessThan(40_000);
    // A gateway sends the whole history again each time, and must get the same bytes.
    expect((await post(server, "/v1/compress", { body })).json).toEqual(compressed.json);

    const wrong = { headers: { authorization: "Bearer wrong-token-wrong-token" } };
    expect(await post(server, "/v1/calls", { body, ...wrong })).toMatchObject({ status: 401 });
    expect(await post(server, "/v1/calls", { body: "{" })).toMatchObject({ status: 400 });
    expect(await post(server, "/v1/calls", { body: "7" })).toMatchObject({ status: 400 });
    expect(await post(server, "/v1/compress", { body: "{}" })).toMatchObject({ status: 400 });
    expect(await post(server, "/v1/other")).toMatchObject({ status: 404 });
    expect(await post(server, "/v1/calls", { method: "GET" })).toMatchObject({ status: 405 });
    expect(await post(server, "/health", { method: "GET", headers: { authorization: "" } })).toMatchObject({
      status: 200,
    });
    const foreign = { headers: { origin: "http://pages.example" } };
    expect(await post(server, "/v1/calls", { body, ...foreign })).toMatchObject({ status: 403 });
    const rebound = { headers: { host: "pages.example" } };
    expect(await post(server, "/v1/calls", { body, ...rebound })).toMatchObject({ status: 403 });
    const large = { headers: { "content-length": String(65 << 20) } };
    expect(await post(server, "/v1/calls", large).catch(() => ({ status: 413 }))).toMatchObject({ status: 413 });
    server.child.kill("SIGTERM");
    expect((await once(server.child, "exit"))[0]).toBe(0);
  });

  test("survives a message that can be read but not written back", async () => {
    const server = await startServer();
    expect(await post(server, "/v1/calls", { body: deep })).toMatchObject({ status: 500 });
    expect(await post(server, "/v1/calls", { body: JSON.stringify({ request }) })).toMatchObject({ status: 200 });
  });

  test("survives clients that disappear", async () => {
    const server = await startServer();
    for (let attempt = 0; attempt < 5; attempt++) {
      const gone = httpRequest({
        ...{ host: "127.0.0.1", port: server.port, path: "/v1/calls", method: "POST" },
        headers: { authorization: `Bearer ${server.token}`, "content-length": "100000" },
      });
      gone.on("error", () => undefined).write('{"request":');
      await new Promise((resolve) => setTimeout(resolve, 20));
      gone.destroy();
    }
    expect(await post(server, "/v1/calls", { body: JSON.stringify({ request }) })).toMatchObject({ status: 200 });
  });
});

const python = findPython();

test.skipIf(python === undefined)("an agent in Python runs past its window, and its usage is learned", async () => {
  const provider = await startProvider({
    answer: ({ number }) =>
      number <= 40
        ? { calls: [{ name: "read", input: { path: `src/file-${number}.ts` } }] }
        : { text: "No bug is left." },
    contextWindow: 20_000,
  });
  try {
    const program = join(import.meta.dirname, "../../examples/serve/agent.py");
    const { code, stdout, stderr } = await runProcess([python!, program, provider.url], {
      env: { ...sandbox.env, PLIMSOLL: `${process.execPath} ${mainFile}` },
    });
    expect(stderr).toBe("");
    expect(code).toBe(0);
    expect(stdout).toMatch(/^41 calls, \d+ trims, \$\d+\.\d\d\. No bug is left\.$/m);
    expect(provider.refusals()).toEqual([]);
  } finally {
    await provider.close();
  }
});

function findPython(): string | undefined {
  try {
    execFileSync("python3", ["--version"], { stdio: "ignore" });
    return "python3";
  } catch {
    console.warn("python3 is not installed: the test of the Python agent is skipped");
    return undefined;
  }
}
