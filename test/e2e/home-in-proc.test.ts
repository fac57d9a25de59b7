// @module-tag deep
/** Below /proc a folder cannot be made, and Linux says that the one around it is missing: Node tries that for ever. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { createSandbox, type Sandbox } from "./run-plimsoll.ts";

let sandbox: Sandbox;
beforeEach(() => {
  sandbox = createSandbox();
  sandbox.write("plan/nebula.toml", '[nebula]\nname = "plan"\n');
  sandbox.write("plan/api.md", '+++\nid = "api"\ntitle = "api"\n+++\nDo it.\n');
});
afterEach(() => sandbox.remove());

test
  .skipIf(process.platform !== "linux")
  .each([
    [["fabric", "add", "note", "a note", "--nebula", "plan"]],
    [["session", "list"]],
    [["sync"]],
    [["sync", "--allow-private"], "company: { source: 'git@localhost:none.git' }\n"],
    [["nebula", "status", "plan"]],
    [["statusline"]],
    [["guard"]],
    [["bill", "."]],
  ])("%j ends where HOME is /proc/self", async (args, config = "") => {
  sandbox.write(".plimsoll/config.yaml", config);
  const env = { HOME: "/proc/self", GIT_SSH_COMMAND: "false" };
  const run = await sandbox.run(args, { env, wrapper: ["timeout", "--signal=KILL", "20"] });
  expect([0, 1], run.stderr).toContain(run.code);
});
