import { describe, expect, it } from "vitest";
import type { Fields } from "../../text/index.ts";
import { countMessage } from "../count-messages.ts";
import { characterCounter } from "./message-format.contract.ts";
import { responsesFormat } from "./responses.ts";

const read = (item: object) => responsesFormat.read(item as Fields, "messages[0]").parts[0];
const trim = (item: object) =>
  responsesFormat.edit(item as Fields, new Map([[0, { action: "replace", text: "[trimmed]" }]]));
const count = (item: object) => countMessage(item, characterCounter(), { format: "responses" }) - 4;

const shell = { type: "shell_call", call_id: "c1", action: { commands: ["cd a", "ls"], timeout_ms: 9 } };
const exit = { type: "exit", exit_code: 2 };
const printed = {
  type: "shell_call_output",
  call_id: "c1",
  max_output_length: 100,
  output: [
    { stdout: "one", stderr: "", outcome: { type: "timeout" } },
    { stdout: "two", stderr: "!", outcome: exit },
  ],
};
const exec = { type: "exec", command: ["ls", "-l"], env: {} };
const localShell = {
  type: "local_shell_call",
  id: "lsh_1",
  call_id: "c2",
  status: "completed",
  action: exec,
};
const localPrinted = { type: "local_shell_call_output", id: "c2", output: "files" };
const update = { type: "update_file", path: "a.ts", diff: "@@ -1 +1" };
const patch = {
  type: "apply_patch_call",
  id: "apc_1",
  call_id: "c3",
  status: "completed",
  operation: update,
};
const patched = { type: "apply_patch_call_output", call_id: "c3", status: "completed" };
const trimmedInput = '{"trimmed":"[trimmed]"}';

describe("tools that OpenAI defines and the client runs", () => {
  it("are calls and results with their id, also where a local shell's result names its call in id", () => {
    const items = [shell, printed, localShell, localPrinted, patch, patched];
    expect(items.map(read).map((part) => [part?.kind, part?.callId, part?.toolName])).toEqual([
      ["tool_call", "c1", "shell"],
      ["tool_result", "c1", undefined],
      ["tool_call", "c2", "local_shell"],
      ["tool_result", "c2", undefined],
      ["tool_call", "c3", "apply_patch"],
      ["tool_result", "c3", undefined],
    ]);
  });

  it("are trimmed where the API accepts a text, and keep everything else", () => {
    expect(trim(shell)).toEqual({ ...shell, action: { commands: [trimmedInput], timeout_ms: 9 } });
    const output = [{ stdout: "[trimmed]", stderr: "", outcome: exit }];
    expect(trim(printed)).toEqual({ ...printed, output });
    expect(trim(localShell)).toEqual({ ...localShell, action: { ...exec, command: [trimmedInput] } });
    expect(trim(localPrinted)).toEqual({ ...localPrinted, output: "[trimmed]" });
    expect(trim(patch)).toEqual({ ...patch, operation: { ...update, diff: trimmedInput } });
    expect(trim(patched)).toEqual({ ...patched, output: "[trimmed]" });
    const removal = { ...patch, operation: { type: "delete_file", path: "src/a.ts" } };
    expect(trim(removal)).toMatchObject({ operation: { type: "delete_file", path: trimmedInput } });
  });

  it("count what was called and printed, and what is beside it", () => {
    const { toolCall, toolResult } = responsesFormat.overheads;
    expect(count(shell)).toBe(toolCall + "shell".length + "cd a\nls".length + '{"timeout_ms":9}'.length);
    expect(count(printed)).toBe(2 * toolResult + "one".length + "two!".length);
    expect(count(patch)).toBe(toolCall + "apply_patch".length + "@@ -1 +1".length + '{"path":"a.ts"}'.length);
    expect(count(patched)).toBe(toolResult);
  });

  it("name the path of what is malformed", () => {
    expect(() => read({ ...shell, action: undefined })).toThrow("messages[0].action must be an object");
    expect(() => read({ ...shell, action: { commands: ["ls", 7] } })).toThrow(
      "messages[0].action.commands[1] must be a string, not a number",
    );
    expect(() => read({ ...printed, output: [{ stdout: "x" }] })).toThrow(
      "messages[0].output[0].stderr must be a string",
    );
  });

  it("are removed only with their whole exchange if the result is an image or in the call itself", () => {
    const computer = { type: "computer_call", call_id: "c4", action: { type: "screenshot" } };
    const screen = { type: "computer_call_output", call_id: "c4", output: { image_url: "https://x.org/a" } };
    const hosted = { type: "mcp_call", id: "mcp_1", name: "search", arguments: "{}", output: "found" };
    expect([computer, screen, hosted].map(read)).toMatchObject([
      { kind: "other", callId: "c4", toolName: "computer", exchangeRole: "call" },
      { kind: "other", callId: "c4", exchangeRole: "result" },
      { kind: "other", toolName: "search", exchangeRole: "both" },
    ]);
    expect(() => trim(screen)).toThrow('a part of type "computer_call_output" cannot be replaced');
    expect(read({ type: "mcp_list_tools", id: "mcpl_1", tools: [] })?.exchangeRole).toBe(undefined);
  });

  it("are answered in the shape that the call's type requires", () => {
    const answer = (type: string) => responsesFormat.toolResult({ callId: "c1", toolName: undefined, type }, "none");
    expect(answer("function_call")).toEqual({ type: "function_call_output", call_id: "c1", output: "none" });
    expect(answer("custom_tool_call")).toMatchObject({ type: "custom_tool_call_output", output: "none" });
    expect(answer("local_shell_call")).toEqual({ type: "local_shell_call_output", id: "c1", output: "none" });
    expect(answer("apply_patch_call")).toMatchObject({ call_id: "c1", status: "failed", output: "none" });
    expect(answer("shell_call")).toMatchObject({ call_id: "c1", output: [{ stdout: "none" }] });
    expect(answer("unheard_of")).toMatchObject({ type: "function_call_output" });
  });
});
