/** Fields of calls that OpenAI's two formats share. */
import type { CallReference } from "./pairing.ts";
import { type Problem, problem } from "./rule-set.ts";

/** Rule `tool-id`. */
export function* checkIdLength({ id, path }: CallReference, longest: number): Generator<Problem> {
  if (typeof id !== "string" || id === "") yield problem("tool-id", path, "must be a text that is not empty");
  else if (id.length > longest) {
    yield problem("tool-id", path, `has ${id.length} characters; an id has at most ${longest}`);
  }
}

/** Rule `call-arguments`: a text that holds a JSON object. A wrong type is a matter of the shape. */
export function* checkArguments(text: unknown, path: string): Generator<Problem> {
  if (typeof text !== "string") return;
  if (text.trim() === "") {
    yield problem("call-arguments", path, 'is empty; a call without arguments has "{}"');
    return;
  }
  if (!isJson(text)) yield problem("call-arguments", path, "is no JSON");
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
