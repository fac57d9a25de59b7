import { type Counter, counterNameForModel, counterNames, createCounter } from "../tokens/index.ts";
import { loadConfig } from "../workspace/index.ts";
import type { Call, OptionSpec } from "./command.ts";

/** The options of every command that counts. */
export const counterOptions: CounterOptionSpecs = {
  counter: { value: "NAME[,NAME...]", list: true, choices: counterNames, summary: "how tokens are counted" },
  model: { value: "ID", summary: "the model that is meant; chooses the counter of its family" },
};

interface CounterOptionSpecs {
  readonly counter: OptionSpec & { readonly value: string; readonly list: true };
  readonly model: OptionSpec & { readonly value: string };
}

type CounterCall = Call<{
  readonly counter?: readonly string[] | undefined;
  readonly model?: string | undefined;
}>;

/** `--counter`, else the counter of `--model`, else the configuration's, else the command's own default. Each only once. */
export async function chooseCounters(call: CounterCall, fallback: string): Promise<Counter[]> {
  const { counter, model } = call.options;
  const names = counter ?? [model === undefined ? await configuredCounter(call, fallback) : "auto"];
  const resolved = names.map((name) => (name === "auto" ? nameOfAuto(call) : name));
  if (model !== undefined && !names.includes("auto"))
    call.output.note(`--model has no effect with --counter ${names.join(",")}`);
  return Promise.all([...new Set(resolved)].map((name) => createCounter(name)));
}

async function configuredCounter({ cwd, env }: CounterCall, fallback: string): Promise<string> {
  const { values } = await loadConfig({ cwd, env });
  return values.counter ?? fallback;
}

function nameOfAuto({ options: { model }, output }: CounterCall): string {
  const { name, known } = counterNameForModel(model);
  if (!known) {
    const why = model === undefined ? "no --model given" : `unknown model "${model}"`;
    output.note(`${why}: counting with ${name}, which counts highest`);
  }
  return name;
}
