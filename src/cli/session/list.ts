import { listSessions, listStoredSessions, type SessionLine } from "../../session/index.ts";
import { formatNumber, printable } from "../../text/index.ts";
import { type Command, defineCommand } from "../command.ts";
import type { Style } from "../output.ts";
import { shownPath } from "../shown-path.ts";
import { renderTable } from "../table.ts";
import { shownTime } from "./entry-lines.ts";
import { storeOptions, withSessions } from "./open-sessions.ts";

export const listCommand: Command = defineCommand({
  options: storeOptions,
  details: `A session is one agent run: what "plimsoll mcp" serves from one directory, or what a program runs over the same store.
Those with a tool call are listed, the latest used one first. Remaining are the tokens of a session's total that
system text, history and current tool results leave.`,
  examples: [
    { line: "plimsoll session list", meaning: "which sessions there are" },
    { line: "plimsoll session list --store state.db", meaning: "in a store of one's own" },
    { line: "plimsoll session list --json | jq -r '.[].id'", meaning: "for programs" },
  ],
  async run(call) {
    const { file, result } = await withSessions(call, async (store) => ({
      sessions: await listSessions(store),
      damaged: (await listStoredSessions(store)).filter(({ lastUsed }) => lastUsed === undefined),
    }));
    const { sessions, damaged } = result ?? { sessions: [], damaged: [] };
    for (const { id } of damaged) call.output.note(damagedNote(id));
    if (sessions.length + damaged.length === 0) {
      call.output.note(noSession(shownPath(file, call.cwd, call.env)).join(". "));
    }
    return { json: sessions, text: renderList(sessions, call.output.style) };
  },
});

/** Whether the file is missing or holds none is the same to whoever looks for a session. */
export function noSession(file: string): [message: string, hint: string] {
  return [`there is no session in ${file} yet`, 'One begins with the first tool call of "plimsoll mcp".'];
}

function damagedNote(id: string): string {
  return `session ${printable(id)} cannot be read: its record is damaged. plimsoll session rm ${printable(id)} deletes it.`;
}

function renderList(sessions: readonly SessionLine[], style: Style): string {
  if (sessions.length === 0) return "";
  const rows = sessions.map(({ id, started, lastUsed, calls, remaining }) => [
    printable(id),
    shownTime(started),
    shownTime(lastUsed),
    formatNumber(calls),
    formatNumber(remaining),
  ]);
  const [header = "", ...lines] = renderTable(
    [["session", "started", "last used", "calls", "remaining"], ...rows],
    ["left", "left", "left", "right", "right"],
  );
  return [style.dim(header), ...lines].join("\n");
}
