/** Conversations in every format, built from the same steps, for tests of all formats. */
import type { Fields } from "../text/index.ts";
import type { FormatName, MessageFormat, Part, Role } from "./message-format.ts";

/** One step of a conversation. Its calls need not be answered in the next one. */
export type Step =
  | { readonly kind: "user" | "system"; readonly text: string }
  | { readonly kind: "assistant"; readonly text: string; readonly calls: readonly string[] }
  /** Results by the id of their call, then possibly user text, in the same message if the format allows it. */
  | { readonly kind: "results"; readonly calls: readonly string[]; readonly text: string };

export function createConversation(format: FormatName, steps: readonly Step[]): object[] {
  return steps.flatMap((step, index) => builders[format](step, index));
}

/** Returns the parts of all messages, with their role and text. */
export function readParts(messages: readonly object[], format: MessageFormat): readonly ReadPart[] {
  return messages.flatMap((message) => {
    const { role, parts } = format.read(message as Fields, "message");
    return parts.map((part) => ({ role, part, text: textOf(part) }));
  });
}

export interface ReadPart {
  readonly role: Role;
  readonly part: Part;
  readonly text: string;
}

function textOf({ pieces }: Part): string {
  return pieces.map((piece) => ("text" in piece ? piece.text : "")).join("");
}

type Builder = (step: Step, index: number) => object[];

const resultText = (id: string, index: number) => `result of ${id} at ${index}`;
const texts = (type: string, text: string) => (text === "" ? [] : [{ type, text }]);

const builders: Readonly<Record<FormatName, Builder>> = {
  anthropic(step, index) {
    if (step.kind === "assistant") {
      const calls = step.calls.map((id) => ({ type: "tool_use", id, name: "ls", input: { index } }));
      return [{ role: "assistant", content: [...texts("text", step.text), ...calls] }];
    }
    if (step.kind !== "results") return [{ role: step.kind, content: step.text }];
    const results = step.calls.map((id) => ({
      type: "tool_result",
      tool_use_id: id,
      content: resultText(id, index),
      is_error: true,
    }));
    return [{ role: "user", content: [...results, ...texts("text", step.text)] }];
  },
  openai(step, index) {
    if (step.kind === "assistant") {
      const calls = step.calls.map((id) => ({
        id,
        type: "function",
        function: { name: "ls", arguments: `{"index":${index}}` },
      }));
      const content = step.text === "" ? null : step.text;
      return [{ role: "assistant", content, ...(calls.length > 0 && { tool_calls: calls }) }];
    }
    if (step.kind !== "results") return [{ role: step.kind, content: step.text }];
    const results = step.calls.map((id) => ({
      role: "tool",
      tool_call_id: id,
      content: resultText(id, index),
    }));
    return [...results, ...(step.text === "" ? [] : [{ role: "user", content: step.text }])];
  },
  responses(step, index) {
    const said = (role: string) => texts(role === "assistant" ? "output_text" : "input_text", step.text);
    const message = (role: string) => (step.text === "" ? [] : [{ type: "message", role, content: said(role) }]);
    if (step.kind === "assistant") {
      const args = `{"index":${index}}`;
      const calls = step.calls.map((id) => ({
        type: "function_call",
        call_id: id,
        name: "ls",
        arguments: args,
      }));
      return [...message("assistant"), ...calls];
    }
    if (step.kind !== "results") return [{ role: step.kind, content: step.text }];
    const results = step.calls.map((id) => ({
      type: "function_call_output",
      call_id: id,
      output: resultText(id, index),
    }));
    return [...results, ...message("user")];
  },
  "ai-sdk"(step, index) {
    if (step.kind === "assistant") {
      const calls = step.calls.map((id) => ({
        type: "tool-call",
        toolCallId: id,
        toolName: "ls",
        input: { index },
      }));
      return [{ role: "assistant", content: [...texts("text", step.text), ...calls] }];
    }
    if (step.kind === "system") return [{ role: "system", content: step.text }];
    const user = { role: "user", content: [{ type: "text", text: step.text }] };
    if (step.kind !== "results") return [user];
    const results = step.calls.map((id) => ({
      type: "tool-result",
      toolCallId: id,
      toolName: "ls",
      output: { type: "text", value: resultText(id, index) },
    }));
    return [{ role: "tool", content: results }, ...(step.text === "" ? [] : [user])];
  },
  gemini(step, index) {
    const said = step.text === "" ? [] : [{ text: step.text }];
    if (step.kind === "assistant") {
      const calls = step.calls.map((id) => ({ functionCall: { id, name: "ls", args: { index } } }));
      return [{ role: "model", parts: [...said, ...calls] }];
    }
    if (step.kind !== "results") return [{ role: "user", parts: [{ text: step.text }] }];
    const results = step.calls.map((id) => ({
      functionResponse: { id, name: "ls", response: { output: resultText(id, index) } },
    }));
    return [{ role: "user", parts: [...results, ...said] }];
  },
  rfc(step, index) {
    if (step.kind === "assistant") {
      const calls = step.calls.map((id) => ({ type: "tool_use", id, name: "ls", args: { index } }));
      return [{ role: "assistant", content: [...texts("text", step.text), ...calls] }];
    }
    if (step.kind !== "results") return [{ role: step.kind, content: step.text }];
    const results = step.calls.map((id) => ({
      type: "tool_result",
      tool_use_id: id,
      content: resultText(id, index),
    }));
    return [{ role: "tool", content: results }, ...(step.text === "" ? [] : [{ role: "user", content: step.text }])];
  },
};
