import { closest } from "../../core/text/index.ts";
import {
  type Counter,
  type CounterName,
  counterNameForModel,
  createCounter,
  createDraftCounter,
} from "../../core/tokens/index.ts";
import type { Caller } from "../print/output.ts";
import type { Config } from "./config.ts";
import { loadConfig } from "./load-config.ts";

/** How a caller asks for tokens to be counted. */
export interface CounterChoice<Named> {
  readonly counter?: Named | undefined;
  readonly model?: string | undefined;
}

type CounterCaller<Named> = Caller & { readonly options: CounterChoice<Named> };

interface CounterSettings {
  /** What the configuration says about counting. It is loaded if absent. */
  readonly config?: Pick<Config, "counter" | "model"> | undefined;
  /** Leaves out the note that no model is set. */
  readonly quiet?: boolean | undefined;
  /** The texts to count are drafts of one text. */
  readonly drafts?: boolean | undefined;
}

/** Chooses `--counter`, or else the counter of `--model`, or else of the configuration, or else the command's
 *  default. */
export async function chooseCounter(
  call: CounterCaller<string>,
  fallback: string,
  settings: CounterSettings = {},
): Promise<Counter> {
  const { counter, model } = call.options;
  const given = counter === undefined ? undefined : [counter];
  const options = { model, counter: given };
  const [chosen] = await chooseCounters({ ...call, options }, fallback, settings);
  return chosen!;
}

/** Like `chooseCounter` for a list of counters, each once. */
export async function chooseCounters(
  call: CounterCaller<readonly string[]>,
  fallback: string,
  { config, quiet = false, drafts = false }: CounterSettings = {},
): Promise<Counter[]> {
  const { cwd, env, options, output } = call;
  const { counter, model } = options;
  // With a model, or with counters that depend on none, the configuration is not needed.
  const isComplete = model !== undefined || (counter !== undefined && !counter.includes("auto"));
  const configured = isComplete ? {} : (config ?? (await loadConfig({ cwd, env })).values);
  const unnamed = configured.counter ?? (model === undefined && configured.model === undefined ? fallback : "auto");
  const names = counter ?? [unnamed];
  if (model !== undefined && !names.includes("auto"))
    output.note(`--model has no effect with --counter ${names.join(",")}`);
  const about = { model: model ?? configured.model, quiet };
  const resolved = new Set(names.map((name) => resolveAuto(name, about, call)));
  return Promise.all([...resolved].map((name) => (drafts ? createDraftCounter(name) : createCounter(name))));
}

/** Returns the model only if the counter depends on it, so that no note about an unused --model appears. */
export function modelForCounter({ counter = "auto", model }: CounterChoice<string>): string | undefined {
  return counter === "auto" ? model : undefined;
}

function resolveAuto(
  chosen: string,
  { model, quiet }: { readonly model: string | undefined; readonly quiet: boolean },
  { output }: Caller,
): CounterName {
  // createCounter refuses unknown names and lists the known ones.
  if (chosen !== "auto") return chosen as CounterName;
  const { name, known } = counterNameForModel(model);
  const meant = model === undefined ? undefined : meantModel(model);
  if (meant !== undefined) {
    output.note(`model "${model}" looks misspelt. Did you mean "${meant}"? Counting with ${name}`);
    return name;
  }
  if (!known && !(quiet && model === undefined)) {
    const why = model === undefined ? "no --model given" : `unknown model "${model}"`;
    output.note(`${why}, so tokens are counted with ${name}, which gives the highest numbers`);
  }
  return name;
}

/** Words of the names of Claude models (2026-11). Any id with "claude" in it has a family, so a wrong word goes
 *  unnoticed otherwise, and with it the wrong family. */
const modelWords = ["claude", "sonnet", "haiku", "fable", "mythos"];

/** Returns the model's id with its misspelt word corrected, or `undefined` if every word may be right. */
function meantModel(model: string): string | undefined {
  const words = model.toLowerCase().match(/[a-z]{5,}/g) ?? [];
  const wrong = words.find((word) => !modelWords.includes(word) && closest(word, modelWords) !== undefined);
  return wrong === undefined ? undefined : model.toLowerCase().replace(wrong, closest(wrong, modelWords)!);
}
