import { type NoteKind, noteKinds } from "../../compose/index.ts";
import { type Command, defineCommand } from "../command.ts";
import { addEntry } from "./add-entry.ts";
import { fabricOptions } from "./open-fabric.ts";

export const addNoteCommand: Command = defineCommand({
  arguments: [{ name: "TEXT", summary: "what others should know, in one line" }],
  options: {
    kind: { value: "KIND", choices: noteKinds, summary: "what it is (default: note)" },
    ...fabricOptions,
  },
  details: `Prints the id of the entry: inside of a running phase on stderr, since its stdout may be the answer.
Notes are shown to every phase that starts from now on.`,
  examples: [
    {
      line: 'plimsoll fabric add note "dates are ISO 8601" --kind decision',
      meaning: "inside of a running phase",
    },
    { line: 'plimsoll fabric add note "ports from 4000" --nebula plan', meaning: "as a person" },
  ],
  async run(call) {
    const [text = ""] = call.arguments;
    // The frame has held it against the choices.
    const kind = (call.options.kind ?? "note") as NoteKind;
    return addEntry(call, "notes", { kind, text });
  },
});
