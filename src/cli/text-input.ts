/** Reads what a command line names: a file, or standard input. */
import { relative, resolve } from "node:path";
import { ContextError, usageError } from "../core/errors.ts";
import { formatNames, isRequestList } from "../core/messages/index.ts";
import { countNoun } from "../core/text/index.ts";
import {
  type MessagesInput,
  messagesHint,
  messagesLimit,
  parseMessages,
  readTextFile,
  readTextStream,
  type TextLimit,
} from "../host/index.ts";
import type { Call } from "./command.ts";
import type { ValueOption } from "./shared-options.ts";

/** Reads messages from a file, or from a pipe without a name. Throws with file and line if they cannot be read. */
export async function readMessagesInput(
  name: string | undefined,
  call: InputCall,
  { takesRequests = false }: { readonly takesRequests?: boolean } = {},
): Promise<MessagesInput> {
  if (name === undefined && call.stdinKind !== "piped") {
    throw usageError("FILE is missing", 'Name a file, or pipe messages in ("-").');
  }
  const { file, text } = await readTextInput(name ?? "-", call, messagesLimit);
  if (text.trim() === "") {
    throw new ContextError("unreadable_input", "is empty", {
      file,
      hint: "It should hold messages as JSON.",
    });
  }
  const input = parseMessages(text, file);
  if (takesRequests && isRequestList(input.messages)) return { ...input, requests: input.messages };
  if (input.request === undefined) await refuseOthers(input);
  return input;
}

/** Refuses recordings and lists of requests with one error, instead of one problem per line. */
async function refuseOthers({ messages = [], source }: MessagesInput): Promise<void> {
  // Surely messages: roles, and items of OpenAI's responses between them.
  const has = (message: object, key: "role" | "type") => typeof Object(message)[key] === "string";
  const hasRole = messages.some((message) => has(message, "role"));
  const arePlain = hasRole && messages.every((message) => has(message, "role") || has(message, "type"));
  if (messages.length === 0 || arePlain) return;
  const { recognizeLines } = await import("../recordings/sessions/index.ts");
  const kind = recognizeLines(messages);
  // Later code refuses entries of a list that are not messages.
  if (kind === "messages" || (kind === undefined && !source.isLines)) return;
  const { length } = messages;
  const { file } = source;
  if (kind === "requests") {
    throw new ContextError("unreadable_input", `holds ${countNoun(length, "request")}, but only one can be read`, {
      file,
      hint: "Write one of them to a separate file.",
    });
  }
  if (kind === undefined) {
    const message = `holds ${countNoun(length, "line")} but no message`;
    throw new ContextError("unreadable_input", message, { file, hint: messagesHint });
  }
  const { agentNames } = await import("../recordings/bill/sum-calls.ts");
  throw new ContextError("unreadable_input", `this is a ${agentNames[kind]} session, not a list of messages`, {
    file,
    hint: "Use plimsoll replay, which reads those.",
  });
}

type InputCall = Pick<Call, "cwd" | "stdin" | "stdinKind">;

/** Reads a file, or standard input ("-"), without its byte order mark. Returns the name as it is shown, too. Throws with
 *  the file if it cannot be read. */
export async function readTextInput(
  name: string,
  { cwd, stdin, stdinKind }: InputCall,
  limit?: TextLimit,
): Promise<{ readonly file: string; readonly text: string }> {
  const path = resolve(cwd, name);
  const file = name === "-" ? "-" : relative(cwd, path) || ".";
  if (name === "-" && stdinKind === "directory") throw new ContextError("unreadable_input", "is a directory", { file });
  const read = await (name === "-" ? readTextStream(stdin, limit) : readTextFile(path, limit));
  if (!("text" in read)) throw new ContextError("unreadable_input", read.reason, { file });
  return { file, text: read.text.replace(/^\uFEFF/, "") };
}

/** Throws if more than one argument or option is "-". */
export function refuseSharedStdin(names: readonly (string | undefined)[], what: string): void {
  if (names.filter((name) => name === "-").length < 2) return;
  throw usageError(`standard input ("-") is named for more than one ${what}`, "Write the others to files.");
}

/** Reads a layer of a prompt that an option names. */
export async function readLayer(name: string | undefined, call: InputCall): Promise<string | undefined> {
  return name === undefined ? undefined : (await readTextInput(name, call)).text;
}

/** The format option of commands that read messages. */
export const formatOption: Readonly<Record<"format", ValueOption>> = {
  format: { value: "NAME", choices: ["auto", ...formatNames], summary: "the format of the messages" },
};
