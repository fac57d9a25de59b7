import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createSandbox, mainFile, runProcess, type Sandbox } from "./run-plimsoll.ts";

let sandbox: Sandbox;
beforeEach(() => {
  sandbox = createSandbox();
});
afterEach(() => sandbox.remove());

const user = { role: "user", content: "list" };
const call = { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "ls", input: {} }] };
const result = { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: "a.ts" }] };
const stray = { role: "user", content: [{ type: "tool_result", tool_use_id: "t9", content: "b.ts" }] };

test("the help is as pinned", async () => {
  const help = await sandbox.call(["validate", "--help"]);
  await expect(help.stdout).toMatchFileSnapshot("golden/help-validate.txt");
});

test("what is valid gives a note and nothing else", async () => {
  sandbox.write("h.json", JSON.stringify([user, call, result]));
  expect(await sandbox.call(["validate", "h.json"])).toEqual({
    code: 0,
    stdout: "",
    stderr: "plimsoll: valid: 3 messages, anthropic\n",
  });
  expect(await sandbox.call(["validate", "h.json", "--quiet"])).toEqual({ code: 0, stdout: "", stderr: "" });
  expect((await sandbox.call(["validate", "h.json", "--json"])).stdout).toBe("[]\n");
});

test("each problem is a line with path, rule and message, and the exit code is 1", async () => {
  sandbox.write("h.json", JSON.stringify([user, call, stray]));
  expect(await sandbox.run(["validate", "h.json"])).toEqual({
    code: 1,
    stdout: `path                                rule             message
messages[1].content[0].id           unanswered-call  "t1" has no tool_result in the next message
messages[2].content[0].tool_use_id  orphan-result    answers no call of the previous turn: "t9" is not the id of any call
`,
    stderr: "plimsoll: 2 problems in 3 messages, anthropic\n",
  });
});

test("JSON is an array of problems", async () => {
  sandbox.write("h.json", JSON.stringify({ messages: [user, { role: "assistant" }], tools: 7 }));
  const { code, stdout } = await sandbox.call(["validate", "h.json", "--json"]);
  expect(code).toBe(1);
  expect(JSON.parse(stdout)).toEqual([
    { path: "tools", rule: "shape", message: "must be an array, not a number", severity: "error" },
    {
      path: "messages[1].content",
      rule: "shape",
      message: "must be a string or an array, not undefined",
      severity: "error",
    },
  ]);
});

test("JSON Lines and requests are read from a file and from standard input", async () => {
  const lines = [{ meta: { model: "x" } }, user, call, result].map((each) => JSON.stringify(each)).join("\n");
  sandbox.write("session.jsonl", lines);
  const note = "plimsoll: valid: 3 messages, anthropic\n";
  expect((await sandbox.call(["validate", "session.jsonl"])).stderr).toBe(note);
  expect((await sandbox.run(["validate", "-"], { input: lines })).stderr).toBe(note);
  expect((await sandbox.run(["validate"], { input: lines })).stderr).toBe(note);
  const request = JSON.stringify({ model: "gpt-5", input: "hi" });
  expect((await sandbox.run(["validate"], { input: request })).stderr).toBe("plimsoll: valid: 0 messages, responses\n");
});

test("every format can be asked for, and auto recognises them", async () => {
  const tool_calls = [{ id: "c1", type: "function", function: { name: "ls", arguments: "{}" } }];
  const openai = [user, { role: "assistant", content: null, tool_calls }, user];
  const responses = [user, { type: "function_call", call_id: "c1", name: "ls", arguments: "{}" }, user];
  const part = { type: "tool-call", toolCallId: "c1", toolName: "ls", input: {} };
  const sdk = [user, { role: "assistant", content: [part] }, user];
  const rfc = [user, { role: "assistant", content: [{ type: "tool_use", id: "c1", name: "ls", args: {} }] }, user];
  const paths = {
    openai: "messages[1].tool_calls[0].id",
    responses: "messages[1].call_id",
    "ai-sdk": "messages[1].content[0].toolCallId",
    rfc: "messages[1].content[0].id",
  };
  const inputs = { openai, responses, "ai-sdk": sdk, rfc };
  for (const [format, path] of Object.entries(paths)) {
    const input = JSON.stringify(inputs[format as keyof typeof inputs]);
    for (const asked of [format, "auto"]) {
      const { code, stdout, stderr } = await sandbox.call(["validate", "--format", asked, "--json"], {
        input,
      });
      expect(code).toBe(1);
      expect(JSON.parse(stdout)).toMatchObject([{ path, rule: "unanswered-call" }]);
      expect(stderr).toBe(`plimsoll: 1 problem in 3 messages, ${format}\n`);
    }
  }
});

test("strict mode also tells what sources disagree about", async () => {
  sandbox.write("h.json", JSON.stringify([user, user]));
  expect((await sandbox.call(["validate", "h.json"])).code).toBe(0);
  const strict = await sandbox.call(["validate", "h.json", "--strict"]);
  expect(strict.code).toBe(1);
  expect(strict.stdout).toContain(
    'messages[1].role  alternation  is "user", the same as in messages[0]; roles must alternate\n',
  );
});

