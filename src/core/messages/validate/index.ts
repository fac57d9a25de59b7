import { ContextError } from "../../errors.ts";
import { argumentChecks, type Fields, refuseValue } from "../../text/index.ts";
import { familyOfModel } from "../../tokens/index.ts";
import { fieldsAt, typeName } from "../fields.ts";
import { chooseFormat, formats } from "../formats/index.ts";
import type { FormatName, MessageFormat } from "../message-format.ts";
import { aiSdkRules } from "./ai-sdk.ts";
import { anthropicRules } from "./anthropic.ts";
import { createBindingCheck } from "./bound-thinking.ts";
import { geminiRules } from "./gemini.ts";
import { openAiRules } from "./openai.ts";
import { responsesRules } from "./responses.ts";
import { rfcRules } from "./rfc.ts";
import { type CheckedMessage, type Problem, problem, type RuleSet } from "./rule-set.ts";

/** The settings of `validateRequest` and `formatOfRequest`. */
export interface ValidateOptions {
  /** Whose API receives the request. By default it is derived from the format and the request's model. */
  readonly provider?: (typeof providers)[number] | undefined;
  /** The shape of the messages. By default it is detected from the messages. */
  readonly format?: FormatName | undefined;
  /** Also checks rules on which sources disagree, and rules for whole requests only, such as alternating roles.
   * @default false */
  readonly strict?: boolean | undefined;
}

/**
 * Returns everything in a request, or in a bare list of messages, that its provider would refuse, in the order of the
 * messages. A malformed message is a problem with the rule `shape`. Throws only if the arguments are wrong.
 *
 * Also takes a list of requests in the order in which they were sent. Only several requests show thinking that is bound
 * to text which has changed since. Paths then begin with the request, as in `[3].messages[2].content[0]`.
 *
 * @example
 * ```ts
 * import { validateRequest } from "plimsoll/messages";
 *
 * const messages = [{ role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: "ok" }] }];
 * for (const { path, rule, message } of validateRequest(messages)) console.log(`${path}: ${message} (${rule})`);
 * ```
 */
export function validateRequest(request: object, options: ValidateOptions = {}): Problem[] {
  checkOptions(options);
  if (isRequestList(request)) return validateAll(request, options);
  const { messages, fields, key, model, format } = openRequest(request, options);
  const problems = [...checkList(messages, key), ...checkTools(fields?.tools, format)];
  const list: readonly unknown[] = Array.isArray(messages) ? messages : [];
  const turns = list.map((message, index) => readTurn(message, `${key}[${index}]`, { format, problems }));
  const checked = { turns, fields, model };
  const { always, strict } = rules[format.name];
  const checks = options.strict === true ? [...always, ...strict] : always;
  // Do not spread into one push call: some hundred thousand arguments overflow the stack.
  for (const check of checks) for (const found of check(checked)) problems.push(found);
  return sortProblems(problems);
}

/**
 * Returns the message format of a request: the one that `validateRequest` checks it against.
 *
 * @example
 * ```ts
 * import { formatOfRequest } from "plimsoll/messages";
 *
 * console.log(formatOfRequest({ model: "gpt-5", messages: [{ role: "user", content: "Hello" }] }));
 * ```
 */
export function formatOfRequest(request: object, options: ValidateOptions = {}): FormatName {
  checkOptions(options);
  return openRequest(request, options).format.name;
}

/** Whether a value is a list of requests, and not of messages. */
export function isRequestList(value: unknown): value is readonly object[] {
  if (!Array.isArray(value) || value.length === 0) return false;
  return value.every((each) => {
    const { role, type, messages, input, contents } = Object(each) as Fields;
    return role === undefined && type === undefined && [messages, input, contents].some(Array.isArray);
  });
}

function validateAll(requests: readonly object[], options: ValidateOptions): Problem[] {
  const checkBinding = createBindingCheck();
  return requests.flatMap((request, index) => {
    const problems = validateRequest(request, options);
    const bound = formatOfRequest(request, options) === "anthropic" ? checkBinding(request as Fields) : undefined;
    const all = bound === undefined ? problems : sortProblems([...problems, bound]);
    return all.map((each) => ({ ...each, path: `[${index}].${each.path}` }));
  });
}

/** What each provider refuses. To add the rules of a message format: a file in this folder and a line here. */
const rules: Readonly<Record<FormatName, RuleSet>> = {
  anthropic: anthropicRules,
  openai: openAiRules,
  responses: responsesRules,
  "ai-sdk": aiSdkRules,
  gemini: geminiRules,
  rfc: rfcRules,
};

function checkOptions({ provider, strict }: ValidateOptions): void {
  if (provider !== undefined) argumentChecks.oneOf(providers)("provider", provider);
  if (strict !== undefined && typeof strict !== "boolean") refuseValue("strict", strict, { wanted: "true or false" });
}

