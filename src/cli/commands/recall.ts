import { readOriginal, recallLines } from "../../conversation/intake/index.ts";
import { ContextError } from "../../core/errors.ts";
import type { Store } from "../../core/store/index.ts";
import { countNoun, printable, wholeNumber } from "../../core/text/index.ts";
import { createCounter } from "../../core/tokens/index.ts";
import { lookInStore, shownStore, storePath } from "../../host/index.ts";
import { type Command, defineCommand } from "../command.ts";
import { storeOptions } from "../shared-options.ts";

export const recallCommand: Command = defineCommand({
  arguments: [{ name: "ID", summary: "the id in the note of a shortened result" }],
  options: {
    lines: { value: "A-B", summary: "only the lines with these numbers; A- to the end" },
    grep: { value: "REGEXP", summary: "only lines that match, with their numbers" },
    "max-tokens": { value: "N", summary: "stop before the text has more tokens than this" },
    session: { value: "ID", summary: "look only in this session" },
    ...storeOptions,
  },
  details: `Prints a tool result as the tool returned it: one that an intake shortened before a model first saw it, that was
trimmed from a history, or that a session of the MCP server keeps. Notes, placeholders and pages have the id.
Ids such as r12 are those of older versions. They count from 1 in each session, so they need --session or
PLIMSOLL_SESSION.
With --max-tokens the output ends between two lines, and a note says from which line to continue.
If a tool has numbered its lines, --lines takes these numbers, as the notes do. Lines are counted from 1 in a text
without numbers, with more than 10 other lines, or with a line of more than 2,000 characters, which counts as several.`,
  examples: [
    { line: "plimsoll recall k3vbq5zoha", meaning: "the whole result" },
    { line: "plimsoll recall k3vbq5zoha --lines 120-180", meaning: "a part of it" },
    { line: "plimsoll recall k3vbq5zoha --grep 'error|failed'", meaning: "the lines that match" },
  ],
  async run(call) {
    const { arguments: words, options, output, cwd, env } = call;
    const [id = ""] = words;
    const file = await storePath(call.options.store, call);
    const isOlder = /^r\d+$/.test(id);
    const sessionId = options.session ?? (isOlder ? env.PLIMSOLL_SESSION || undefined : undefined);
    const original =
      isOlder && sessionId === undefined ? undefined : await lookInStore(file, (store) => find(store, id, sessionId));
    if (original === undefined) {
      throw new ContextError(
        "unreadable_input",
        `there is no result "${printable(id)}" in ${shownStore(file, cwd, env)}`,
        {
          hint: "Ids are in the notes of shortened results. Name another store with --store, and name the session of an id such as r12 with --session.",
        },
      );
    }
    const { count, shown, rest, text } = recallLines(original.text, {
      lines: options.lines,
      grep: options.grep,
      first: "first" in original && typeof original.first === "number" ? original.first : undefined,
      maxTokens: wholeNumber(options["max-tokens"], "max-tokens", 1),
      counter: await createCounter("auto"),
    });
    const [next] = rest;
    if (next !== undefined) {
      const isStuck = shown.length === 0;
      const advice = isStuck
        ? "the next one does not fit. Raise --max-tokens"
        : `continue with --lines ${next.number}-`;
      output.note(`${countNoun(rest.length, "more line")}: ${advice}`);
    }
    return {
      json: { id, call: original.call, lines: count, shown, ...(next !== undefined && { next: next.number }) },
      text: text === "" || text.endsWith("\n") ? text : `${text}\n`,
      exact: true,
    };
  },
});

/** Looks in everything that gives out ids. */
async function find(
  store: Store,
  id: string,
  sessionId: string | undefined,
): Promise<{ readonly call: string; readonly text: string } | undefined> {
  const original = await readOriginal(store, id);
  if (original !== undefined && (sessionId ?? original.sessionId) === original.sessionId) return original;
  const { findTrimmed } = await import("../../conversation/history/index.ts");
  const trimmed = await findTrimmed(store, id, sessionId);
  if (trimmed !== undefined) return { call: trimmed.toolName ?? trimmed.kind, text: trimmed.text };
  const { findStoredResult } = await import("../../results/session/index.ts");
  return findStoredResult(store, id, sessionId);
}
