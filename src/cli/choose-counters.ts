import { type Counter, counterNameForModel, counterNames, createCounter } from "../tokens/index.ts";
import { loadConfig } from "../workspace/index.ts";
import type { Call, OptionSpec } from "./command.ts";

/** The options of every command that counts. */
export const counterOptions: CounterOptionSpecs = {
  counter: { value: "NAME", choices: counterNames, summary: "how tokens are counted" },
  model: { value: "ID", summary: "the model that is meant; chooses the counter of its family" },
};

interface CounterOptionSpecs {
  readonly counter: OptionSpec & { readonly value: string; readonly list?: never };
  readonly model: OptionSpec & { readonly value: string; readonly list?: never };
}

interface CounterFlags<Named> {
  readonly counter?: Named | undefined;
  readonly model?: string | undefined;
}

/** `--counter`, else the counter of `--model`, else the configuration's, else the command's own default. */
export async function chooseCounter(call: Call<CounterFlags<string>>, fallback: string): Promise<Counter> {
  const name = call.options.counter ?? (await unnamedCounter(call, fallback));
  tellUnusedModel([name], call);
  return createCounter(resolveAuto(name, call));
}

/** The same where `--counter` is a list: each only once. */
export async function chooseCounters(
  call: Call<CounterFlags<readonly string[]>>,
  fallback: string,
): Promise<Counter[]> {
  const names = call.options.counter ?? [await unnamedCounter(call, fallback)];
  tellUnusedModel(names, call);
  const resolved = new Set(names.map((name) => resolveAuto(name, call)));
  return Promise.all([...resolved].map((name) => createCounter(name)));
}

/** For a command to which the model means more than a counter: beside --counter it is not without effect, and nothing is told. */
export function modelForCounter({ counter = "auto", model }: CounterFlags<string>): string | undefined {
  return counter === "auto" ? model : undefined;
}

type CounterCall = Call<Pick<CounterFlags<unknown>, "model">>;

async function unnamedCounter({ options, cwd, env }: CounterCall, fallback: string): Promise<string> {
  if (options.model !== undefined) return "auto";
  const { values } = await loadConfig({ cwd, env });
  return values.counter ?? fallback;
}

function tellUnusedModel(names: readonly string[], { options: { model }, output }: CounterCall): void {
  if (model !== undefined && !names.includes("auto"))
    output.note(`--model has no effect with --counter ${names.join(",")}`);
}

function resolveAuto(chosen: string, { options: { model }, output }: CounterCall): string {
  if (chosen !== "auto") return chosen;
  const { name, known } = counterNameForModel(model);
  if (!known) {
    const why = model === undefined ? "no --model given" : `unknown model "${model}"`;
    output.note(`${why}: counting with ${name}, which counts highest`);
  }
  return name;
}
