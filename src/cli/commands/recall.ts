import { ContextError } from "../../errors.ts";
import { readOriginal, recallLines } from "../../intake/index.ts";
import type { Store } from "../../store/index.ts";
import { countNoun, printable } from "../../text/index.ts";
import { createCounter } from "../../tokens/index.ts";
import { type Command, defineCommand } from "../command.ts";
import { lookInStore, shownStore, storeOptions, storePath } from "../store-file.ts";
import { wholeNumber } from "../whole-number.ts";

export const recallCommand: Command = defineCommand({
  arguments: [{ name: "ID", summary: "the id in the note of a shortened result" }],
  options: {
    lines: { value: "A-B", summary: "only these lines, counted from 1; A- to the end" },
    grep: { value: "REGEXP", summary: "only lines that match, with their numbers" },
    "max-tokens": { value: "N", summary: "stop before the text has more tokens than this" },
    session: { value: "ID", summary: "the session of an id such as r12 (default: PLIMSOLL_SESSION)" },
    ...storeOptions,
  },
  details: `Prints a tool result as the tool returned it. An intake shortens results before a model first sees them, and
keeps every original in the store. Its notes have the id. Ids such as r12 are those of a trimmed history; they count from
1 in each session, and a plugin that trims sets PLIMSOLL_SESSION in the client's shell.
With --max-tokens the output ends between two lines, and a note says from which line to continue.`,
  examples: [
    { line: "plimsoll recall k3vbq5zoha", meaning: "the whole result" },
    { line: "plimsoll recall k3vbq5zoha --lines 120-180", meaning: "a part of it" },
    { line: "plimsoll recall k3vbq5zoha --grep 'error|failed'", meaning: "the lines that match" },
  ],
  async run(call) {
    const { arguments: words, options, output, cwd, env } = call;
    const [id = ""] = words;
    const file = await storePath(call);
    const sessionId = options.session ?? (env.PLIMSOLL_SESSION || undefined);
    const original = await lookInStore(file, (store) =>
      /^r\d+$/.test(id) && sessionId !== undefined ? readTrimmed(store, id, sessionId) : readOriginal(store, id),
    );
    if (original === undefined) {
      throw new ContextError(
        "unreadable_input",
        `there is no result "${printable(id)}" in ${shownStore(file, cwd, env)}`,
        {
          hint: "Ids are in the notes of shortened results. Name another store with --store, and for an id such as r12 the session with --session.",
        },
      );
    }
    const limit = options["max-tokens"];
    const { count, shown, rest, text } = recallLines(original.text, {
      lines: options.lines,
      grep: options.grep,
      maxTokens: limit === undefined ? undefined : wholeNumber(limit, "max-tokens", 1),
      counter: await createCounter("auto"),
    });
    const [next] = rest;
    if (next !== undefined) {
      output.note(`${countNoun(rest.length, "more line")}: continue with --lines ${next.number}-`);
    }
    return {
      json: { id, call: original.call, lines: count, shown, ...(next !== undefined && { next: next.number }) },
      text,
    };
  },
});

/** Returns what a trim has removed from the history of a session. */
async function readTrimmed(store: Store, id: string, sessionId: string) {
  const { createTrimmer } = await import("../../history/index.ts");
  // Only what the store has is asked for, so the window means nothing.
  const trimmer = await createTrimmer({ contextWindow: 100_000, store, sessionId });
  const recalled = await trimmer.recall(id);
  return recalled && { call: recalled.toolName ?? recalled.kind, text: recalled.text };
}
