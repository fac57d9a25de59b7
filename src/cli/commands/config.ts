import { shownAddress } from "../../core/store/index.ts";
import { printable } from "../../core/text/index.ts";
import { keyOf, type LoadedConfig, loadConfig, noteIgnoredStore, noteLeftOut, renderTable } from "../../host/index.ts";
import { type Command, defineCommand } from "../command.ts";
import { trustOption } from "../shared-options.ts";

/** What to show for a key without a value. */
const absent: Readonly<Record<string, string>> = {
  counter: "(each command has its own default)",
  tools: "(those found)",
  company: "(none)",
};

export const configCommand: Command = defineCommand({
  options: { ...trustOption },
  details: `Values come from .plimsoll/config.yaml, then from $XDG_CONFIG_HOME/plimsoll/config.yaml (~/.config by
default), then from the built-in defaults, key by key. The first file is searched from the current directory up to
the root of the repository or HOME.`,
  examples: [
    { line: "plimsoll config", meaning: "every value and where it comes from" },
    { line: "plimsoll config --json | jq .values.context", meaning: "JSON for programs" },
  ],
  async run(call) {
    const { cwd, env, output } = call;
    const loaded = withoutPassword(await loadConfig({ cwd, env }));
    noteLeftOut(loaded.leftOut, call);
    noteIgnoredStore(loaded, call);
    const lines = renderTable([["key", "value", "from"], ...rowsOf(loaded)], ["left", "left", "left"]);
    const text = [output.style.dim(lines[0]!), ...lines.slice(1)].join("\n");
    return { json: { values: loaded.values, sources: loaded.sources }, text };
  },
});

/** The address of a store may have a password. */
function withoutPassword(loaded: LoadedConfig): LoadedConfig {
  const { values } = loaded;
  return { ...loaded, values: { ...values, store: shownAddress(values.store) } };
}

function rowsOf({ values, sources }: LoadedConfig): string[][] {
  const found: string[][] = [];
  const visit = (value: unknown, path: readonly string[]) => {
    const key = keyOf(path);
    const source = sources[key];
    if (source !== undefined) found.push([key, shown(value, key), source]);
    else for (const [name, child] of Object.entries(value as object)) visit(child, [...path, name]);
  };
  for (const [key, value] of Object.entries(values)) visit(value, [key]);
  return found.map((row) => row.map(printable));
}

function shown(value: unknown, key: string): string {
  if (value === undefined) return absent[key] ?? "(none)";
  return typeof value === "string" ? value : JSON.stringify(value);
}
