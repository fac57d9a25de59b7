/** The RFC's own estimator, section 7.1, equal to the token. It means to be too high: trimming a little early costs less than
 *  a refused request. */
import { failAt, fieldsAt, jsonAt, stringAt, typeName } from "../../messages/index.ts";
import { argsOf, checkMessages, optionalString, type RfcMessage, type RfcPart } from "./rfc-message.ts";

export const placeholder = "[trimmed]";

/** Tokens of a list of messages, rounded up at every part and once more with the 5 % of safety; 0 for none. */
export function estimateTokens(messages: readonly object[]): number {
  let rawTokens = 0;
  for (const message of checkMessages(messages)) rawTokens += tokensOf(message).full;
  return finalEstimate(rawTokens);
}

/** Tokens of tool definitions, which go out beside the messages; the 5 % of safety is not theirs. */
export function estimateToolOverhead(tools?: readonly object[]): number {
  if (tools === undefined) return 0;
  if (!Array.isArray(tools)) return failAt("tools", `must be an array, not ${typeName(tools)}`);
  let tokens = 0;
  for (let index = 0; index < tools.length; index++) tokens += toolTokens(tools[index], `tools[${index}]`);
  return tokens;
}

/** What a sum of `tokensOf` stands for: the number that is compared with a threshold. */
export function finalEstimate(rawTokens: number): number {
  return Math.ceil(rawTokens * safetyFactor);
}

/** A message before the 5 % of safety, as it is and with the placeholder in place of what trimming takes. */
export function tokensOf({ content }: RfcMessage): { full: number; trimmed: number } {
  if (typeof content === "string") {
    return { full: messageOverhead + textTokens(content), trimmed: messageOverhead + placeholderTokens };
  }
  let full = messageOverhead + partOverhead * content.length;
  let trimmed = full;
  for (const part of content) {
    const tokens = partTokens(part);
    full += tokens;
    trimmed += trimmedPartTokens(part) ?? tokens;
  }
  return { full, trimmed };
}

const safetyFactor = 1.05;
export const messageOverhead = 8;
export const partOverhead = 3;
const toolOverhead = 8;
// The JSON around a definition: property names, wrappers, lists of what is required.
const toolFactor = 1.2;
// The ids and type fields around a call or a result, in bytes.
export const wrapperBytes = 30;
export const imageTokens = 2000;

const placeholderTokens = textTokens(placeholder);
const placeholderResultTokens = bytesToTokens(Buffer.byteLength(placeholder) + wrapperBytes);

function partTokens(part: RfcPart): number {
  switch (part.type) {
    case "text":
      return textTokens(part.text);
    case "tool_use":
    case "tool_call":
      return bytesToTokens(
        Buffer.byteLength(part.name) + Buffer.byteLength(jsonAt(argsOf(part), "args")) + wrapperBytes,
      );
    case "tool_result":
      return bytesToTokens(Buffer.byteLength(part.content) + wrapperBytes);
    case "image":
      return imageTokens;
    default:
      return textTokens(jsonAt(part, "part"));
  }
}

/** Undefined for a part that trimming leaves as it is. */
function trimmedPartTokens(part: RfcPart): number | undefined {
  if (part.type === "text") return placeholderTokens;
  return part.type === "tool_result" ? placeholderResultTokens : undefined;
}

function toolTokens(tool: unknown, path: string): number {
  const fields = fieldsAt(tool, path);
  const name = stringAt(fields, "name", path);
  const description = optionalString(fields, "description", path) ?? "";
  const schema = jsonAt(fields.input_schema, `${path}.input_schema`);
  const bytes = Buffer.byteLength(name) + Buffer.byteLength(description) + Buffer.byteLength(schema);
  return bytesToTokens(Math.ceil(bytes * toolFactor)) + toolOverhead;
}

function textTokens(text: string): number {
  return bytesToTokens(Buffer.byteLength(text));
}

export function bytesToTokens(bytes: number): number {
  return Math.ceil(bytes / 3.5);
}
