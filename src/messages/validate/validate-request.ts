import { ContextError } from "../../errors.ts";
import type { FormatName, MessageFormat } from "../message-format.ts";
import { aiSdkRules } from "./ai-sdk.ts";
import { anthropicRules } from "./anthropic/rules.ts";
import { openAiRules } from "./openai.ts";
import { openRequest, type Provider, providers, readRequest } from "./read-request.ts";
import { responsesRules } from "./responses.ts";
import { rfcRules } from "./rfc.ts";
import type { Problem, RuleSet } from "./rule-set.ts";

export interface ValidateOptions {
  /** Whose API is meant. Absent: told by the format and the request's model. */
  provider?: Provider | undefined;
  /** Absent: recognised from the messages. */
  format?: FormatName | undefined;
  /** Also what sources disagree about, and what only counts for a request: alternating roles, a last message of the user, … */
  strict?: boolean | undefined;
}

/** Everything in a request, or in a bare list of messages, that its provider would refuse, in the order of the messages.
 *  A message of the wrong shape is a problem too, of rule `shape`; only wrong arguments throw. */
export function validateRequest(request: object, options: ValidateOptions = {}): Problem[] {
  checkOptions(options);
  const opened = openRequest(request, options);
  const { checked, problems } = readRequest(opened);
  const { always, strict } = rules[opened.format.name];
  const checks = options.strict === true ? [...always, ...strict] : always;
  // Not spread into one call of push: some hundred thousand arguments overflow the stack.
  for (const check of checks) for (const found of check(checked)) problems.push(found);
  return inOrder(problems);
}

/** The format that `validateRequest` takes the request for. */
export function formatOfRequest(request: object, options: ValidateOptions = {}): FormatName {
  checkOptions(options);
  return openRequest(request, options).format.name;
}

const rules: Readonly<Record<MessageFormat["name"], RuleSet>> = {
  anthropic: anthropicRules,
  openai: openAiRules,
  responses: responsesRules,
  "ai-sdk": aiSdkRules,
  rfc: rfcRules,
};

function checkOptions({ provider, strict }: ValidateOptions): void {
  if (provider !== undefined && !providers.includes(provider)) {
    const hint = `Providers are ${providers.join(", ")}.`;
    throw new ContextError("invalid_argument", `unknown provider ${JSON.stringify(provider)}`, { hint });
  }
  if (strict !== undefined && typeof strict !== "boolean") {
    throw new ContextError("invalid_argument", `strict must be true or false, not ${JSON.stringify(strict)}`);
  }
}

/** What is wrong with the request itself comes first. */
function inOrder(problems: Problem[]): Problem[] {
  const indexOf = ({ path }: Problem) => Number(/^(?:messages|input)\[(\d+)\]/.exec(path)?.[1] ?? -1);
  return problems
    .map((each) => ({ each, index: indexOf(each) }))
    .sort((a, b) => a.index - b.index)
    .map(({ each }) => each);
}
