import { truncateSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createSandbox, type Run, type Sandbox } from "./run-plimsoll.ts";

let sandbox: Sandbox;
beforeEach(() => {
  sandbox = createSandbox();
});
afterEach(() => sandbox.remove());

const question = { role: "user", content: "Read the file." };
const answer = [{ type: "tool_result", tool_use_id: "a", content: "x".repeat(4_000) }];
const history = [
  question,
  { role: "assistant", content: [{ type: "tool_use", id: "a", name: "read", input: {} }] },
  { role: "user", content: answer },
  { role: "assistant", content: "Done." },
  question,
];
const tight = ["--window", "1000", "--reserve", "0", "--counter", "bytes/4"];

function trim(input: unknown, ...args: readonly string[]): Promise<Run> {
  return sandbox.call(["trim", ...args], { input: JSON.stringify(input) });
}

describe("what cannot fit", () => {
  const long = [{ role: "user", content: "z".repeat(8_000) }, ...history.slice(1)];

  test("is an error that names the largest, and nothing is printed", async () => {
    sandbox.write("h.json", JSON.stringify(long));
    const run = await sandbox.run(["trim", "h.json", ...tight, "--stats"]);
    expect(run).toMatchObject({ code: 1, stdout: "" });
    expect(run.stderr).toMatch(
      /^plimsoll: h\.json: cannot be trimmed to fit: 2,\d+ tokens remain, but at most 1,000 fit \(--window 1000, 0 for the answer\); largest: messages\[0\] \(user text, 2,000\), .*\. Shorten the largest messages, or use a model with a larger window\.\n$/,
    );
    const json = await sandbox.run(["trim", "h.json", ...tight, "--json"]);
    expect(json.code).toBe(1);
    expect(JSON.parse(json.stdout).error).toMatchObject({ code: "context_overflow", file: "h.json" });
  });

  test("tells what system text and tools take of the window", async () => {
    const request = { input: "z".repeat(8_000), instructions: "s".repeat(400) };
    const run = await trim(request, ...tight);
    expect(run).toMatchObject({ code: 1, stdout: "" });
    expect(run.stderr).toMatch(
      /\(--window 1000, 0 for the answer, 1\d\d for system text and tools\); largest: input\[0\] \(/,
    );
    const wide = await trim(request, "--window", "1000", "--reserve", "0", "--prefix-tokens", "900");
    expect(wide.stderr).toContain(
      "at most 0 fit (--window 1000, 0 for the answer, at least 1,000 for the prefix, system text and tools)",
    );
  });

  test("tells of the reserve where a lower one helps, and then it does", async () => {
    const advice = "Shorten the largest messages, lower --reserve, or use a model with a larger window.\n";
    const window = ["--window", "9000", "--counter", "bytes/4"];
    const run = await trim(long, ...window, "--reserve", "8000");
    expect(run).toMatchObject({ code: 1, stdout: "" });
    expect(run.stderr).toContain(advice);
    expect(await trim(long, ...window, "--reserve", "4000")).toMatchObject({ code: 0, stderr: "" });
    const hopeless = await trim(long, "--window", "1500", "--counter", "bytes/4", "--reserve", "100");
    expect(hopeless.stderr).toContain("Shorten the largest messages, or use a model with a larger window.\n");
  });

  test.each(["rfc", "rfc-headroom"])("is said and printed with the policy %s", async (policy) => {
    const run = await trim(long, ...tight, "--policy", policy, "--keep", "0", "--quiet");
    expect(run.code).toBe(0);
    expect(JSON.parse(run.stdout)[2].content[0].content).toBe("[trimmed]");
    expect(run.stderr).toMatch(
      /^plimsoll: -: still too large: 2,\d+ tokens by the RFC's own count are left, the threshold is 800; largest by bytes\/4: messages\[0\] \(user text, 2,000\)/,
    );
    const { stdout } = await trim(long, ...tight, "--policy", policy, "--json");
    expect(JSON.parse(stdout).stats).toMatchObject({
      overflow: {
        limit: 800,
        largest: [{ path: "messages[0]", role: "user", kind: "text", tokens: 2_000 }, {}, {}],
      },
    });
  });
});

describe("what is malformed", () => {
  test.each([
    [[question, 7], "messages[1] must be an object, not a number"],
    [[question, { role: "assistant" }], "messages[1].content must be a string or an array, not undefined"],
    [{ input: [{ role: "user", content: [{ text: "hi" }] }] }, "input[0].content[0].type must be a string"],
    [{ messages: null, input: [] }, "messages must be an array, not null"],
    [{ input: { a: 1 } }, "input must be an array, not an object"],
    [{ messages: [question], tools: {} }, "tools must be an array, not an object"],
    [{ messages: [question], system: 7 }, "system must be a string or an array"],
    [{ input: [question], instructions: 7 }, "instructions must be a string or an array"],
  ])("is an error with its path, and nothing is printed: %j", async (input, message) => {
    sandbox.write("h.json", JSON.stringify(input));
    const { code, stdout, stderr } = await sandbox.call(["trim", "h.json", ...tight]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toContain(`plimsoll: h.json: ${message}`);
  });

  test("is told to programs, too", async () => {
    const { code, stdout } = await trim([7], ...tight, "--json");
    expect(code).toBe(1);
    const message = "messages[0] must be an object, not a number";
    expect(JSON.parse(stdout)).toEqual({
      error: { code: "invalid_message", message, hint: null, file: "-" },
    });
  });

  test.each([
    ["", "in: is empty"],
    ["null", "in: holds null, not messages"],
    ['[{"role":', "in:1: is not JSON: unexpected end of JSON input"],
    [Buffer.from([0, 1, 2]), "in: binary file"],
  ])("is an error with the file where there are no messages: %j", async (content, message) => {
    sandbox.write("in", content);
    const run = await sandbox.call(["trim", "in", ...tight]);
    expect(run).toMatchObject({ code: 1, stdout: "" });
    expect(run.stderr).toContain(`plimsoll: ${message}`);
  });
});

test.each([
  [[], "--window is missing. Name the model's limit in tokens, such as --window 200000."],
  [["--window", "0"], '--window is "0". Use a whole number of at least 1.'],
  [["--window", "-5"], '--window is "-5"'],
  [["--window", "64k"], '--window is "64k"'],
  [["--window", "9", "--reserve", "1.5"], '--reserve is "1.5". Use a whole number of at least 0.'],
  [["--window", "9", "--prefix-tokens", "x"], '--prefix-tokens is "x"'],
  [["--window", "9", "--keep", "-1"], '--keep is "-1"'],
  [["--window", "9", "--threshold", "0.5"], "--threshold has no meaning for the policy economic."],
  [["--window", "9", "--policy", "frugal", "--threshold", "0.5"], "It belongs to rfc and rfc-headroom."],
  [["--window", "9", "--policy", "rfc", "--threshold", "80"], '--threshold is "80". Use a share'],
  [["--window", "9", "--policy", "rfc", "--threshold", "half"], '--threshold is "half"'],
  [["--window", "9", "--policy", "none"], '--policy is "none"'],
  [["--window", "9", "--format", "xml"], '--format is "xml"'],
  [["--window", "9", "--counter", "bytes/5"], '--counter is "bytes/5"'],
  [["--window", "9", "--widnow", "9"], 'Did you mean "--window"?'],
  [
    ["--window", "16000", "--reserve", "16000"],
    "the reserve of 16,000 takes the whole window of 16,000. Lower --reserve.",
  ],
  [
    ["--window", "20000", "--reserve", "16000", "--prefix-tokens", "4000", "--policy", "rfc"],
    "the reserve of 16,000 and the prefix of 4,000 take the whole window of 20,000. Lower --reserve or --prefix-tokens.",
  ],
])("%j is wrong usage", async (args, message) => {
  sandbox.write("h.json", JSON.stringify(history));
  const run = await sandbox.call(["trim", "h.json", ...args]);
  expect(run).toMatchObject({ code: 2, stdout: "" });
  expect(run.stderr).toContain(message);
});

test("without input it says so", async () => {
  expect(await sandbox.call(["trim", ...tight])).toMatchObject({ code: 2, stdout: "" });
});

test("more than can be read is refused", async () => {
  sandbox.write("huge.json", "[".padEnd(10_000));
  truncateSync(join(sandbox.cwd, "huge.json"), 101 * 1024 * 1024);
  const run = await sandbox.call(["trim", "huge.json", ...tight]);
  expect(run).toMatchObject({ code: 1, stdout: "" });
  expect(run.stderr).toContain(
    "huge.json: 101 MB, a history above 100 MB is not read. Remove its oldest messages first\n",
  );
});
