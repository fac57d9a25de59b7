/** One conversation, one `trim` a turn: what a provider's prompt cache would see. */
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { generateRequest } from "../generate/generate-request.ts";
import { generateSession } from "../generate/generate-session.ts";
import { createSandbox, type Run, type Sandbox } from "./run-plimsoll.ts";

let sandbox: Sandbox;
beforeEach(() => {
  sandbox = createSandbox();
});
afterEach(() => sandbox.remove());

const deep = process.env.PLIMSOLL_DEEP === "1";
const turns = deep ? 60 : 24;
const session = generateSession({ seed: 11, turns }).messages;
const options = ["--window", "9000", "--reserve", "1000", "--counter", "bytes/4", "--checkpoint", "c"];

function trim(input: string, ...args: readonly string[]): Promise<Run> {
  return sandbox.call(["trim", ...options, ...args], { input });
}

/** The requests of the session: each ends before a turn of the assistant. */
function requests(): object[][] {
  return session.flatMap((message, index) =>
    message.role === "assistant" && index > 0 ? [session.slice(0, index)] : [],
  );
}

const lines = (messages: readonly object[]) => messages.map((each) => JSON.stringify(each)).join("\n");
const checkpoint = () => readFileSync(join(sandbox.cwd, "c"), "utf8");

test.each(deep ? ["economic", "gentle", "frugal", "rfc-headroom"] : ["economic", "rfc-headroom"])(
  "each output begins with the one before, except where an epoch is told: %s",
  async (policy) => {
    let sent = "";
    let epochs = 0;
    let longest = 0;
    for (const messages of requests()) {
      const run = await trim(lines(messages), "--stats", "--policy", policy);
      expect(run.code).toBe(0);
      const told = Number(/^epochs +(\d+)$/m.exec(run.stderr)?.[1]);
      if (told === epochs) expect(run.stdout.slice(0, sent.length)).toBe(sent);
      else expect(told).toBe(epochs + 1);
      [sent, epochs] = [run.stdout, told];
      longest = Math.max(longest, lines(messages).length);
    }
    expect(epochs).toBeGreaterThan(0);
    expect(longest / 4).toBeGreaterThan(9_000);
  },
);

test("the same history again gives the same bytes and leaves the checkpoint as it is, in any process", async () => {
  const run = (input: string): Promise<Run> => sandbox.run(["trim", ...options], { input });
  const grown = requests();
  await run(lines(grown.at(-3)!));
  const first = await run(lines(grown.at(-1)!));
  const saved = checkpoint();
  expect(await run(lines(grown.at(-1)!))).toEqual(first);
  expect(await trim(lines(grown.at(-1)!))).toEqual(first);
  expect(checkpoint()).toBe(saved);
  expect(JSON.parse(saved)).toMatchObject({ version: 2, policy: "economic" });
  expect(readdirSync(sandbox.cwd)).toEqual(["c"]);
});

test("a request keeps its bytes up to the end of its messages", async () => {
  const { request, messages } = generateRequest("openai", { seed: 3, turns });
  const write = (all: readonly object[]) => JSON.stringify({ ...request, messages: all }, null, 2);
  const news = [
    { role: "assistant", content: "Done." },
    { role: "user", content: "Go on." },
  ];
  const first = await trim(write(messages), "--stats");
  const second = await trim(write([...messages, ...news]), "--stats");
  const [, epochs] = /^epochs +([1-9]\d*)$/m.exec(first.stderr) ?? [];
  expect(epochs).toBeDefined();
  for (const { code, stderr } of [first, second]) {
    expect(code).toBe(0);
    expect(/^epochs +(\d+)$/m.exec(stderr)?.[1]).toBe(epochs);
  }
  const end = first.stdout.lastIndexOf("\n  ]");
  expect(second.stdout.slice(0, end)).toBe(first.stdout.slice(0, end));
  expect(JSON.parse(second.stdout).messages.slice(-2)).toEqual(news);
});

describe("the checkpoint stays as it is", () => {
  test.each([
    ["", "c:1: is not JSON: unexpected end of JSON input. Move it away"],
    ["null\n", "c: is not a checkpoint. Move it away"],
    ['{"version": 1', "c:1: is not JSON"],
    ["[]", "c: checkpoint must be an object. Start without the checkpoint"],
    ['{"version":3}', "c: checkpoint.version is 3; this version reads 2"],
    [
      '{"version":2,"policy":"economic","ledger":{"epochs":[{"boundary":-1}]}}',
      "c: checkpoint.ledger.epochs[0].boundary must be a whole number",
    ],
  ])("when it is broken: %j", async (content, message) => {
    sandbox.write("c", content);
    const run = await trim(lines(session.slice(0, 3)));
    expect(run).toMatchObject({ code: 1, stdout: "" });
    expect(run.stderr).toContain(`plimsoll: ${message}`);
    expect(checkpoint()).toBe(content);
  });

  test("when the history is malformed or cannot fit", async () => {
    const long = JSON.stringify({ role: "user", content: "z".repeat(60_000) });
    for (const input of [`${long}\n${long}`, `${lines(session.slice(0, 4))}\n7`]) {
      expect(await trim(input)).toMatchObject({ code: 1, stdout: "" });
      expect(existsSync(join(sandbox.cwd, "c"))).toBe(false);
    }
    await trim(lines(requests().at(-1)!));
    const saved = checkpoint();
    expect(await trim(long)).toMatchObject({ code: 1, stdout: "" });
    expect(checkpoint()).toBe(saved);
  });

  test("when it cannot be written: then nothing is printed", async () => {
    mkdirSync(join(sandbox.cwd, "folder"));
    const run = await trim(lines(session.slice(0, 3)), "--checkpoint", "folder");
    expect(run).toEqual({
      code: 1,
      stdout: "",
      stderr: "plimsoll: folder: is a directory, not a file. Move it away.\n",
    });
  });
});

test("metadata of the RFC, in the checkpoint or in the request, says where trimming starts", async () => {
  const messages = session.slice(0, 9);
  const metadata = { trimmed_up_to_message_index: 4 };
  const args = ["--policy", "rfc", "--format", "anthropic", "--json", "--window", "200000", "--counter", "bytes/4"];
  const sent = async (input: object, ...more: string[]) => {
    const { code, stdout } = await sandbox.call(["trim", ...args, ...more], { input: JSON.stringify(input) });
    expect(code).toBe(0);
    const { messages, metadata } = JSON.parse(stdout) as { messages: object[]; metadata: object };
    return { text: JSON.stringify(messages.slice(0, 4)), metadata };
  };
  expect((await sent({ messages })).text).not.toContain("[trimmed]");
  const requested = await sent({ messages, metadata });
  expect(requested).toEqual({ text: expect.stringContaining("[trimmed]"), metadata });
  sandbox.write("m.json", JSON.stringify(metadata));
  expect(await sent({ messages }, "--checkpoint", "m.json")).toEqual(requested);
  expect(await sent({ messages }, "--checkpoint", "m.json")).toEqual(requested);
});
