import { ContextError } from "../../core/errors.ts";
import { countNoun, printable } from "../../core/text/index.ts";
import { homeDirectory, projectRoot, refuseOtherOwner, shownPath } from "../../host/index.ts";
import { addNote, clearNotes, readNotes } from "../../rules/index.ts";
import { type Call, type CommandGroup, type CommandResult, defineCommand, subcommand } from "../command.ts";

const addCommand = defineCommand({
  arguments: [{ name: "TEXT", repeated: true, summary: "the note, one line of at most 500 bytes" }],
  options: {},
  details: `Notes are stored in .plimsoll/notes.yaml. inject shows them to every AI tool of the project under
"Current Context".`,
  examples: [
    { line: 'plimsoll notes add "Release freeze until Friday"', meaning: "add a note" },
    {
      line: "plimsoll notes add Payments move to v2 && plimsoll inject",
      meaning: "add a note and write it into the files",
    },
  ],
  run: (call) =>
    withNotes(call, async (root) => {
      // Reads first, so that mistakes in the file are reported before anything is written.
      await readNotes(root);
      const notes = await addNote(root, call.arguments.join(" "));
      call.output.note('AI tools see it after the next "plimsoll inject"');
      return notes;
    }),
});

const listCommand = defineCommand({
  options: {},
  examples: [
    { line: "plimsoll notes list", meaning: "the notes of this project, oldest first" },
    { line: "plimsoll notes list --json | jq -r '.notes[]'", meaning: "JSON for programs" },
  ],
  run: (call) => withNotes(call, readNotes),
});

const clearCommand = defineCommand({
  options: {},
  examples: [{ line: "plimsoll notes clear && plimsoll inject", meaning: "remove all notes, also from the files" }],
  run: (call) =>
    withNotes(call, async (root) => {
      const before = await readNotes(root);
      const notes = await clearNotes(root);
      call.output.note(`${countNoun(before.length, "note")} removed`);
      return notes;
    }),
});

export const notesCommand: CommandGroup = {
  subcommands: [
    subcommand("add", "add a note", () => addCommand),
    subcommand("list", "list the notes, oldest first", () => listCommand),
    subcommand("clear", "remove all notes", () => clearCommand),
  ],
  examples: [
    {
      line: 'plimsoll notes add "Release freeze until Friday"',
      meaning: "add a note for every AI tool of the project",
    },
    { line: "plimsoll notes list", meaning: "show the notes" },
    { line: "plimsoll notes clear", meaning: "remove all notes" },
  ],
};

/** Every subcommand prints the notes after its change. */
async function withNotes(
  { cwd, env }: Call,
  act: (root: string) => Promise<readonly string[]>,
): Promise<CommandResult> {
  try {
    const root = projectRoot(cwd, homeDirectory(env));
    await refuseOtherOwner(root, env);
    const notes = await act(root);
    return { json: { notes }, text: notes.map((note) => `- ${printable(note)}`).join("\n") };
  } catch (error) {
    if (!(error instanceof ContextError) || error.file === undefined) throw error;
    const { code, message, hint, file, line, cause } = error;
    throw new ContextError(code, message, { hint, file: shownPath(file, cwd, env), line, cause });
  }
}
