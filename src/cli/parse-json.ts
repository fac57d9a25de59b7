import { ContextError } from "../errors.ts";
import { messageOf } from "../text/index.ts";

export interface JsonPlace {
  /** As it is shown. */
  readonly file: string;
  /** Where the text is one line of the file. */
  readonly line?: number | undefined;
}

/** As JSON.parse; a mistake is an expected error with file and, where V8 tells it, the line. */
export function parseJson(text: string, place: JsonPlace): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw noJson(error, text, place);
  }
}

/** V8 tells the position of most mistakes, and quotes the text around the others, which may be long. */
function noJson(error: unknown, text: string, { file, line }: JsonPlace): ContextError {
  const told = messageOf(error);
  const [what = ""] = told.split(/ in JSON at position|, (?:\.{3})?"/);
  const position = told.includes("end of JSON") ? text.length : /at position (\d+)/.exec(told)?.[1];
  const before = position === undefined ? undefined : text.trimEnd().slice(0, Number(position));
  const message = `is no JSON: ${what.charAt(0).toLowerCase()}${what.slice(1)}`;
  return new ContextError("unreadable_input", message, {
    file,
    line: line ?? before?.split("\n").length,
    cause: error,
  });
}
