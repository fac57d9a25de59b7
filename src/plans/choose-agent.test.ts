import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { ContextError } from "../core/errors.ts";
import { checkAgentCommand, chooseAgent } from "./choose-agent.ts";

const root = mkdtempSync(join(tmpdir(), "plimsoll-presets-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));
mkdirSync(join(root, "bin"));
for (const name of ["codex", "pi", "not-runnable"]) writeFileSync(join(root, "bin", name), "#!/bin/sh\n");
for (const name of ["codex", "pi"]) chmodSync(join(root, "bin", name), 0o755);
for (const name of ["here.sh", "draft.sh"]) writeFileSync(join(root, name), "#!/bin/sh\n");
chmodSync(join(root, "here.sh"), 0o755);
const advice = "Install it, or name another.";
const env = { PATH: `${join(root, "bin")}:${process.env.PATH}` };

test.each([
  "codex exec -",
  "bin/codex",
  "./bin/codex; true",
  "cat",
  "cd / && ls",
  "if true; then no-such; fi",
  "FOO=1 no-such",
  '"no such"',
  "$AGENT",
  "{ no-such; }",
  "  cat",
])("a command that may run is let through: %s", async (line) => {
  await checkAgentCommand(line, { cwd: root, env, advice });
});

test.each([
  "no-such-agent -p",
  "  no-such-agent",
  "no-such-agent|cat",
  "not-runnable",
  "bin/not-runnable",
  "./bin",
  "bin/missing",
  "/no/such",
  " ",
  "a\0b",
])("a command that cannot run is refused: %j", async (line) => {
  const check = checkAgentCommand(line, { cwd: root, env, advice });
  await expect(check).rejects.toThrow(ContextError);
  await expect(check).rejects.toMatchObject({ code: "usage" });
});

test.each([
  ["no-such-agent", "there is no such program on PATH", "Install it, or name another"],
  ["bin/missing", `there is no such program, seen from ${root}`, "Install it, or name another"],
  ["/no/such", "there is no such program", "Install it, or name another"],
  ["./bin", `${join(root, "bin")} is not a file`, "Install it, or name another"],
  ["bin/not-runnable", `${join(root, "bin/not-runnable")} is not executable`, "chmod +x "],
  ["not-runnable", `${join(root, "bin/not-runnable")} is not executable`, "chmod +x "],
  ["here.sh -p", "there is no such program on PATH", `There is one in ${root}: name it "./here.sh".`],
  ["draft.sh", "there is no such program on PATH", `name it "./draft.sh", after chmod +x `],
])("an error says why %s cannot run and what to do", async (line, reason, hint) => {
  await expect(checkAgentCommand(line, { cwd: root, env, advice })).rejects.toMatchObject({
    message: `the agent's command "${line.split(" ")[0]}" cannot be run: ${reason}`,
    hint: expect.stringContaining(hint),
  });
});

test("gemini's trust depends on the folder of each start, which an agent may have written to", async () => {
  mkdirSync(join(root, "worktree/.gemini"), { recursive: true });
  writeFileSync(join(root, "worktree/.git"), "");
  const agent = await chooseAgent({ agent: "gemini" }, { cwd: root, env: { ...env, HOME: root } });
  expect(agent.line({ folder: join(root, "worktree") })).not.toBe(agent.line());
});
