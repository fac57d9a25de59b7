import { printable } from "../../text/index.ts";
import { keyOf, type LoadedConfig, loadConfig } from "../../workspace/index.ts";
import { type Command, defineCommand } from "../command.ts";
import { renderTable } from "../table.ts";
import { noteIgnoredStore, noteLeftOut, trustOption } from "../trust.ts";

/** What happens where a key has no value. */
const absent: Readonly<Record<string, string>> = {
  counter: "(each command's own)",
  tools: "(those found)",
  company: "(none)",
};

export const configCommand: Command = defineCommand({
  options: { ...trustOption },
  details: `Read are .plimsoll/config.yaml, looked for from the current directory up to the root of the repository or HOME,
over $XDG_CONFIG_HOME/plimsoll/config.yaml (~/.config by default), over the built-in defaults, key by key.`,
  examples: [
    { line: "plimsoll config", meaning: "every value and where it comes from" },
    { line: "plimsoll config --json | jq .values.context", meaning: "for programs" },
  ],
  async run(call) {
    const { cwd, env, output } = call;
    const loaded = await loadConfig({ cwd, env });
    noteLeftOut(loaded.leftOut, call);
    noteIgnoredStore(loaded, call);
    const lines = renderTable([["key", "value", "from"], ...rowsOf(loaded)], ["left", "left", "left"]);
    const text = [output.style.dim(lines[0]!), ...lines.slice(1)].join("\n");
    return { json: { values: loaded.values, sources: loaded.sources }, text };
  },
});

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
