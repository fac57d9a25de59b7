/** From what a caller has, a request or a bare list, to what the rules read. */
import { ContextError } from "../../errors.ts";
import { familyOfModel } from "../../tokens/index.ts";
import { type Fields, fieldsAt, typeName } from "../fields.ts";
import { chooseFormat, formats } from "../formats/index.ts";
import type { FormatName, MessageFormat } from "../message-format.ts";
import { type CheckedRequest, type Problem, problem, type Turn } from "./rule-set.ts";

export const providers = ["anthropic", "openai"] as const;
export type Provider = (typeof providers)[number];

export interface ReadRequest {
  readonly checked: CheckedRequest;
  /** Of the shape: what could not be read. */
  readonly problems: Problem[];
}

export interface OpenedRequest {
  readonly messages: unknown;
  readonly fields: Fields | undefined;
  readonly key: "messages" | "input";
  readonly model: string | undefined;
  readonly format: MessageFormat;
}

export interface OpenOptions {
  readonly provider?: Provider | undefined;
  readonly format?: FormatName | undefined;
}

/** Where the messages are and what format they have; reads none of them. */
export function openRequest(request: object, options: OpenOptions): OpenedRequest {
  const { messages, fields, key } = messagesOf(request, options.format);
  const model = typeof fields?.model === "string" ? fields.model : undefined;
  const format = formatFor(Array.isArray(messages) ? messages : [], { ...options, model, key });
  return { messages, fields, key, model, format };
}

export function readRequest({ messages, fields, key, model, format }: OpenedRequest): ReadRequest {
  const problems = [...listProblems(messages, key), ...toolProblems(fields?.tools, format)];
  const list: readonly unknown[] = Array.isArray(messages) ? messages : [];
  const turns = list.map((message, index) => readTurn(message, `${key}[${index}]`, { format, problems }));
  return { checked: { turns, fields, model }, problems };
}

type MessagesKey = OpenedRequest["key"];

function messagesOf(request: object, format: FormatName | undefined) {
  if (Array.isArray(request)) {
    return { messages: request as unknown, fields: undefined, key: "messages" as MessagesKey };
  }
  if (typeof request !== "object" || request === null) {
    throw new ContextError(
      "invalid_argument",
      `request must be an array or an object, not ${typeName(request)}`,
    );
  }
  const fields = request as Fields;
  const keys: readonly MessagesKey[] = format === "responses" ? ["input", "messages"] : ["messages", "input"];
  const key = keys.find((each) => fields[each] !== undefined);
  if (key !== undefined) return { messages: fields[key], fields, key };
  throw new ContextError("invalid_argument", "request has neither messages nor input", {
    hint: "Pass a list of messages, or the request that holds it.",
  });
}

interface FormatHints extends OpenOptions {
  readonly model: string | undefined;
  readonly key: MessagesKey;
}

function formatFor(
  messages: readonly unknown[],
  { provider, format, model, key }: FormatHints,
): MessageFormat {
  if (format !== undefined) {
    const other = provider === "anthropic" ? ["openai", "responses"] : ["anthropic"];
    if (provider !== undefined && other.includes(format)) {
      throw new ContextError("invalid_argument", `${provider} has no message format "${format}"`);
    }
    return chooseFormat(messages, format);
  }
  if (key === "input") return chooseFormat(messages, "responses");
  if (provider === "anthropic") return chooseFormat(messages, "anthropic");
  const names: readonly FormatName[] | undefined = provider && ["openai", "responses"];
  const claimed = claimingFormat(messages, names);
  const isOpenAi = provider === "openai" || isOpenAiModel(model);
  return claimed ?? chooseFormat(messages, isOpenAi ? "openai" : undefined);
}

function claimingFormat(
  messages: readonly unknown[],
  names: readonly FormatName[] | undefined,
): MessageFormat | undefined {
  const candidates = formats.filter(({ name }) => names === undefined || names.includes(name));
  for (const message of messages) {
    if (typeof message !== "object" || message === null) continue;
    const format = candidates.find((each) => each.claims(message as Fields));
    if (format !== undefined) return format;
  }
  return undefined;
}

/** Plain text in known roles is a message of every format; the model tells whose it is. */
function isOpenAiModel(model: string | undefined): boolean {
  if (model === undefined || model.toLowerCase().includes("claude")) return false;
  return familyOfModel(model) !== undefined;
}

function listProblems(messages: unknown, key: MessagesKey): Problem[] {
  // The responses API takes a plain text too.
  if (key === "input" && typeof messages === "string") return [];
  if (!Array.isArray(messages)) return [problem("shape", key, `must be an array, not ${typeName(messages)}`)];
  return messages.length > 0 ? [] : [problem("no-messages", key, "is empty; a request needs a message")];
}

function readTurn(
  message: unknown,
  path: string,
  { format, problems }: { format: MessageFormat; problems: Problem[] },
): Turn {
  try {
    const fields = fieldsAt(message, path);
    return { path, role: format.read(fields, path).role, message: fields, isMalformed: false };
  } catch (error) {
    problems.push(shapeProblem(error));
    return { path, role: undefined, message: {}, isMalformed: true };
  }
}

function toolProblems(tools: unknown, format: MessageFormat): Problem[] {
  // The AI SDK takes an object of tools by name.
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

/** Reading says `path what is wrong`; a path has no spaces. */
function shapeProblem(error: unknown): Problem {
  if (!(error instanceof ContextError) || error.code !== "invalid_message") throw error;
  const [path = ""] = error.message.split(" ", 1);
  return problem("shape", path, error.message.slice(path.length + 1));
}
