import { shownAddress } from "../../core/store/index.ts";
import { printable } from "../../core/text/index.ts";
import { joinKey, loadConfig, noteIgnoredStore, noteLeftOut, renderTable } from "../../host/index.ts";
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
    const loaded = await loadConfig({ cwd, env });
    noteLeftOut(loaded.leftOut, call);
    noteIgnoredStore(loaded, call);
    const { sources } = loaded;
    // The address of a store may have a password.
    const values = { ...loaded.values, store: shownAddress(loaded.values.store) };
    const rows: string[][] = [];
    const visit = (value: unknown, path: readonly string[]) => {
      const key = joinKey(path);
      const source = sources[key];
      if (source === undefined) {
        for (const [name, child] of Object.entries(value as object)) visit(child, [...path, name]);
        return;
      }
      const text = typeof value === "string" ? value : JSON.stringify(value);
      rows.push([key, text ?? absent[key] ?? "(none)", source].map(printable));
    };
    for (const [key, value] of Object.entries(values)) visit(value, [key]);
    const lines = renderTable([["key", "value", "from"], ...rows], ["left", "left", "left"], output.style);
    return { json: { values, sources }, text: lines.join("\n") };
  },
});
