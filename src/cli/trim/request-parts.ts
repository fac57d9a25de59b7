/** What a request holds beside its messages and is billed with them. */
import { relative, resolve } from "node:path";
import { ContextError } from "../../errors.ts";
import type { TrimRequest } from "../../history/index.ts";
import { readTextFile } from "../../workspace/index.ts";
import type { Call } from "../command.ts";
import type { MessagesInput } from "../messages-input.ts";
import { parseJson } from "../parse-json.ts";

/** Tools are the request's own, or those of a file. */
export async function readRequestParts(
  input: MessagesInput,
  { options, cwd }: Pick<Call<{ readonly tools?: string | undefined }>, "options" | "cwd">,
): Promise<TrimRequest> {
  const { request = {}, key } = input;
  const own = request.tools ?? undefined;
  if (options.tools !== undefined && own !== undefined) {
    throw new ContextError("usage", "the request has tools of its own, and --tools names others", {
      hint: "Leave --tools out: they are counted.",
    });
  }
  const tools = options.tools === undefined ? own : await readTools(options.tools, cwd);
  return {
    messages: messagesOf(input),
    system: key === "input" ? request.instructions : request.system,
    tools: tools as TrimRequest["tools"],
  };
}

/** In a request of OpenAI's responses a text stands for one message. */
function messagesOf({ messages, request, key, source: { file } }: MessagesInput): readonly object[] {
  if (messages !== undefined) return messages;
  const value = request?.[key!];
  if (key === "input" && typeof value === "string") return [{ role: "user", content: value }];
  throw new ContextError("invalid_message", `${key} must be an array, not ${nameOf(value)}`, { file });
}

function nameOf(value: unknown): string {
  if (value === null) return "null";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

/** A list, or a request that has one. What is in it is checked where it is counted. */
async function readTools(name: string, cwd: string): Promise<unknown> {
  const path = resolve(cwd, name);
  const file = relative(cwd, path) || ".";
  const read = await readTextFile(path);
  if (!("text" in read)) throw new ContextError("unreadable_input", read.reason, { file });
  const value = parseJson(read.text.replace(/^\uFEFF/, ""), { file });
  const tools = Array.isArray(value) ? value : Object(value).tools;
  if (Array.isArray(tools)) return tools;
  throw new ContextError("unreadable_input", "holds no list of tools", {
    file,
    hint: "It should be a list of tool definitions, or a request with tools.",
  });
}
