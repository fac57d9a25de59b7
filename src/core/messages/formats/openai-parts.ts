/** What OpenAI's chat completions and responses have in common: content parts, tool definitions and overheads. */
import type { Fields } from "../../text/index.ts";
import { fieldsAt, jsonAt, stringAt } from "../fields.ts";
import type { Overheads, Part, PartKind, PartReplacement, Piece, ToolReading } from "../message-format.ts";
import { createPart, refuseReplace, unknownPiece, withField } from "./part.ts";

/** What OpenAI bills in addition to the text of messages. */
export const openAiOverheads: Overheads = {
  request: 3, // every reply is primed with 3 tokens (OpenAI cookbook, How to count tokens with tiktoken, 2024)
  message: 4, // 3 and the word of the role (same page)
  part: 0, // a list of texts costs the same as its texts
  // Not published. Three requests with 1, 2 and 3 calls of a sum (community.openai.com/t/538914) leave 4 to 9 tokens
  // for a call and its result beyond their texts and messages, and once 24 for several calls at a time.
  toolCall: 9,
  toolResult: 3,
  tool: 0, // a definition's JSON is longer than the cookbook's count with 7 tokens of frame
  toolFactor: 1,
};

// The model does not read `strict` and similar fields.
export function readDefinition(definition: Fields, path: string): ToolReading {
  const { description, parameters, format } = definition;
  const name = stringAt(definition, "name", path);
  return { text: jsonAt({ name, description, parameters, format }, path), fixedTokens: 0 };
}

/** Billed once for all definitions (same page, `func_end`). */
export const openAiToolPromptTokens = 12;

/** Own choice: no figure is published for search, code interpreter, computer use and similar tools. */
export const hostedToolTokens = 700;

/** Reads the parts of a content list. Chat completions and responses differ only in the names of the types. */
export function readOpenAiParts(content: readonly unknown[], path: string): Part[] {
  const parts: Part[] = [];
  for (let index = 0; index < content.length; index++) {
    const partPath = `${path}[${index}]`;
    const part = fieldsAt(content[index], partPath);
    const type = stringAt(part, "type", partPath);
    const pieces = [readPiece(part, type, partPath)];
    parts.push(createPart({ kind: partKinds.get(type) ?? "other", pieces, value: part }));
  }
  return parts;
}

/** Reads what a result is billed for: its text, or the parts of its list. */
export function readOpenAiResult(content: string | readonly unknown[], path: string): Piece[] {
  if (typeof content === "string") return [{ kind: "tool_result", text: content }];
  const pieces = readOpenAiParts(content, path).flatMap((part) => part.pieces);
  return [{ kind: "tool_result", text: "" }, ...pieces];
}

function readPiece(part: Fields, type: string, path: string): Piece {
  switch (type) {
    case "text":
    case "input_text":
    case "output_text":
      return { kind: "text", text: stringAt(part, "text", path) };
    case "refusal":
      return { kind: "text", text: stringAt(part, "refusal", path) };
    case "image_url":
      return { kind: "image", data: base64OfUrl(Object(part.image_url).url ?? part.image_url) };
    case "input_image":
    case "computer_screenshot":
      return { kind: "image", data: base64OfUrl(part.image_url) };
    // There is no rule for sound. The constant for an unknown image is the price of about three minutes.
    case "input_audio":
      return { kind: "image", data: undefined };
    case "file":
      return { kind: "document", data: base64OfUrl(fieldsAt(part.file, `${path}.file`).file_data) };
    case "input_file":
      return { kind: "document", data: base64OfUrl(part.file_data) };
    default:
      return unknownPiece(part, path);
  }
}

export function replaceOpenAiPart(part: Fields, { text }: PartReplacement): Fields {
  return partKinds.get(String(part.type)) === "text" ? withField(part, "text", text) : refuseReplace(part.type);
}

const partKinds: ReadonlyMap<string, PartKind> = new Map<string, PartKind>([
  ["text", "text"],
  ["input_text", "text"],
  ["output_text", "text"],
  ["image_url", "media"],
  ["input_image", "media"],
  ["input_audio", "media"],
  ["file", "media"],
  ["input_file", "media"],
]);

/** Returns the arguments of a trimmed call as JSON text, which the API requires. */
export function trimmedArguments({ text, input }: PartReplacement): string {
  return JSON.stringify(input ?? { trimmed: text });
}

/** Returns the data of a `data:` URL or of bare base64, and undefined for a link. */
export function base64OfUrl(url: unknown): string | undefined {
  if (typeof url !== "string" || /^[a-z]+:\/\//i.test(url)) return undefined;
  return url.startsWith("data:") ? url.slice(url.indexOf(",") + 1) : url;
}
