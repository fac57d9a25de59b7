export { isSameJson } from "./cache/snapshot.ts";
export { countMessage, countMessages, countSystem } from "./count-messages.ts";
export type { CountOptions, SealedCounting } from "./count-parts.ts";
export { type CountToolsOptions, countTools } from "./count-tools.ts";
export { failAt, fieldsAt, jsonAt, stringAt, typeName } from "./fields.ts";
export { hashMessage } from "./hash-message.ts";
export {
  type CountedMessage,
  type CountedPart,
  createMessageLens,
  type LensOptions,
  type MessageLens,
} from "./lens.ts";
export {
  type CallName,
  type FormatName,
  formatNames,
  type Part,
  type PartEdit,
  type PartEdits,
  type PartKind,
  type Piece,
  type Role,
  type ToolChoice,
} from "./message-format.ts";
export { type NormaliseOptions, normaliseMessages } from "./normalise/normalise-messages.ts";
export type { Problem } from "./validate/rule-set.ts";
export { formatOfRequest, type ValidateOptions, validateRequest } from "./validate/validate-request.ts";
