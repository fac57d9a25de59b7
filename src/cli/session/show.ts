import { ContextError } from "../../errors.ts";
import {
  listSessions,
  readSession,
  type SessionReport,
  viewReport,
  type WorkLogViewName,
  workLogViews,
} from "../../session/index.ts";
import type { Store } from "../../store/index.ts";
import { didYouMean } from "../../text/index.ts";
import { type Command, defineCommand } from "../command.ts";
import { shownPath } from "../shown-path.ts";
import { noSession } from "./list.ts";
import { storeOptions, withSessions } from "./open-sessions.ts";
import { renderSession } from "./render-session.ts";
import { renderView } from "./render-view.ts";

export const showCommand: Command = defineCommand({
  arguments: [{ name: "ID", optional: true, summary: "the session (default: the latest used)" }],
  options: {
    all: { summary: "the whole work log, and all that is told of what was evicted" },
    view: {
      value: "VIEW",
      choices: workLogViews,
      summary: "only the work log, as a program reads it",
    },
    ...storeOptions,
  },
  details: `A bar for each tier of the ledger, filled as far as the tier is used. The work log has an entry for each result, compressed;
those that it had no room for were evicted. Both kinds can be recalled from the store, as can the results themselves.
The command only reads: the session may be running.`,
  examples: [
    { line: "plimsoll session show", meaning: "how the latest used one stands" },
    { line: "plimsoll session show mcp-shop-0f3a77c2d1 --all", meaning: "all of one" },
    { line: "plimsoll session show --json | jq .available", meaning: "for programs" },
  ],
  async run(call) {
    const { options, output, cwd, env } = call;
    const { file, result: report } = await withSessions(call, (store) => find(store, call.arguments[0]));
    if (report === undefined) {
      const [message, hint] = noSession(shownPath(file, cwd, env));
      throw new ContextError("unreadable_input", message, { hint });
    }
    if (options.view !== undefined) {
      const view = viewReport(report, options.view as WorkLogViewName);
      return { json: view, text: renderView(view) };
    }
    const all = options.all === true;
    return { json: report, text: renderSession(report, { style: output.style, all }) };
  },
});

/** Undefined where the store has no session at all. One that is named need not be listed. */
async function find(store: Store, id: string | undefined): Promise<SessionReport | undefined> {
  const named = id === undefined ? undefined : await readSession(store, id);
  if (named !== undefined) return named;
  const ids = (await listSessions(store)).map((session) => session.id);
  const [latestUsed] = ids;
  if (latestUsed === undefined) return undefined;
  if (id === undefined) return readSession(store, latestUsed);
  throw new ContextError("usage", `there is no session "${id}"`, {
    hint: didYouMean(id, ids) ?? 'See "plimsoll session list".',
  });
}
