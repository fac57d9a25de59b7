import { resolve } from "node:path";
import type { PruneReport } from "../../clients/index.ts";
import { ContextError } from "../../core/errors.ts";
import { countNoun, formatNumber, printable, readAge, shownTime } from "../../core/text/index.ts";
import {
  exists,
  isStoreAddress,
  loadConfig,
  lookInStore,
  openStore,
  renderTable,
  shownStore,
  storePath,
} from "../../host/index.ts";
import { type Command, type CommandGroup, defineCommand, subcommand } from "../command.ts";
import { storeOptions } from "../shared-options.ts";

export const storeCommand: CommandGroup = {
  subcommands: [
    subcommand("stats", "show what the store holds: records, bytes and times by kind", () => statsCommand),
    subcommand("prune", "delete what was not used for some time", () => pruneCommand),
    subcommand(
      "migrate",
      "copy a store to another place, such as a file to PostgreSQL, and compare both",
      () => migrateCommand,
    ),
  ],
  examples: [
    { line: "plimsoll store stats", meaning: "what the store holds" },
    { line: "plimsoll store prune --older-than 30d", meaning: "delete what was not used for 30 days" },
    {
      line: "plimsoll store migrate --from state.db --to postgres://plimsoll@db/team",
      meaning: "move a file's content to PostgreSQL",
    },
  ],
};

const statsCommand: Command = defineCommand({
  options: storeOptions,
  details: `Shows the store's size on its disk, and for each kind of record how many there are, the bytes of their values,
and when the oldest and the newest was written. In PostgreSQL the size is that of all namespaces, and the rows are those
of yours. Bytes of deleted values stay in a file until it is rewritten, which session rm and store prune do.`,
  examples: [
    { line: "plimsoll store stats", meaning: "the default store" },
    { line: "plimsoll store stats --store postgres://plimsoll@db/team", meaning: "a shared store" },
    { line: "plimsoll store stats --json | jq .size", meaning: "JSON for programs" },
  ],
  async run(call) {
    const place = await storePath(call.options.store, call);
    const shown = shownStore(place, call.cwd, call.env);
    const { readStats } = await import("../../host/store/copy-store.ts");
    const found = await lookInStore(place, readStats);
    if (found === undefined) call.output.note(`there is no store in ${shown} yet`);
    const { size, kinds } = found ?? { size: 0, kinds: [] };
    const rows = kinds.map(({ kind, records, bytes, oldest, newest }) => [
      kind,
      formatNumber(records),
      formatNumber(bytes),
      ...[oldest, newest].map((time) => shownTime(new Date(time).toISOString())),
    ]);
    const table = [["kind", "records", "bytes", "oldest", "newest"], ...rows];
    const lines = renderTable(table, ["left", "right", "right", "left", "left"], call.output.style);
    const total = `${printable(shown)}: ${formatNumber(size)} bytes`;
    const dated = kinds.map(({ oldest, newest, ...kind }) => ({
      ...kind,
      oldest: new Date(oldest).toISOString(),
      newest: new Date(newest).toISOString(),
    }));
    return {
      json: { store: shown, size, kinds: dated },
      text: kinds.length === 0 ? total : [total, ...lines].join("\n"),
    };
  },
});

const pruneCommand: Command = defineCommand({
  options: {
    "older-than": { value: "AGE", summary: "how long it was not used: 30d, 12h, 8w (default: retention)" },
    "dry-run": { summary: "show what would be deleted; delete nothing" },
    purge: { summary: "in PostgreSQL, also rewrite the tables; all other calls wait for that" },
    ...storeOptions,
  },
  details: `Deletes sessions with their results and work logs, conversations of trimmers, originals of shortened results,
numbers of plugin status, and the state of finished nebulas, if they were not used for that long, and says what no
longer works. Deletes events of calls that are that old, or older than 30 days. Keeps what a running server has open,
results that a newer session uses, and nebulas that can be resumed. Then rewrites the store's file, so that none of the
bytes remain. PostgreSQL reuses the space by itself; --purge rewrites its tables too.
Servers prune once a day if the user's configuration has "retention: 30d".`,
  examples: [
    { line: "plimsoll store prune --older-than 30d", meaning: "what was not used for 30 days" },
    { line: "plimsoll store prune --older-than 4w --dry-run", meaning: "what that would delete" },
  ],
  async run(call) {
    const { options, cwd, env } = call;
    const { retention } = (await loadConfig({ cwd, env })).values;
    const age = options["older-than"] ?? retention;
    if (age === undefined) {
      throw new ContextError("usage", "--older-than is missing", {
        hint: "Name an age, such as 30d, or set retention in your configuration.",
      });
    }
    const before = Date.now() - readAge(age, "--older-than");
    const dryRun = options["dry-run"] === true;
    const place = await storePath(call.options.store, call);
    const { pruneStore } = await import("../../clients/prune-store.ts");
    const report = await lookInStore(place, async (store) => {
      const pruned = await pruneStore(store, { before, dryRun, env });
      const isFile = !place.includes("://");
      const counts = [pruned.originals, pruned.pluginSessions, pruned.orphans, pruned.events];
      const isAny = counts.some((count) => count > 0) || pruned.sessions.length + pruned.nebulas.length > 0;
      if (!dryRun && (options.purge === true || (isFile && isAny))) await store.purge();
      return pruned;
    });
    const { sessions, originals, pluginSessions, nebulas, orphans, events, kept } = report ?? nothing;
    for (const { id, reason } of kept) call.output.note(`${printable(id)} is kept: ${printable(reason)}`);
    const json = {
      dry_run: dryRun,
      originals,
      plugin_sessions: pluginSessions,
      orphans,
      events,
      kept,
      sessions: sessions.map(({ id, calls, lastUsed }) => ({
        id,
        calls,
        last_used: new Date(lastUsed).toISOString(),
      })),
      nebulas: nebulas.map(({ key, name }) => ({ key, name })),
    };
    return { json, text: renderPrune(report ?? nothing, dryRun) };
  },
});

