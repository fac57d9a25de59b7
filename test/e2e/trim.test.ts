import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createRequestServer } from "../../src/conversation/sdk/serve-requests.ts";
import { type FormatName, formatNames } from "../../src/core/messages/index.ts";
import { createCounter } from "../../src/core/tokens/index.ts";
import { generateRequest } from "../generate/generate-request.ts";
import { createSandbox, mainFile, type Run, runProcess, type Sandbox } from "./run-plimsoll.ts";

let sandbox: Sandbox;
beforeEach(() => {
  sandbox = createSandbox();
});
afterEach(() => sandbox.remove());

const question = { role: "user", content: "Read both files." };
const readFile = (id: string, content: string): object[] => [
  { role: "assistant", content: [{ type: "tool_use", id, name: "read", input: {} }] },
  { role: "user", content: [{ type: "tool_result", tool_use_id: id, content }] },
];
/** Two results, of which only the second fits into 1,000 tokens. The policy rfc trims to the letter of a text that does not change. */
const history = [question, ...readFile("a", "x".repeat(4_000)), ...readFile("b", "y".repeat(400))];
const trimmed = [question, ...readFile("a", "[trimmed]"), ...readFile("b", "y".repeat(400))];
const tight = ["--window", "1000", "--reserve", "0", "--counter", "bytes/4"];
const rfc = [...tight, "--policy", "rfc", "--keep", "1"];

function trim(input: unknown, ...args: readonly string[]): Promise<Run> {
  return sandbox.call(["trim", ...args], {
    input: typeof input === "string" ? input : JSON.stringify(input),
  });
}

async function statsOf(input: unknown, ...args: readonly string[]): Promise<Record<string, unknown>> {
  const { stdout } = await trim(input, "--json", ...args);
  return JSON.parse(stdout).stats;
}

test("the help is as pinned", async () => {
  const help = await sandbox.call(["trim", "--help"]);
  await expect(help.stdout).toMatchFileSnapshot("golden/help-trim.txt");
});

describe("what is printed", () => {
  test("is the input as it was written, where it fits", async () => {
    const text = '[ {"role":"user", "content":"hi", "id": 12345678901234567890, "n": 1.0} ]\n';
    const run = await sandbox.run(["trim", ...rfc], { input: text });
    expect(run).toEqual({ code: 0, stdout: text, stderr: "" });
    expect(await trim("[]", ...rfc)).toEqual({ code: 0, stdout: "[]\n", stderr: "" });
  });

  test("is a list for a list, over as many lines as before", async () => {
    const run = await trim(history, ...rfc);
    expect(run).toEqual({ code: 0, stdout: `${JSON.stringify(trimmed)}\n`, stderr: "" });
    for (const indent of [2, 4, "\t"]) {
      const { stdout } = await trim(JSON.stringify(history, null, indent), ...rfc);
      expect(stdout).toBe(`${JSON.stringify(trimmed, null, indent)}\n`);
    }
  });

  test("has the cache markers of a wrapped client with --markers, and is otherwise as written", async () => {
    const { request } = generateRequest("anthropic", { seed: 3, turns: 40 });
    const given = { ...request, system: "You look for bugs.", n: 1 };
    const window = ["--window", "60000", "--markers"];
    const { stdout } = await trim(given, ...window);
    const sent = JSON.parse(stdout);
    const unmarked = (value: unknown): unknown =>
      JSON.parse(JSON.stringify(value, (key, each) => (key === "cache_control" ? undefined : each)));
    const { stdout: plain } = await trim(given, ...window.slice(0, 2));
    expect(unmarked(sent.messages)).toEqual(JSON.parse(plain).messages);
    expect(sent).toMatchObject({ model: request.model, tools: request.tools, n: 1 });
    expect(unmarked(sent.system)).toEqual([{ type: "text", text: "You look for bugs." }]);
    const client = createRequestServer({
      contextWindow: 60_000,
      ttl: "5m",
      counter: await createCounter("auto", { model: String(request.model) }),
    });
    expect(sent).toEqual((await client.answer({ request: given })).request);
    const chat = generateRequest("openai", { seed: 3, turns: 5 }).request;
    expect(await trim(chat, ...window)).toMatchObject({ code: 2, stderr: /--markers has no meaning for .* openai/ });
  });

  test("is the same request for a request, with all that is around the messages", async () => {
    const around = '{ "model":"claude-opus-4-5", "n":12345678901234567890, "messages": ';
    const end = ', "metadata": {"user_id": "u"} }';
    const { stdout } = await trim(`${around}${JSON.stringify(history)}${end}`, ...rfc);
    expect(stdout).toBe(`${around}${JSON.stringify(trimmed)}${end}\n`);
  });

  test("is JSON Lines for JSON Lines, behind the line about the transcript", async () => {
    const meta = '{"meta": {"model": "x"}}';
    const lines = (messages: readonly object[]) =>
      [meta, ...messages.map((message) => JSON.stringify(message)), ""].join("\n");
    sandbox.write("session.jsonl", lines(history));
    const run = { code: 0, stdout: lines(trimmed), stderr: "" };
    expect(await sandbox.run(["trim", "session.jsonl", ...rfc])).toEqual(run);
    expect(await trim(lines(history), "-", ...rfc)).toEqual(run);
  });

  test("with --json is messages, metadata and numbers", async () => {
    const { code, stdout } = await trim(history, ...rfc, "--json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      messages: trimmed,
      metadata: { trimmed_up_to_message_index: 3 },
      stats: {
        before: expect.any(Number),
        after: expect.any(Number),
        threshold: 800,
        boundary: 3,
        trimmed: [2],
        epochs: 1,
        overflow: null,
      },
      counter: "bytes/4",
      policy: "rfc",
    });
    const { before, after } = JSON.parse(stdout).stats;
    expect(before - after).toBe(1_000 - 3);
  });

  test("with --stats is the same, and the numbers go to stderr", async () => {
    const { stdout, stderr } = await trim(history, ...rfc, "--stats");
    expect(stdout).toBe(`${JSON.stringify(trimmed)}\n`);
    const stats = await statsOf(history, ...rfc);
    expect(stderr).toBe(`plimsoll: 5 messages, anthropic
before     ${String(stats.before).replace(/(\d)(\d{3})$/, "$1,$2")} tokens
after      ${stats.after} tokens
threshold  800 tokens, by the RFC's own count
boundary   3
trimmed    1 message
epochs     1
counter    bytes/4
policy     rfc
`);
    expect((await trim(history, ...rfc, "--stats", "--quiet")).stderr).toBe(stderr);
    const economic = await trim(history, ...tight, "--stats");
    expect(economic.stderr).toContain("threshold  1,000 tokens\n");
  });
});