/** Sorts problems by message. Problems of the request itself come first. */
function sortProblems(problems: Problem[]): Problem[] {
  const indexOf = ({ path }: Problem) => Number(/^(?:messages|input|contents)\[(\d+)\]/.exec(path)?.[1] ?? -1);
  return problems
    .map((each) => ({ each, index: indexOf(each) }))
    .sort((a, b) => a.index - b.index)
    .map(({ each }) => each);
}

const providers = ["anthropic", "openai"] as const;

interface OpenedRequest {
  readonly messages: unknown;
  readonly fields: Fields | undefined;
  readonly key: "messages" | "input" | "contents";
  readonly model: string | undefined;
  readonly format: MessageFormat;
}

/** Finds the messages and their format, without reading the messages. */
function openRequest(request: object, options: ValidateOptions): OpenedRequest {
  const { messages, fields, key } = findMessages(request, options.format);
  const model = typeof fields?.model === "string" ? fields.model : undefined;
  const format = findFormat(Array.isArray(messages) ? messages : [], { ...options, model, key });
  return { messages, fields, key, model, format };
}

type MessagesKey = OpenedRequest["key"];

function findMessages(request: object, format: FormatName | undefined) {
  if (Array.isArray(request)) {
    return { messages: request as unknown, fields: undefined, key: "messages" as MessagesKey };
  }
  if (typeof request !== "object" || request === null) {
    throw new ContextError("invalid_argument", `request must be an array or an object, not ${typeName(request)}`);
  }
  const fields = request as Fields;
  const isInputFirst = format === "responses";
  const keys: readonly MessagesKey[] = isInputFirst
    ? ["input", "messages", "contents"]
    : ["messages", "input", "contents"];
  const key = keys.find((each) => fields[each] !== undefined);
  if (key !== undefined) return { messages: fields[key], fields, key };
  throw new ContextError("invalid_argument", "request has neither messages, input nor contents", {
    hint: "Pass a list of messages, or the request that holds it.",
  });
}

function findFormat(
  messages: readonly unknown[],
  { provider, format, model, key }: ValidateOptions & { readonly model: string | undefined; readonly key: MessagesKey },
): MessageFormat {
  if (format !== undefined) {
    const other = provider === "anthropic" ? ["openai", "responses"] : ["anthropic"];
    if (provider !== undefined && other.includes(format)) {
      throw new ContextError("invalid_argument", `${provider} has no message format "${format}"`);
    }
    return chooseFormat(messages, format);
  }
  if (key === "input") return chooseFormat(messages, "responses");
  if (key === "contents") return chooseFormat(messages, "gemini");
  if (provider === "anthropic") return chooseFormat(messages, "anthropic");
  const names: readonly FormatName[] | undefined = provider && ["openai", "responses"];
  const claimed = findClaim(messages, names);
  if (claimed !== undefined) return claimed;
  // Plain text in a common role fits every format. The model then shows whose it is.
  const isOpenAiModel = model !== undefined && !/claude/i.test(model) && familyOfModel(model) !== undefined;
  return chooseFormat(messages, provider === "openai" || isOpenAiModel ? "openai" : undefined);
}

function findClaim(messages: readonly unknown[], names: readonly FormatName[] | undefined): MessageFormat | undefined {
  const candidates = formats.filter(({ name }) => names === undefined || names.includes(name));
  for (const message of messages) {
    if (typeof message !== "object" || message === null) continue;
    const format = candidates.find((each) => each.claims(message as Fields));
    if (format !== undefined) return format;
  }
  return undefined;
}

function checkList(messages: unknown, key: MessagesKey): Problem[] {
  // The responses API accepts plain text too.
  if (key === "input" && typeof messages === "string") return [];
  if (!Array.isArray(messages)) return [problem("shape", key, `must be an array, not ${typeName(messages)}`)];
  return messages.length > 0 ? [] : [problem("no-messages", key, "is empty; a request needs a message")];
}

function readTurn(
  message: unknown,
  path: string,
  { format, problems }: { format: MessageFormat; problems: Problem[] },
): CheckedMessage {
  try {
    const fields = fieldsAt(message, path);
    return { path, role: format.read(fields, path).role, message: fields, isMalformed: false };
  } catch (error) {
    problems.push(shapeProblem(error));
    return { path, role: undefined, message: {}, isMalformed: true };
  }
}

function checkTools(tools: unknown, format: MessageFormat): Problem[] {
  // The AI SDK has tools as an object, by name.
  if (tools === undefined || tools === null || format.name === "ai-sdk") return [];
  if (!Array.isArray(tools)) return [problem("shape", "tools", `must be an array, not ${typeName(tools)}`)];
  return tools.flatMap((tool, index) => {
    const path = `tools[${index}]`;
    try {
      format.readTool(fieldsAt(tool, path), path);
      return [];
    } catch (error) {
      return shapeProblem(error);
    }
  });
}

/** An error's message is `path problem`. A path has no spaces. */
function shapeProblem(error: unknown): Problem {
  if (!(error instanceof ContextError) || error.code !== "invalid_message") throw error;
  const [path = ""] = error.message.split(" ", 1);
  return problem("shape", path, error.message.slice(path.length + 1));
}