const nothing: PruneReport = {
  sessions: [],
  originals: 0,
  pluginSessions: 0,
  nebulas: [],
  orphans: 0,
  events: 0,
  kept: [],
};

/** Says what is gone, and what that breaks. */
function renderPrune(report: PruneReport, dryRun: boolean): string {
  const verb = dryRun ? "would delete" : "deleted";
  const lines = report.sessions.map(({ id, calls, lastUsed, isTrimmed }) => {
    const breaks = isTrimmed
      ? "if the conversation continues, its history is trimmed again, and what was trimmed cannot be recalled"
      : "its results can no longer be paged or recalled";
    const used = `${countNoun(calls, "call")}, last used ${shownTime(new Date(lastUsed).toISOString())}`;
    return `${verb} ${printable(id)} (${used}): ${breaks}`;
  });
  if (report.originals > 0) {
    lines.push(
      `${verb} ${countNoun(report.originals, "original")} of shortened results: plimsoll recall no longer finds them`,
    );
  }
  if (report.pluginSessions > 0) {
    lines.push(`${verb} the numbers of ${countNoun(report.pluginSessions, "session")} in plimsoll plugin status`);
  }
  for (const { name } of report.nebulas) {
    lines.push(
      `${verb} the state of nebula ${printable(name)}: its phases would run again, and their answers are gone`,
    );
  }
  if (report.orphans > 0) lines.push(`${verb} ${countNoun(report.orphans, "stream")} that no session refers to`);
  if (report.events > 0) lines.push(`${verb} ${countNoun(report.events, "event")} of calls`);
  return lines.length === 0 ? "nothing to delete" : lines.join("\n");
}

const migrateCommand: Command = defineCommand({
  options: {
    from: { value: "PLACE", summary: "file or address of the store to copy" },
    to: { value: "PLACE", summary: "file or address of the new store, which must be empty" },
  },
  details: `Copies all records and streams with their times, then reads both stores and compares every value. The source
stays as it is. If a program writes to it during the copy, the comparison fails and says so. From PostgreSQL, it copies
the namespace of the address. Revisions are new, because nothing outside of a running program keeps them.`,
  examples: [
    {
      line: "plimsoll store migrate --from ~/.local/state/plimsoll/state.db --to postgres://plimsoll@db/team",
      meaning: "from a file to PostgreSQL",
    },
    { line: "plimsoll store migrate --from postgres://plimsoll@db/team --to state.db", meaning: "and back" },
  ],
  async run(call) {
    const { options, cwd, env, output } = call;
    const readPlace = (name: "from" | "to"): string => {
      const place = options[name];
      if (place === undefined) {
        throw new ContextError("usage", `--${name} is missing`, { hint: "Name a file or postgres://…" });
      }
      return isStoreAddress(place) ? place : resolve(cwd, place);
    };
    const [from, to] = [readPlace("from"), readPlace("to")];
    if (!isStoreAddress(from) && !(await exists(from))) {
      throw new ContextError("unreadable_input", "there is no such store", { file: shownStore(from, cwd, env) });
    }
    const { compareStores, copyStore, refuseFilled } = await import("../../host/store/copy-store.ts");
    const source = await openStore({ place: from });
    try {
      const target = await openStore({ place: to });
      try {
        await refuseFilled(target, shownStore(to, cwd, env));
        const copied = await copyStore(source, target, output.progress);
        await compareStores(source, target, output.progress);
        const { records, entries, characters } = copied;
        const text = `copied ${countNoun(records, "record")} and ${formatNumber(entries)} entries (${formatNumber(characters)} characters) to ${printable(shownStore(to, cwd, env))}; both stores have the same values`;
        return { json: { from: shownStore(from, cwd, env), to: shownStore(to, cwd, env), ...copied }, text };
      } finally {
        await target.close();
      }
    } finally {
      await source.close();
    }
  },
});
