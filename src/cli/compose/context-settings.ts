import type { ContextShares } from "../../compose/index.ts";
import type { Counter } from "../../tokens/index.ts";
import { loadConfig } from "../../workspace/index.ts";
import { chooseCounter } from "../choose-counters.ts";
import type { Call } from "../command.ts";
import { wholeNumber } from "../whole-number.ts";

export interface ContextFlags {
  readonly "max-context-tokens"?: string | undefined;
  readonly counter?: string | undefined;
  readonly model?: string | undefined;
}

export interface ContextSettings {
  readonly counter: Counter;
  readonly maxTokens: number;
  readonly shares: ContextShares;
}

/** Each from the command line, else from the configuration. */
export async function readContextSettings(call: Call<ContextFlags>): Promise<ContextSettings> {
  const { "max-context-tokens": asked } = call.options;
  const maxAsked = asked === undefined ? undefined : wholeNumber(asked, "max-context-tokens", 0);
  const { context } = (await loadConfig(call)).values;
  const { project, fabric, prior_work: priorWork } = context.shares;
  return {
    counter: await chooseCounter(call, "bytes/4"),
    maxTokens: maxAsked ?? context.max_tokens,
    shares: { project, fabric, priorWork },
  };
}
