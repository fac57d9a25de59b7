/** The shapes of tool results in Claude Code's PostToolUse hook (2.1.325, 2026-11). A replacement must have the shape of
 *  the tool's own answer; the client ignores others without a word. */
import { type AdmittedResult, quoteNotes } from "../../conversation/intake/index.ts";
import { type Fields, isFields, isPlainObject, isText, listOf, readJson } from "../../core/text/index.ts";

/** A result as the model would see it. */
export interface ShownResult {
  readonly text: string;
  /** Read numbers its lines itself. */
  readonly isOnePiece?: boolean | undefined;
  /** The file with the whole output, if the client has cut it already. */
  readonly wholeFile?: string | undefined;
  /** Returns the tool's answer with a shorter text. */
  replace(admitted: AdmittedResult): ShorterAnswer;
}

export interface ShorterAnswer {
  readonly output: unknown;
  /** Stands beside the result. */
  readonly context?: string | undefined;
}

/** Returns undefined for a shape that stays as it is. */
export function readClaudeResult(tool: string, response: unknown): ShownResult | undefined {
  if (tool.startsWith("mcp__")) return readBlocks(response);
  if (!isPlainObject(response)) return undefined;
  const fields = response as Fields;
  switch (tool) {
    case "Read":
      return readFile(fields);
    case "Bash": {
      // The client leaves out white space at both ends. Above 30,000 characters the hook gets the beginning of the
      // output, and a file has all of it.
      const { isImage, structuredContent, stdout, stderr } = fields;
      if (isImage === true || Array.isArray(structuredContent) || typeof stdout !== "string") return undefined;
      const shown = readField({ ...fields, stdout: stderr === "" ? stdout.trim() : stdout.trimStart() }, "stdout");
      if (shown === undefined || typeof fields.persistedOutputPath !== "string") return shown;
      const { persistedOutputPath, persistedOutputSize: _, stdoutHoldsOutputEnd: __, ...rest } = fields;
      return {
        text: shown.text,
        wholeFile: persistedOutputPath,
        replace: (admitted) => ({ output: { ...rest, stdout: admitted.text } }),
      };
    }
    // In its other modes, and in the answer of a sub-agent, the client adds lines or spaces of its own.
    case "Grep":
      return fields.mode === "content" ? readField(fields, "content") : undefined;
    case "Glob":
      return listOf(isText)(fields.filenames)
        ? {
            text: fields.filenames.join("\n"),
            replace: ({ text }) => ({ output: { ...fields, filenames: text.split("\n") } }),
          }
        : undefined;
    case "WebFetch":
      return readField(fields, "result");
    default:
      return undefined;
  }
}

/** Returns the answer with words before lines that look like our notes, in the texts that are never shortened: errors of
 *  a command, names of files, and several blocks. Returns the same answer if there are none. */
export function quoteOthers(tool: string, response: unknown): unknown {
  const quote = (text: unknown): unknown => (typeof text === "string" ? quoteNotes(text, undefined) : text);
  if (tool.startsWith("mcp__")) {
    if (!Array.isArray(response) || response.length < 2) return response;
    return changeValues(response, (block) =>
      isPlainObject(block) ? changeValues(block as Fields, quote, ["text"]) : block,
    );
  }
  if (!isPlainObject(response)) return response;
  const fields = response as Fields;
  if (tool === "Bash") return changeValues(fields, quote, ["stderr"]);
  if (tool !== "Grep" || fields.mode === "content") return response;
  const names = (value: unknown): unknown => (Array.isArray(value) ? changeValues(value, quote) : quote(value));
  return changeValues(fields, names, ["filenames", "content"]);
}

/** Changes some values of a list or an object, by default all. Returns the same one if nothing is different. */
function changeValues<Value extends object>(
  values: Value,
  change: (value: unknown) => unknown,
  names: readonly string[] = Object.keys(values),
): Value {
  const known = names.filter((name) => Object.hasOwn(values, name));
  const entries = known.map((name) => [name, change(Reflect.get(values, name))] as const);
  if (entries.every(([name, value]) => value === Reflect.get(values, name))) return values;
  const copy = Array.isArray(values) ? [...(values as unknown[])] : { ...values };
  return Object.assign(copy, Object.fromEntries(entries)) as Value;
}

/** Returns which share of the client's limit for a tool a text takes. Of a longer one the client shows the first 2,000
 *  characters, and names a file with the rest (2.1.326). */
export function claudeShare(tool: string, text: string): number {
  const limits: Readonly<Record<string, number>> = { Bash: 30_000, Grep: 20_000 };
  return tool === "Read" ? 0 : text.length / (limits[tool] ?? 50_000);
}

function readField(fields: Fields, name: string): ShownResult | undefined {
  const text = fields[name];
  if (typeof text !== "string") return undefined;
  return { text, replace: (admitted) => ({ output: { ...fields, [name]: admitted.text } }) };
}

function readFile(fields: Fields): ShownResult | undefined {
  const { file } = fields;
  if (fields.type !== "text" || !isPlainObject(file)) return undefined;
  const { content, startLine } = file as Fields;
  if (typeof content !== "string" || typeof startLine !== "number") return undefined;
  const lines = content.split("\n");
  const withFile = (changed: Fields) => ({ ...fields, file: { ...file, ...changed } });
  return {
    text: lines.map((line, index) => `${startLine + index}\t${line}`).join("\n"),
    isOnePiece: true,
    replace({ text, piece }) {
      const onlyNote = (content: string) => ({ output: withFile({ content, startLine: 1, numLines: 1 }) });
      if (piece === undefined) return onlyNote(text);
      const { start, end, note } = piece;
      // The client would report an empty file.
      if (start === end) return onlyNote(note);
      const shown = { content: piece.text, startLine: startLine + start, numLines: end - start };
      return { output: withFile(shown), context: note || undefined };
    },
  };
}

/** One text among content blocks. Other blocks, such as `tool_reference`, are never touched. Structured content is a
 *  string of JSON, and that of the reference server for files has a text alone. */
function readBlocks(content: unknown): ShownResult | undefined {
  if (typeof content === "string") {
    const [[name, only] = [], ...others] = Object.entries(readJson(content, isFields) ?? {});
    if (name === undefined || typeof only !== "string" || others.length > 0)
      return { text: content, replace: ({ text }) => ({ output: text }) };
    return { text: only, replace: ({ text }) => ({ output: JSON.stringify({ [name]: text }) }) };
  }
  if (!Array.isArray(content) || content.length !== 1) return undefined;
  const block = Object(content[0]) as Fields;
  if (block.type !== "text" || typeof block.text !== "string") return undefined;
  return { text: block.text, replace: ({ text }) => ({ output: [{ ...block, text }] }) };
}
