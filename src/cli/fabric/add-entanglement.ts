import { ContextError } from "../../errors.ts";
import { type Command, defineCommand } from "../command.ts";
import { addEntry } from "./add-entry.ts";
import { fabricOptions } from "./open-fabric.ts";

export const addEntanglementCommand: Command = defineCommand({
  arguments: [{ name: "SIGNATURE", summary: "how others use it, in one line" }],
  options: {
    package: { value: "NAME", summary: "where it lives: entanglements are shown by package" },
    kind: { value: "KIND", summary: "what it is, in a word: function, type, endpoint" },
    file: { value: "PATH", summary: "the file that has it" },
    ...fabricOptions,
  },
  details: `Prints the id of the entry: inside of a running phase on stderr, since its stdout may be the answer.
What was reported before keeps its id.`,
  examples: [
    {
      line: 'plimsoll fabric add entanglement "parse(text: string): Ast" --package parser --kind function',
      meaning: "inside of a running phase",
    },
    {
      line: 'plimsoll fabric add entanglement "GET /ast" --package api --kind endpoint --nebula plan',
      meaning: "as a person",
    },
  ],
  async run(call) {
    const [signature = ""] = call.arguments;
    const { package: name, kind, file } = call.options;
    return addEntry(call, "entanglements", {
      package: needed("package", name),
      kind: needed("kind", kind),
      signature,
      file,
    });
  },
});

function needed(option: string, value: string | undefined): string {
  if (value !== undefined) return value;
  throw new ContextError("usage", `--${option} is missing`, {
    hint: 'See "plimsoll fabric add entanglement --help".',
  });
}
