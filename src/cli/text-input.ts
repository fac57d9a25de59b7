import { relative, resolve } from "node:path";
import { ContextError } from "../errors.ts";
import { readTextFile, readTextStream, type TextLimit } from "../workspace/index.ts";
import type { Call } from "./command.ts";

export interface TextInput {
  /** As it is shown. */
  readonly file: string;
  readonly text: string;
}

export type InputCall = Pick<Call, "cwd" | "stdin" | "stdinKind">;

/** The text of a file, or of standard input ("-"), without its byte order mark. What cannot be read is an error that names the file. */
export async function readTextInput(
  name: string,
  { cwd, stdin, stdinKind }: InputCall,
  limit?: TextLimit,
): Promise<TextInput> {
  const path = resolve(cwd, name);
  const file = name === "-" ? "-" : relative(cwd, path) || ".";
  if (name === "-" && stdinKind === "directory")
    throw new ContextError("unreadable_input", "is a directory", { file });
  const read = await (name === "-" ? readTextStream(stdin, limit) : readTextFile(path, limit));
  if (!("text" in read)) throw new ContextError("unreadable_input", read.reason, { file });
  return { file, text: read.text.replace(/^\uFEFF/, "") };
}

/** For arguments and options that each may be "-": only one of them can have what is piped in. */
export function refuseSharedStdin(names: readonly (string | undefined)[], what: string): void {
  if (names.filter((name) => name === "-").length < 2) return;
  throw new ContextError("usage", `standard input ("-") is named for more than one ${what}`, {
    hint: "Write the others to files.",
  });
}
