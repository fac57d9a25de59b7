/** What the AI SDK's parts are billed for: reasoning with what seals it, results of every type, files in every form of their data. */
import { type Fields, fieldsAt, jsonAt, stringAt, textOrListAt } from "../fields.ts";
import type { Piece } from "../message-format.ts";
import { base64OfUrl } from "./openai-parts.ts";

/** Providers hand on what only they can open under names of their own, in the part's options. */
export function readReasoning(part: Fields, path: string): Piece {
  const text = stringAt(part, "text", path);
  for (const options of providerOptionsOf(part)) {
    const sealed = options.signature ?? options.redactedData ?? options.reasoningEncryptedContent;
    if (typeof sealed === "string") return { kind: "sealed", text, sealed };
  }
  return { kind: "sealed", text, sealed: "" };
}

/** The options of each provider; the stream's parts call them metadata. */
export function providerOptionsOf({ providerOptions, providerMetadata }: Fields): readonly Fields[] {
  if (providerOptions === undefined && providerMetadata === undefined) return [];
  return [...Object.values(Object(providerOptions)), ...Object.values(Object(providerMetadata))].map(Object);
}

export function readOutput(part: Fields, path: string): Piece[] {
  const outputPath = `${path}.output`;
  const output = fieldsAt(part.output, outputPath);
  switch (stringAt(output, "type", outputPath)) {
    case "text":
    case "error-text":
      return [{ kind: "tool_result", text: stringAt(output, "value", outputPath) }];
    case "json":
    case "error-json":
      return [{ kind: "tool_result", text: jsonAt(output.value, `${outputPath}.value`) }];
    case "content":
      return readList(output.value, `${outputPath}.value`);
    case "execution-denied":
      return [{ kind: "tool_result", text: typeof output.reason === "string" ? output.reason : "" }];
    default:
      return [{ kind: "tool_result", text: jsonAt(output, outputPath) }];
  }
}

function readList(value: unknown, path: string): Piece[] {
  const list = textOrListAt(value, path);
  if (typeof list === "string") return [{ kind: "tool_result", text: list }];
  const pieces = list.map((each, index) => {
    const partPath = `${path}[${index}]`;
    const part = fieldsAt(each, partPath);
    const type = stringAt(part, "type", partPath);
    if (type === "text") return { kind: "text", text: stringAt(part, "text", partPath) } as const;
    return /^(?:media$|file|image)/.test(type) ? readFile(part, partPath) : unknownPiece(part, partPath);
  });
  return [{ kind: "tool_result", text: "" }, ...pieces];
}

/** A file or image, in a message or in a result. */
export function readFile(part: Fields, path: string): Piece {
  const mediaType = typeof part.mediaType === "string" ? part.mediaType : String(part.type);
  const data = Object(part.image ?? part.data ?? part.url);
  if (data.type === "text") return { kind: "text", text: stringAt(data, "text", `${path}.data`) };
  if (mediaType.startsWith("image")) return { kind: "image", data: base64Of(data, imageHeadBytes) };
  // Sound and video have no rule of their own here: the constant for an unknown image.
  if (/^(?:audio|video)/.test(mediaType)) return { kind: "image", data: undefined };
  return { kind: "document", data: base64Of(data, Number.POSITIVE_INFINITY) };
}

// The size of an image is in its head, behind what a camera writes there.
const imageHeadBytes = 196_608;

/** `data` is boxed: a string, a URL, bytes, or one of these in a wrapper that names its type; else a provider's reference. */
function base64Of(data: object, maxBytes: number): string | undefined {
  if (data instanceof String || data instanceof URL) return base64OfUrl(String(data));
  if (data instanceof ArrayBuffer) return base64Of(new Uint8Array(data), maxBytes);
  if (ArrayBuffer.isView(data)) {
    const length = Math.min(data.byteLength, maxBytes);
    return Buffer.from(data.buffer, data.byteOffset, length).toString("base64");
  }
  const { type, data: inner, url } = data as Fields;
  return type === "data" || type === "url" ? base64Of(Object(inner ?? url), maxBytes) : undefined;
}

/** What is not known, by its JSON: too much rather than nothing. Options of providers are no content. */
export function unknownPiece(part: Fields, path: string): Piece {
  const { providerOptions: _options, providerMetadata: _metadata, ...rest } = part;
  return { kind: "text", text: jsonAt(rest, path) };
}
