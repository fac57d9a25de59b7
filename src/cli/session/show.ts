import { ContextError } from "../../errors.ts";
import { listSessions, readSession, type SessionReport } from "../../session/index.ts";
import type { Store } from "../../store/index.ts";
import { didYouMean } from "../../text/index.ts";
import { type Command, defineCommand } from "../command.ts";
import { shownPath } from "../inject/prepare.ts";
import { noSession } from "./list.ts";
import { storeOptions, withSessions } from "./open-sessions.ts";
import { renderSession } from "./render-session.ts";

export const showCommand: Command = defineCommand({
  arguments: [{ name: "ID", optional: true, summary: "the session (default: the latest one)" }],
  options: {
    all: { summary: "the whole work log, and all that is told of what was evicted" },
    ...storeOptions,
  },
  details: `A bar for each tier of the ledger, filled as far as the tier is used. The work log has an entry for each result, compressed;
those that it had no room for were evicted. Both kinds can be recalled from the store, as can the results themselves.
The command only reads: the session may be running.`,
  examples: [
    { line: "plimsoll session show", meaning: "how the latest one stands" },
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
    const all = options.all === true;
    return { json: report, text: renderSession(report, { style: output.style, all }) };
  },
});

/** Undefined where the store has no session at all. */
async function find(store: Store, id: string | undefined): Promise<SessionReport | undefined> {
  const sessions = await listSessions(store);
  const [latest] = sessions;
  if (latest === undefined) return undefined;
  const found = await readSession(store, id ?? latest.id);
  if (found !== undefined) return found;
  const ids = sessions.map((session) => session.id);
  throw new ContextError("usage", `there is no session "${id}"`, {
    hint: didYouMean(id ?? "", ids) ?? 'See "plimsoll session list".',
  });
}
