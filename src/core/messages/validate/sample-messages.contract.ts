/** Messages in Anthropic's format that the tests of this folder share, and a function that lists problems. */
import { validateRequest } from "./index.ts";

export const user = (...content: object[]): object => ({ role: "user", content });
export const assistant = (...content: object[]): object => ({ role: "assistant", content });
export const text = (value: string): object => ({ type: "text", text: value });
export const call = (id: string): object => ({ type: "tool_use", id, name: "ls", input: {} });
export const result = (id: string): object => ({ type: "tool_result", tool_use_id: id, content: "a.ts" });
export const thinking: object = { type: "thinking", thinking: "so", signature: "c2ln" };
export const ask: object = user(text("list"));

/** `path rule` of every problem. */
export function find(request: object, strict = false): string[] {
  const problems = validateRequest(request, { provider: "anthropic", strict });
  return problems.map(({ path, rule }) => `${path} ${rule}`);
}
