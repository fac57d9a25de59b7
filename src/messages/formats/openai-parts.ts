/** The parts of a content list in both of OpenAI's shapes, chat completions and responses, which differ in the names of the types. */
import { withoutCacheMarkers } from "../cache-markers.ts";
import { type Fields, fieldsAt, jsonAt, stringAt } from "../fields.ts";
import type { Part, PartKind, Piece } from "../message-format.ts";
import { createPart } from "./create-part.ts";
import { refuseReplace, withField } from "./edit-content.ts";

export function readOpenAiParts(content: readonly unknown[], path: string): Part[] {
  const parts: Part[] = [];
  for (let index = 0; index < content.length; index++) {
    const partPath = `${path}[${index}]`;
    const part = fieldsAt(content[index], partPath);
    const type = stringAt(part, "type", partPath);
    const pieces = [readPiece(part, type, partPath)];
    parts.push(createPart({ kind: kinds.get(type) ?? "other", pieces, value: part }));
  }
  return parts;
}

/** What a result is billed for: its text, or the parts of its list. */
export function readOpenAiResult(content: string | readonly unknown[], path: string): Piece[] {
  if (typeof content === "string") return [{ kind: "tool_result", text: content }];
  const pieces = readOpenAiParts(content, path).flatMap((part) => part.pieces);
  return [{ kind: "tool_result", text: "" }, ...pieces];
}

export function replaceOpenAiPart(part: Fields, text: string): Fields {
  return kinds.get(String(part.type)) === "text" ? withField(part, "text", text) : refuseReplace(part.type);
}

/** The arguments of a call that was trimmed: a JSON text, as the API wants it. */
export function trimmedArguments(text: string): string {
  return JSON.stringify({ trimmed: text });
}

/** What is not known, by its JSON: too much rather than nothing. */
export function unknownPiece(value: Fields, path: string): Piece {
  return { kind: "text", text: jsonAt(withoutCacheMarkers(value), path) };
}

/** The data of a `data:` URL, or of base64 without one; undefined for a link. */
export function base64OfUrl(url: unknown): string | undefined {
  if (typeof url !== "string" || /^[a-z]+:\/\//i.test(url)) return undefined;
  return url.startsWith("data:") ? url.slice(url.indexOf(",") + 1) : url;
}

const kinds: ReadonlyMap<string, PartKind> = new Map<string, PartKind>([
  ["text", "text"],
  ["input_text", "text"],
  ["output_text", "text"],
  ["image_url", "media"],
  ["input_image", "media"],
  ["input_audio", "media"],
  ["file", "media"],
  ["input_file", "media"],
]);

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
    // Sound has no rule of its own here: the constant for an unknown image is the price of about three minutes.
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
