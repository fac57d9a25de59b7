/** Sample items of the tools that OpenAI defines and the client runs. */
import fc from "fast-check";

const text = fc.string({ unit: "binary" });
const type = <T extends string>(name: T) => fc.constant(name);
const chunk = fc.record({
  stdout: text,
  stderr: text,
  outcome: fc.constant({ type: "exit", exit_code: 1 }),
});

export const builtInItem: fc.Arbitrary<object> = fc.oneof(
  fc.record({
    type: type("shell_call"),
    call_id: fc.string(),
    action: fc.record({ commands: fc.array(text), timeout_ms: fc.nat() }, { requiredKeys: ["commands"] }),
  }),
  fc.record({ type: type("shell_call_output"), call_id: fc.string(), output: fc.array(chunk) }),
  fc.record({
    type: type("local_shell_call"),
    id: fc.string(),
    call_id: fc.string(),
    action: fc.record({ type: type("exec"), command: fc.array(text), env: fc.dictionary(fc.string(), text) }),
  }),
  fc.record({ type: type("local_shell_call_output"), id: fc.string(), output: text }),
  fc.record({
    type: type("apply_patch_call"),
    call_id: fc.string(),
    operation: fc.record({ type: type("update_file"), path: text, diff: text }, { requiredKeys: ["path"] }),
  }),
  fc.record(
    { type: type("apply_patch_call_output"), call_id: fc.string(), status: type("completed"), output: text },
    { requiredKeys: ["type", "call_id"] },
  ),
  fc.record({
    type: type("computer_call"),
    call_id: fc.string(),
    action: fc.constant({ type: "screenshot" }),
  }),
);
