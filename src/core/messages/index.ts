export { type BindingChange, type BoundParts, bindsThinking, findBindingChange } from "./bound-prefix.ts";
export { filesOf, inputOf, noteIn, replacedIn, subjectKeys, subjectOf, textsIn, textsOf } from "./call-input.ts";
export { countMessages, countSystem, countTools } from "./count-messages.ts";
export type { CountOptions, SealedCounting } from "./count-parts.ts";
export { failAt, fieldsAt, jsonAt, stringAt, typeName } from "./fields.ts";
export { geminiSystemText, isGivenId } from "./formats/gemini.ts";
export { withFramedResults } from "./framed-results.ts";
export { hashMessage, isMessageContent, isResultBlock, nameMessage } from "./hash-message.ts";
export { isSameJson, takeSnapshot } from "./json-snapshot.ts";
export {
  type CountedMessage,
  type CountedPart,
  createMessageLens,
  type MessageLens,
  rememberReadings,
} from "./lens.ts";
export {
  type FormatName,
  formatNames,
  type PartEdit,
  type Role,
} from "./message-format.ts";
export { normaliseMessages } from "./normalise-messages.ts";
export { formatOfRequest, isRequestList, type ValidateOptions, validateRequest } from "./validate/index.ts";
export type { Problem } from "./validate/rule-set.ts";