describe("every format", () => {
  const deep = process.env.PLIMSOLL_DEEP === "1";
  test.each(formatNames)("%s is recognised and stays valid, with every policy", async (format: FormatName) => {
    const { request } = generateRequest(format, { seed: 7, turns: deep ? 120 : 60 });
    const window = ["--window", "20000", "--reserve", "2000", "--counter", "estimate:claude-3"];
    for (const policy of deep ? ["economic", "gentle", "frugal", "rfc", "rfc-headroom"] : ["economic", "rfc"]) {
      const run = await trim(request, ...window, "--policy", policy, "--stats");
      expect(run.code).toBe(0);
      expect(run.stderr).toContain(` messages, ${format}\n`);
      expect(run.stderr).toContain(`policy     ${policy}\n`);
      const sent = JSON.parse(run.stdout);
      expect(Object.keys(sent)).toEqual(Object.keys(request));
      const valid = await sandbox.call(["validate", "--format", format], { input: run.stdout });
      expect(valid).toMatchObject({ code: 0, stdout: "" });
      expect(run.stdout.length).toBeLessThan(JSON.stringify(request).length / 2);
      const asked = await trim(request, ...window, "--policy", policy, "--format", format);
      expect(asked.stdout).toBe(run.stdout);
    }
  });
});

describe("the budget", () => {
  const tools = [{ name: "read", description: "d".repeat(800), input_schema: { type: "object" } }];
  const wide = ["--window", "100000", "--counter", "bytes/4"];

  test("is the window without reserve, prefix, system text and tools", async () => {
    const thresholdOf = async (input: unknown, ...args: readonly string[]) =>
      Number((await statsOf(input, "--counter", "bytes/4", ...args)).threshold);
    const all = await thresholdOf([question], "--window", "84000", "--reserve", "0");
    expect(await thresholdOf([question], ...wide)).toBe(all);
    const shared = ["--window", "94000", "--reserve", "4000", "--prefix-tokens", "6000"];
    expect(await thresholdOf([question], ...shared)).toBe(all);
    const system = await thresholdOf({ system: "s".repeat(4_000), messages: [question] }, ...wide);
    // System text and tools count in steps of a sixteenth of the window.
    expect(system).toBe(await thresholdOf([question], ...wide, "--prefix-tokens", String(84_000 / 16)));
    const longer = await thresholdOf({ system: "s".repeat(20_000), messages: [question] }, ...wide);
    expect(longer).toBe(system);
    const instructions = "s".repeat(4_000);
    expect(await thresholdOf({ instructions, input: [question] }, ...wide)).toBe(system);
    const withTools = await thresholdOf({ tools, messages: [question] }, ...wide);
    expect(withTools).toBeLessThan(await thresholdOf([question], ...wide, "--prefix-tokens", "200"));
  });

  test("counts the tools of a file as if they were in the request", async () => {
    sandbox.write("tools.json", JSON.stringify(tools));
    sandbox.write("request.json", JSON.stringify({ tools, messages: [question] }));
    const inRequest = await statsOf({ tools, messages: [question] }, ...wide);
    expect(await statsOf([question], ...wide, "--tools", "tools.json")).toEqual(inRequest);
    expect(await statsOf([question], ...wide, "--tools", "request.json")).toEqual(inRequest);
    const both = await trim({ tools, messages: [question] }, ...wide, "--tools", "tools.json");
    expect(both).toMatchObject({ code: 2, stdout: "" });
    expect(both.stderr).toContain("the request already has tools");
  });

  test.each([
    ["7", "tools.json: holds no list of tools"],
    ["[7]", "tools.json: tools[0] must be an object, not a number"],
    ["[\n{]", "tools.json:2: is not JSON"],
  ])("is not guessed where the tools are %j", async (content, message) => {
    sandbox.write("tools.json", content);
    const run = await trim([question], ...wide, "--tools", "tools.json");
    expect(run).toMatchObject({ code: 1, stdout: "" });
    expect(run.stderr).toContain(`plimsoll: ${message}`);
  });
});

