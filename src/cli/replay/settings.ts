/** From the command line and the configuration to what a replay is run with. */
import { type Prices, priceOf, providerOfModel } from "../../billing/index.ts";
import type { ReplayPolicy } from "../../replay/index.ts";
import { printable } from "../../text/index.ts";
import type { Counter } from "../../tokens/index.ts";
import { loadConfig } from "../../workspace/index.ts";
import { checkWindow } from "../check-window.ts";
import { chooseCounter, modelForCounter } from "../choose-counters.ts";
import type { Call } from "../command.ts";
import { noteLeftOut } from "../trust.ts";
import { wholeNumber } from "../whole-number.ts";

export interface ReplaySettings {
  readonly windows: readonly number[];
  /** Those that were asked for, in that order. */
  readonly policies: readonly ReplayPolicy[];
  readonly reserve: number;
  /** Absent: `defaultPrefixTokens`, or 0 for a session that has its own. */
  readonly prefixTokens: number | undefined;
  readonly keep: number;
  /** Of the rfc policies. */
  readonly threshold: number;
  readonly counter: Counter;
  readonly model: string | undefined;
  /** Whose prices and cache rules. */
  readonly billedAs: string;
  readonly prices: Prices;
}

export interface ReplayFlags {
  readonly window?: readonly string[] | undefined;
  readonly policy?: readonly string[] | undefined;
  readonly reserve?: string | undefined;
  readonly "prefix-tokens"?: string | undefined;
  readonly keep?: string | undefined;
  readonly counter?: string | undefined;
  readonly model?: string | undefined;
  readonly html?: string | undefined;
}

/** Tools and system text of a coding agent; recordings leave them out. */
export const defaultPrefixTokens = 20_000;

const defaultPolicies = ["none", "rfc", "economic"];

export async function readSettings(call: Call<ReplayFlags>): Promise<ReplaySettings> {
  const { options, cwd, env } = call;
  const { values: config, leftOut } = await loadConfig({ cwd, env });
  noteLeftOut(
    leftOut.filter(({ key }) => key === "prices"),
    call,
  );
  const { history } = config;
  const wholeOf = (name: "reserve" | "prefix-tokens" | "keep"): number | undefined => {
    const value = options[name];
    return value === undefined ? undefined : wholeNumber(value, name, 0);
  };
  // The model also means prices.
  const counting = { counter: options.counter, model: modelForCounter(options) };
  const settings = {
    windows: [...new Set((options.window ?? ["200000"]).map((value) => wholeNumber(value, "window", 1)))],
    // Checked against the choices already.
    policies: [...new Set(options.policy ?? defaultPolicies)] as ReplayPolicy[],
    reserve: wholeOf("reserve") ?? history.reserve,
    prefixTokens: wholeOf("prefix-tokens"),
    keep: wholeOf("keep") ?? history.keep,
    threshold: history.threshold,
    counter: await chooseCounter({ ...call, options: counting }, "exact:o200k"),
    model: options.model,
    billedAs: whoBills(call, config.prices),
    prices: config.prices,
  };
  const { reserve, prefixTokens = 0 } = settings;
  for (const window of settings.windows) checkWindow(window, { reserve, prefixTokens });
  return settings;
}

function whoBills({ options: { model }, output }: Call<ReplayFlags>, prices: Prices): string {
  if (model === undefined) return "anthropic's default";
  const provider = providerOfModel(model) ?? "anthropic";
  if (!priceOf({ provider, model, prices }).isDefault) return model;
  output.note(`no prices are known for "${printable(model)}": billed as ${provider}'s default`);
  return `${provider}'s default`;
}
