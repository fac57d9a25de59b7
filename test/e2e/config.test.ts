import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createSandbox, type Sandbox } from "./run-plimsoll.ts";

let sandbox: Sandbox;
beforeEach(() => {
  sandbox = createSandbox();
});
afterEach(() => sandbox.remove());

test("config shows every value and where it comes from", async () => {
  sandbox.write(
    ".plimsoll/config.yaml",
    "# ours\ncounter: bytes/4\ntools: [codex]\nsession: { tools: { grep: 600 } }\n",
  );
  mkdirSync(join(sandbox.home, ".config/plimsoll"), { recursive: true });
  writeFileSync(join(sandbox.home, ".config/plimsoll/config.yaml"), "title: Mine\ncounter: auto\n");
  const { code, stdout, stderr } = await sandbox.run(["config"]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  await expect(stdout).toMatchFileSnapshot("golden/config.txt");
  const json = JSON.parse((await sandbox.call(["config", "--json"])).stdout);
  expect(json.values).toMatchObject({
    counter: "bytes/4",
    title: "Mine",
    tools: ["codex"],
    session: { tools: { grep: 600 } },
  });
  expect(json.sources).toMatchObject({
    counter: "project .plimsoll/config.yaml:2",
    title: "user ~/.config/plimsoll/config.yaml:1",
    "session.tools.grep": "project .plimsoll/config.yaml:4",
    profile: "default",
  });
});

test("a wrong configuration stops a command that needs it, with file, line and all problems", async () => {
  sandbox.write(".plimsoll/config.yaml", "conter: auto\n\nhistory:\n  keep: many\n");
  for (const args of [["config"], ["count", "-"]]) {
    expect(await sandbox.call(args, { input: "x" })).toEqual({
      code: 1,
      stdout: "",
      stderr: `plimsoll: .plimsoll/config.yaml:1: unknown key "conter". Did you mean "counter"?
.plimsoll/config.yaml:4: "history.keep" must be a whole number, not "many"
`,
    });
  }
  const { code, stdout } = await sandbox.call(["config", "--json"]);
  expect(code).toBe(1);
  expect(JSON.parse(stdout)).toEqual({
    error: {
      code: "invalid_config",
      message: expect.stringContaining('unknown key "conter"'),
      hint: null,
      file: ".plimsoll/config.yaml",
      line: 1,
    },
  });
});

test("a counter that the configuration misspells is named with a suggestion", async () => {
  sandbox.write(".plimsoll/config.yaml", "counter: byte/4\n");
  const { code, stderr } = await sandbox.call(["config"]);
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /config\.yaml:1: "counter" must be one of bytes\/4, .*, not "byte\/4"\. Did you mean "bytes\/4"\?\n$/,
  );
});