describe("the counter", () => {
  const nameOf = async (input: unknown, ...args: readonly string[]) => {
    const run = await trim(input, "--window", "100000", "--json", ...args);
    return [JSON.parse(run.stdout).counter, run.stderr];
  };

  test("is the one asked for, that of the model, the configuration's, that of the request's model, auto", async () => {
    const request = { model: "gpt-4o", messages: [question] };
    const none =
      "plimsoll: no --model given, so tokens are counted with estimate:claude-5, which gives the highest numbers\n";
    expect(await nameOf([question])).toEqual(["estimate:claude-5", none]);
    expect(await nameOf(request)).toEqual(["estimate:o200k", ""]);
    sandbox.write(".plimsoll/config.yaml", "counter: bytes/3.5\n");
    expect(await nameOf(request)).toEqual(["bytes/3.5", ""]);
    expect(await nameOf(request, "--model", "claude-opus-4-5")).toEqual(["estimate:claude-3", ""]);
    expect(await nameOf(request, "--model", "gpt-5", "--counter", "bytes/4")).toEqual(["bytes/4", ""]);
    sandbox.write(".plimsoll/config.yaml", "counter: auto\n");
    expect(await nameOf(request)).toEqual(["estimate:o200k", ""]);
  });
});

test("policy, threshold, keep and reserve come from the configuration", async () => {
  sandbox.write(
    ".plimsoll/config.yaml",
    "history: { policy: rfc, threshold: 0.5, keep: 1, reserve: 200 }\ncounter: bytes/4\n",
  );
  const { stdout } = await trim(history, "--window", "1000", "--json");
  expect(JSON.parse(stdout)).toMatchObject({ policy: "rfc", stats: { threshold: 400, boundary: 3 } });
  const asked = ["--policy", "rfc-headroom", "--threshold", "0.9", "--reserve", "0", "--keep", "0"];
  const { stdout: other } = await trim(history, "--window", "1000", "--json", ...asked);
  expect(JSON.parse(other)).toMatchObject({ policy: "rfc-headroom", stats: { threshold: 900 } });
  // The share is the rfc policies': beside another one it has no effect.
  const { stdout: frugal } = await trim(history, "--window", "1000", "--json", "--policy", "frugal");
  expect(JSON.parse(frugal)).toMatchObject({ policy: "frugal", stats: { threshold: 800 } });
  sandbox.write(".plimsoll/config.yaml", "history: { policy: none }\n");
  const none = await trim(history, ...tight);
  expect(none).toMatchObject({ code: 2, stdout: "" });
  expect(none.stderr).toContain("history.policy is none, which trims nothing. Choose one with --policy: economic");
});

test("a large session is trimmed, from a file and through pipes", async () => {
  const megabytes = process.env.PLIMSOLL_DEEP === "1" ? 60 : 6;
  const turns = Array.from({ length: megabytes * 10 }, (_, index) => {
    return readFile(`t${index}`, `${index} ${"lorem ".repeat(17_300)}`);
  });
  sandbox.write("large.json", JSON.stringify([question, ...turns.flat()], null, 1));
  const window = ["--window", "200000", "--counter", "estimate:claude-3"];
  const run = await sandbox.call(["trim", "large.json", ...window]);
  expect(run).toMatchObject({ code: 0, stderr: "" });
  expect(JSON.parse(run.stdout)[0]).toEqual(question);
  expect(run.stdout.length).toBeLessThan(1_000_000);
  const script = `cat large.json | "${process.execPath}" "${mainFile}" trim ${window.join(" ")} | cat`;
  const piped = await runProcess(["bash", "-c", script], { cwd: sandbox.cwd, env: sandbox.env });
  expect(piped).toEqual(run);
});
