import { expect, test } from "vitest";
import { agentCommand, agentPresets } from "./presets.ts";

test("every preset is a command line that reads the prompt from stdin", () => {
  const lines = Object.keys(agentPresets).map((agent) => agentCommand({ agent }));
  expect(lines).toEqual(["claude -p", "codex exec -", "opencode run", "gemini", "pi -p"]);
});

test("a model is named to every preset, as one word of the shell", () => {
  const lines = Object.keys(agentPresets).map((agent) => agentCommand({ agent, model: "a/b" }));
  expect(lines).toEqual([
    "claude -p --model='a/b'",
    "codex exec --model='a/b' -",
    "opencode run --model='a/b'",
    "gemini --model='a/b'",
    "pi -p --model 'a/b'",
  ]);
  expect(agentCommand({ agent: "pi", model: "it's $& $(x)" })).toBe(`pi -p --model 'it'\\''s $& $(x)'`);
});

test("a model that an agent could take for an option is refused", () => {
  for (const model of ["--yolo", "-m", " --yolo"]) {
    for (const agent of Object.keys(agentPresets)) {
      const refusal = expect.objectContaining({
        code: "usage",
        message: expect.stringContaining('begins with "-"'),
      });
      expect(() => agentCommand({ agent, model })).toThrow(refusal);
    }
  }
});

test("a command of one's own is taken as it is", () => {
  expect(agentCommand({ command: "my-agent --fast | tee log", model: "m" })).toBe(
    "my-agent --fast | tee log",
  );
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
