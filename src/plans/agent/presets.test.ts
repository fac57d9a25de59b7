import { expect, test } from "vitest";
import { type Allow, allowLevels } from "../../host/index.ts";
import { agentCommand, agentPresets } from "./presets.ts";

const names = Object.keys(agentPresets);
const linesOf = (choice: object) => names.map((agent) => agentCommand({ agent, ...choice }));
const opencode = "opencode run --format=json --print-logs --log-level=ERROR";
const codexLog = "RUST_LOG=error,codex_sandboxing::violation=warn";

test("every preset may change files by default, and none runs commands without limits", () => {
  expect(linesOf({})).toEqual([
    "claude -p --verbose --output-format=stream-json --permission-mode=acceptEdits",
    `${codexLog} codex exec --json -c sandbox_mode=workspace-write -`,
    `OPENCODE_PERMISSION='{"edit":"allow","bash":"deny"}' ${opencode}`,
    "gemini --approval-mode=auto_edit --output-format=stream-json",
    "pi -p --mode json --tools read,grep,find,ls,edit,write",
  ]);
  expect(linesOf({ allow: "edit" })).toEqual(linesOf({}));
});

test("every preset can be limited to reading", () => {
  expect(linesOf({ allow: "read" })).toEqual([
    "claude -p --verbose --output-format=stream-json --permission-mode=default '--disallowedTools=Edit(**),Write(**),NotebookEdit(**)'",
    `${codexLog} codex exec --json -c sandbox_mode=read-only -`,
    `OPENCODE_PERMISSION='{"edit":"deny","bash":"deny"}' ${opencode}`,
    "gemini --approval-mode=plan --output-format=stream-json",
    "pi -p --mode json --tools read,grep,find,ls",
  ]);
});

test("the three levels of every preset differ", () => {
  for (const agent of names) {
    const lines = allowLevels.map((allow: Allow) => agentCommand({ agent, allow }));
    expect(new Set(lines).size).toBe(3);
  }
});

test("a model is named to every preset, as one word of the shell", () => {
  const named = linesOf({ model: "a/b" }).map((line) => line.replace(/^.*?(?=--model)/, ""));
  expect(named).toEqual(["--model=a/b", "--model=a/b -", "--model=a/b", "--model=a/b", "--model a/b"]);
  expect(agentCommand({ agent: "pi", model: "it's $& $(x)" })).toMatch(/ --model 'it'\\''s \$& \$\(x\)'$/);
});

test("more words come before the end of the line, each quoted", () => {
  const args = ["--allowedTools", "Bash(npm test:*)"];
  expect(agentCommand({ agent: "claude", args })).toMatch(/acceptEdits --allowedTools 'Bash\(npm test:\*\)'$/);
  expect(agentCommand({ agent: "codex", args: ["--skip-git-repo-check"] })).toMatch(/ --skip-git-repo-check -$/);
});

test("a limit on the cost reaches only the agent that takes one", () => {
  const lines = linesOf({ budgetUsd: 0.01 }).filter((line) => line.includes("0.01"));
  expect(lines).toEqual([
    "claude -p --verbose --output-format=stream-json --permission-mode=acceptEdits --max-budget-usd=0.01",
  ]);
  expect(agentCommand({ agent: "claude", budgetUsd: 1e-9 })).toContain("--max-budget-usd=0.0001");
});

test("exactly the named commands are granted, where an agent can be told, and only at the level of edits", () => {
  const checks = ["npm test", "npm run test:unit", "rm *", "a(b)"];
  const lines = linesOf({ checks });
  expect(lines[0]).toContain(" '--allowedTools=Bash(npm test),Bash(npm run test:unit)'");
  expect(lines[1]).toBe(linesOf({})[1]);
  expect(lines[2]).toContain('"bash":{"*":"deny","npm test":"allow","npm run test:unit":"allow"}');
  expect(lines[3]).toContain(" '--allowed-tools=run_shell_command(npm test)' ");
  expect(lines[4]).toBe(linesOf({})[4]);
  for (const allow of ["read", "all"]) expect(linesOf({ allow, checks })).toEqual(linesOf({ allow }));
});

test("a session goes on with the same level as it began", () => {
  for (const allow of allowLevels) {
    for (const [index, line] of linesOf({ allow, session: "s-1" }).entries()) {
      const plain = line.replace(/ (?:--resume=|--session=|--session |resume )s-1/, "");
      expect([line === plain, plain]).toEqual([false, linesOf({ allow })[index]]);
    }
  }
});

test("what an agent could take for an option or a path is no session", () => {
  for (const session of ["--dangerously-bypass-approvals-and-sandbox", "-", "../other", "/tmp/s.jsonl", "a b", ""])
    for (const agent of names)
      expect(() => agentCommand({ agent, session }), `${agent} ${session}`).toThrow("no id of");
});

test("gemini trusts a folder only if it is told to", () => {
  expect(agentCommand({ agent: "gemini", trustFolder: true })).toContain("--skip-trust");
  expect(linesOf({}).join()).not.toContain("trust");
});

test("a model that an agent could take for an option is refused", () => {
  for (const model of ["--yolo", "-m", " --yolo"]) {
    for (const choice of [...names.map((agent) => ({ agent })), { command: "mine {model}" }]) {
      const refusal = expect.objectContaining({
        code: "usage",
        message: expect.stringContaining('starts with "-"'),
      });
      expect(() => agentCommand({ ...choice, model })).toThrow(refusal);
    }
  }
});

test("another command is used as it is, with the model where it asks for one", () => {
  expect(agentCommand({ command: "my-agent --fast | tee log", model: "m" })).toBe("my-agent --fast | tee log");
  expect(agentCommand({ command: "mine --model {model}", model: "a b" })).toBe("mine --model 'a b'");
  expect(() => agentCommand({ command: "mine --model {model}" })).toThrow("no model is chosen");
});

test("an unknown agent is refused with the choices, whatever its name", () => {
  const choices = "Choose from claude, codex, opencode, gemini, pi.";
  for (const [agent, hint] of [
    ["claud", `Did you mean "claude"? ${choices}`],
    ["toString", choices],
    [undefined, choices],
  ] as const) {
    const refusal = expect.objectContaining({ code: "usage", hint });
    expect(() => agentCommand({ agent })).toThrow(refusal);
  }
});
