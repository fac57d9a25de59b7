/** Calls of tools that the client runs, and their results, as items of OpenAI's responses: each type has its text in a place of its own
 *  (the SDK's types, 6.49, 2026-11). */
import { type Fields, failAt, fieldsAt, jsonAt, stringAt, textOrListAt, typeName } from "../fields.ts";
import type { CallName, Piece } from "../message-format.ts";
import { nameIn } from "./create-part.ts";
import { withField } from "./edit-content.ts";
import { readOpenAiResult, trimmedArguments } from "./openai-parts.ts";

export interface CallItem {
  read(item: Fields, path: string): { readonly name: string; readonly pieces: readonly Piece[] };
  /** The same item where that is its text already. */
  replace(item: Fields, text: string): Fields;
}

export interface ResultItem {
  read(item: Fields, path: string): readonly Piece[];
  replace(item: Fields, text: string): Fields;
  /** The fields beside the type. */
  make(callId: string, text: string): Fields;
}

export const callItems: ReadonlyMap<string, CallItem> = new Map([
  ["function_call", namedCall("arguments")],
  ["custom_tool_call", namedCall("input")],
  ["shell_call", builtInCall({ name: "shell", holder: "action", field: () => "commands" })],
  ["local_shell_call", builtInCall({ name: "local_shell", holder: "action", field: () => "command" })],
  ["apply_patch_call", builtInCall({ name: "apply_patch", holder: "operation", field: patchField })],
]);

const output: ResultItem = {
  read: (item, path) =>
    readOpenAiResult(textOrListAt(item.output ?? missing(item), `${path}.output`), `${path}.output`),
  replace: (item, text) => withField(item, "output", text),
  make: (callId, text) => ({ call_id: callId, output: text }),
};

export const resultItems: ReadonlyMap<string, ResultItem> = new Map([
  ["function_call_output", output],
  ["custom_tool_call_output", output],
  ["local_shell_call_output", { ...output, make: (id, text) => ({ id, output: text }) }],
  [
    "apply_patch_call_output",
    { ...output, make: (callId, text) => ({ call_id: callId, status: "failed", output: text }) },
  ],
  ["shell_call_output", { read: readChunks, replace: replaceChunks, make: makeChunks }],
]);

/** The result of a call, in the shape that its type wants. */
export function answerItem({ callId, type }: CallName, text: string): Fields {
  const own = `${String(type)}_output`;
  const known = resultItems.has(own) ? own : "function_call_output";
  return { type: known, ...resultItems.get(known)?.make(callId, text) };
}

/** The output of a local shell names its call in `id`. */
export function callIdOf({ type, call_id: callId, id }: Fields): string | undefined {
  return nameIn(callId) ?? (type === "local_shell_call_output" ? nameIn(id) : undefined);
}

function namedCall(field: string): CallItem {
  return {
    read(item, path) {
      const name = stringAt(item, "name", path);
      const args = stringAt(item, field, path);
      return { name, pieces: [{ kind: "tool_call", name, args, path: `${path}.${field}` }] };
    },
    replace: (item, text) => withField(item, field, trimmedArguments(text)),
  };
}

interface BuiltIn {
  readonly name: string;
  readonly holder: string;
  field(holder: Fields): string;
}

// What is said beside the commands or the diff stays when these are trimmed.
function builtInCall({ name, holder, field }: BuiltIn): CallItem {
  return {
    read(item, path) {
      const held = fieldsAt(item[holder], `${path}.${holder}`);
      const key = field(held);
      const { [key]: value, type: _type, ...rest } = held;
      const keyPath = `${path}.${holder}.${key}`;
      const texts = textOrListAt(value, keyPath);
      const args = typeof texts === "string" ? texts : joinTexts(texts, keyPath);
      const call: Piece = { kind: "tool_call", name, args, path: keyPath };
      const beside = jsonAt(rest, `${path}.${holder}`);
      return { name, pieces: beside === "{}" ? [call] : [call, { kind: "text", text: beside }] };
    },
    replace(item, text) {
      const held = item[holder] as Fields;
      const key = field(held);
      const trimmed = trimmedArguments(text);
      const value = held[key];
      if (!Array.isArray(value)) return withField(item, holder, withField(held, key, trimmed));
      const isTrimmed = value.length === 1 && value[0] === trimmed;
      return isTrimmed ? item : { ...item, [holder]: { ...held, [key]: [trimmed] } };
    },
  };
}

function joinTexts(texts: readonly unknown[], path: string): string {
  const odd = texts.findIndex((text) => typeof text !== "string");
  return odd < 0
    ? texts.join("\n")
    : failAt(`${path}[${odd}]`, `must be a string, not ${typeName(texts[odd])}`);
}

function patchField(operation: Fields): string {
  return operation.diff === undefined ? "path" : "diff";
}

// A patch that went well has nothing to say.
function missing({ type }: Fields): string | undefined {
  return type === "apply_patch_call_output" ? "" : undefined;
}

function readChunks(item: Fields, path: string): readonly Piece[] {
  const chunks = textOrListAt(item.output, `${path}.output`);
  if (typeof chunks === "string") return [{ kind: "tool_result", text: chunks }];
  if (chunks.length === 0) return [{ kind: "tool_result", text: "" }];
  return chunks.map((each, index) => {
    const chunkPath = `${path}.output[${index}]`;
    const fields = fieldsAt(each, chunkPath);
    return {
      kind: "tool_result",
      text: stringAt(fields, "stdout", chunkPath) + stringAt(fields, "stderr", chunkPath),
    };
  });
}

function makeChunks(callId: string, text: string): Fields {
  return { call_id: callId, output: [{ stdout: text, stderr: "", outcome: { type: "timeout" } }] };
}

function replaceChunks(item: Fields, text: string): Fields {
  const chunks = Array.isArray(item.output) ? item.output : [];
  const last = chunks.at(-1) as Fields | undefined;
  if (chunks.length === 1 && last?.stdout === text && last.stderr === "") return item;
  const { outcome = { type: "exit", exit_code: 0 }, ...rest } = last ?? {};
  return { ...item, output: [{ ...rest, stdout: text, stderr: "", outcome }] };
}
