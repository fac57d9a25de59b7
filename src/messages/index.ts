export { type CountOptions, countMessage, countMessages } from "./count-messages.ts";
export { type CountToolsOptions, countTools } from "./count-tools.ts";
export type { FormatName, ToolChoice } from "./message-format.ts";