test.each([
  ["", "in: is empty. It should hold messages as JSON."],
  ["null", "in: holds null, not messages. It should be a list of messages, a request with messages, input or contents"],
  ["7", "in: holds a number, not messages."],
  ['[\n{"role": "user",\n', "in:2: is not JSON: expected double-quoted property name"],
  [Buffer.from([0xff, 0, 1]), "in: binary file"],
  [Buffer.from("[\n\xfc]", "latin1"), "in: invalid UTF-8 in line 2: convert it first"],
])("what holds no messages is an error with the file: %j", async (content, message) => {
  sandbox.write("in", content);
  const { code, stdout, stderr } = await sandbox.call(["validate", "in"]);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toContain(`plimsoll: ${message}`);
  const json = JSON.parse((await sandbox.call(["validate", "in", "--json"])).stdout);
  expect(json.error).toMatchObject({ code: "unreadable_input", file: "in" });
});

test("requests of a conversation are checked together, and only validate takes them", async () => {
  const model = "claude-opus-5-5";
  const thinking = { type: "thinking", thinking: "so", signature: "c2ln" };
  const answer = { role: "assistant", content: [thinking, { type: "text", text: "Done." }] };
  const ask = (text: string) => ({ model, max_tokens: 9, system: text, messages: [user, answer, user] });
  const asked = { model, max_tokens: 9, system: "Monday", messages: [user] };
  sandbox.write("in.jsonl", [asked, ask("Monday")].map((each) => JSON.stringify(each)).join("\n"));
  expect(await sandbox.call(["validate", "in.jsonl"])).toMatchObject({
    code: 0,
    stderr: "plimsoll: valid: 2 requests\n",
  });
  sandbox.write("in.json", JSON.stringify([asked, ask("Tuesday")]));
  const { code, stdout, stderr } = await sandbox.call(["validate", "in.json"]);
  expect({ code, stderr }).toEqual({ code: 1, stderr: "plimsoll: 1 problem in 2 requests\n" });
  expect(stdout).toContain(
    "[1].messages[1].content[0]  thinking-bound  is bound to other text: the system text changed",
  );
  const trimmed = await sandbox.call(["trim", "--window", "100000", "in.json"]);
  expect(trimmed.stderr).toContain("holds 2 requests, but only one can be read. Write one of them to a separate file.");
});

test.each([
  [
    { timestamp: "2026-01-01T00:00:00Z", type: "response_item", payload: { type: "message", role: "user" } },
    "this is a Codex session, not a list of messages. Use plimsoll replay, which reads those.",
  ],
  [
    { type: "user", uuid: "u", sessionId: "s", message: user },
    "this is a Claude Code session, not a list of messages. Use plimsoll replay, which reads those.",
  ],
  [{ level: "info" }, "holds 300 lines but no message. It should be a list of messages"],
])("lines of something else are told in one line: %j", async (line, message) => {
  sandbox.write("in.jsonl", `${JSON.stringify(line)}\n`.repeat(300));
  for (const command of [["validate"], ["trim", "--window", "100000"]]) {
    const { code, stdout, stderr } = await sandbox.call([...command, "in.jsonl"]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr.startsWith(`plimsoll: in.jsonl: ${message}`)).toBe(true);
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  }
});

test.each([
  [["validate", "none.json"], 1, "none.json: no such file or directory"],
  [["validate", "."], 1, "is a directory"],
  [["validate"], 2, 'FILE is missing. Name a file, or pipe messages in ("-").'],
  [["validate", "a", "b"], 2, 'unexpected argument "b"'],
  [["validate", "--format", "xml"], 2, '--format is "xml"'],
  [["validate", "--stirct"], 2, 'Did you mean "--strict"?'],
])("%j fails in its own words", async (args, expected, message) => {
  const { code, stdout, stderr } = await sandbox.call(args);
  expect({ code, stdout }).toEqual({ code: expected, stdout: "" });
  expect(stderr).toContain(message);
});

test("ids cannot break the table or steer the terminal", async () => {
  const odd = {
    role: "user",
    content: [{ type: "tool_result", tool_use_id: "a\n\u001b[31m\u202e", content: "" }],
  };
  sandbox.write("h.json", JSON.stringify([odd]));
  const { stdout } = await sandbox.call(["validate", "h.json"]);
  expect(stdout.split("\n")).toHaveLength(4);
  expect(stdout).not.toContain("\u001b");
});

test("a large session is read whole, from a file and through a pipe", async () => {
  const megabytes = process.env.PLIMSOLL_DEEP === "1" ? 60 : 6;
  const turns = Array.from({ length: megabytes * 10 }, (_, index) => [
    { role: "assistant", content: [{ type: "tool_use", id: `t${index}`, name: "read", input: {} }] },
    {
      role: "user",
      content: [{ type: "tool_result", tool_use_id: `t${index}`, content: "x".repeat(104_000) }],
    },
  ]);
  sandbox.write("large.json", JSON.stringify([user, ...turns.flat()]));
  const note = `plimsoll: valid: ${(megabytes * 20 + 1).toLocaleString("en")} messages, anthropic\n`;
  expect(await sandbox.call(["validate", "large.json"])).toEqual({ code: 0, stdout: "", stderr: note });
  const script = `cat large.json | "${process.execPath}" "${mainFile}" validate`;
  const piped = await runProcess(["bash", "-c", script], { cwd: sandbox.cwd, env: sandbox.env });
  expect(piped).toEqual({ code: 0, stdout: "", stderr: note });
});

test("paths are relative to here", async () => {
  sandbox.write("d/h.json", "nonsense");
  const { stderr } = await sandbox.call(["validate", join(sandbox.cwd, "d/h.json")], {
    cwd: join(sandbox.cwd, "d"),
  });
  expect(stderr).toBe("plimsoll: h.json: is not JSON: unexpected token 'o'\n");
});
