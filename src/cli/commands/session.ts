import { ContextError } from "../../core/errors.ts";
import type { Store } from "../../core/store/index.ts";
import { countNoun, didYouMean, formatNumber, printable, readAge, shownTime } from "../../core/text/index.ts";
import { lookInStore, renderTable, type Style, shownStore, storePath } from "../../host/index.ts";
import {
  type LogEntry,
  listSessions,
  listStoredSessions,
  readSessionReport,
  type SessionLine,
  type SessionReport,
  type StoredSession,
  viewWorkLog,
  type WorkLogView,
  type WorkLogViewName,
  workLogViews,
} from "../../results/session/index.ts";
import { type Call, type Command, type CommandGroup, defineCommand, type OptionSpecs, subcommand } from "../command.ts";
import { storeOptions } from "../shared-options.ts";

export const sessionCommand: CommandGroup = {
  subcommands: [
    subcommand("list", "list the sessions in the store, the last used one first", () => listCommand),
    subcommand("show", "show one session: token use, work log, evicted entries, largest results", () => showCommand),
    subcommand("rm", "delete sessions with their results and work logs", () => rmCommand),
  ],
  examples: [
    { line: "plimsoll session list", meaning: "all sessions" },
    { line: "plimsoll session show", meaning: "the session that was used last" },
    { line: "plimsoll session rm --older-than 7d", meaning: "delete sessions that were not used for a week" },
  ],
};

/** Opens the store of sessions if it exists. The result is undefined if there is none. */
async function withSessions<Result>(
  call: Call<{ readonly store?: string | undefined }>,
  read: (store: Store) => Promise<Result>,
): Promise<{ readonly file: string; readonly result: Result | undefined }> {
  const file = await storePath(call.options.store, call);
  return { file, result: await lookInStore(file, read) };
}

const listCommand: Command = defineCommand({
  options: storeOptions,
  details: `A session is one agent run: what "plimsoll mcp" serves from one directory, or what a program runs with
the same store. Lists sessions with a tool call, the last used one first. "left" is the session's total minus the
tokens of system text, history, tool results, the user's message and the reserve for the response.`,
  examples: [
    { line: "plimsoll session list", meaning: "all sessions" },
    { line: "plimsoll session list --store state.db", meaning: "the sessions in another store" },
    { line: "plimsoll session list --json | jq -r '.[].id'", meaning: "JSON for programs" },
  ],
  async run(call) {
    const { file, result } = await withSessions(call, async (store) => ({
      sessions: await listSessions(store),
      damaged: (await listStoredSessions(store)).filter(({ lastUsed }) => lastUsed === undefined),
    }));
    const { sessions, damaged } = result ?? { sessions: [], damaged: [] };
    for (const id of damaged.map((session) => printable(session.id))) {
      call.output.note(`session ${id} cannot be read: its record is damaged. plimsoll session rm ${id} deletes it.`);
    }
    if (sessions.length + damaged.length === 0) {
      call.output.note(noSession(shownStore(file, call.cwd, call.env)).join(". "));
    }
    return { json: sessions, text: renderList(sessions, call.output.style) };
  },
});

/** The message if there is no session, whether the file is missing or empty. */
function noSession(file: string): [message: string, hint: string] {
  return [`there is no session in ${file} yet`, 'A session starts with the first tool call of "plimsoll mcp".'];
}

function renderList(sessions: readonly SessionLine[], style: Style): string {
  if (sessions.length === 0) return "";
  const rows = sessions.map(({ id, started, lastUsed, calls, available }) => [
    printable(id),
    shownTime(started),
    shownTime(lastUsed),
    formatNumber(calls),
    formatLimit(available),
  ]);
  const headings = ["session", "started", "last used", "calls", "left"];
  return renderTable([headings, ...rows], ["left", "left", "left", "right", "right"], style).join("\n");
}

/** Renders an entry of the work log: the call, and below it the result. Both contain text of the model and of files. */
function entryLines({ id, tool, args, time, result }: Omit<LogEntry, "tokens">): string[] {
  const indent = " ".repeat(id.length + 4);
  return [
    `  ${id}  ${shownTime(time)}  ${printable(`${tool} ${args}`)}`,
    ...(result === "" ? [] : [`${indent}${printable(result)}`]),
  ];
}

const showCommand: Command = defineCommand({
  arguments: [{ name: "ID", optional: true, summary: "the session (default: the one used last)" }],
  options: {
    all: { summary: "show the whole work log and all evicted entries" },
    view: {
      value: "VIEW",
      choices: workLogViews,
      summary: "print only the work log, in one of these forms",
    },
    ...storeOptions,
  },
  details: `Shows a bar for each part of the budget, filled by what is used. The work log has a compressed entry
for each result. Entries that did not fit were evicted. Results and evicted entries can be recalled from the store.
The command only reads, so the session may be running.`,
  examples: [
    { line: "plimsoll session show", meaning: "the session that was used last" },
    { line: "plimsoll session show mcp-shop-0f3a77c2d1 --all", meaning: "everything about one session" },
    { line: "plimsoll session show --json | jq .available", meaning: "JSON for programs" },
  ],
  async run(call) {
    const { options, output, cwd, env } = call;
    const { file, result: report } = await withSessions(call, (store) => find(store, call.arguments[0]));
    if (report === undefined) {
      const [message, hint] = noSession(shownStore(file, cwd, env));
      throw new ContextError("unreadable_input", message, { hint });
    }
    if (options.view !== undefined) {
      const { workLog, evicted, damaged } = report;
      const steps = evicted.count + workLog.length + damaged;
      // As a model gets it.
      const view = viewWorkLog({ entries: () => workLog, steps: () => steps }, options.view as WorkLogViewName);
      return { json: view, text: renderView(view) };
    }
    const all = options.all === true;
    return { json: report, text: renderSession(report, { style: output.style, all }) };
  },
});

/** Finds a session. Returns undefined if the store has none. A named one need not be listed. */
async function find(store: Store, id: string | undefined): Promise<SessionReport | undefined> {
  const named = id === undefined ? undefined : await readSessionReport(store, id);
  if (named !== undefined) return named;
  const ids = (await listSessions(store)).map((session) => session.id);
  const [latestUsed] = ids;
  if (latestUsed === undefined) return undefined;
  if (id === undefined) return readSessionReport(store, latestUsed);
  throw new ContextError("usage", `there is no session "${id}"`, {
    hint: didYouMean(id, ids) ?? 'See "plimsoll session list".',
  });
}

/** Renders a session. With `all` it shows every entry, not only the newest. */
export function renderSession(
  report: SessionReport,
  { style, all }: { readonly style: Style; readonly all: boolean },
): string {
  const { workLog, evicted, largest, damaged, delivered, lifetime } = report;
  const id = printable(report.id);
  const since = `${countNoun(report.calls, "call")} since ${shownTime(report.started)}`;
  const inAll = lifetime === delivered ? "" : `, ${formatNumber(lifetime)} in all conversations`;
  const { available, total } = report;
  const left = available === "unlimited" ? "no total" : `${formatNumber(available)} of ${formatLimit(total)} left`;
  // Entries shown without --all.
  const maxEntries = 20;
  const log = workLog.slice(all ? 0 : -maxEntries);
  const maxEvicted = 5;
  const gone = evicted.entries.slice(all ? 0 : -maxEvicted);
  const sections = [
    [
      `${style.bold(id)}  ${since}, tokens by ${printable(report.counter)}`,
      ...(report.warning === undefined ? [] : [report.warning]),
    ],
    [...renderTiers(report.ledger), `${left}; ${formatNumber(delivered)} delivered by tools${inAll}`],
    damaged === 0
      ? []
      : [
          `${damaged === 1 ? "1 entry of the work log is" : `${formatNumber(damaged)} entries of the work log are`} damaged and left out. plimsoll session rm ${id} deletes the session.`,
        ],
    [style.dim(`work log${describeShare(log.length, workLog.length)}`), ...log.flatMap(entryLines)],
    evicted.count === 0
      ? []
      : [
          style.dim(`evicted${describeShare(gone.length, evicted.count)}; recall gets them`),
          ...gone.flatMap(entryLines),
        ],
    [
      style.dim(`largest results${describeShare(largest.length, largest.length)}`),
      ...renderTable(
        largest.map((result) => [`  ${result.id}`, printable(result.tool), formatNumber(result.tokens)]),
        ["left", "left", "right"],
      ),
    ],
  ];
  return sections
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join("\n"))
    .join("\n\n");
}

/** Says how many entries are left out. */
function describeShare(shown: number, all: number): string {
  if (all === 0) return ": empty";
  return shown === all ? `: ${formatNumber(all)}` : `: the newest ${shown} of ${formatNumber(all)}`;
}

const width = 24;

/** Renders a line per tier: a bar of the used part, and the numbers. */
function renderTiers(ledger: SessionReport["ledger"]): string[] {
  const tiers = Object.entries(ledger);
  const digits = Math.max(...tiers.map(([, { limit }]) => formatLimit(limit).length));
  const rows = tiers.map(([tier, { used, limit }]) => [
    tier.replaceAll("_", " "),
    limit === "unlimited" ? "" : bar(used, limit),
    `${formatNumber(used)} of ${formatLimit(limit).padStart(digits)}`,
    limit !== "unlimited" && used > limit
      ? `${formatNumber(used - limit)} over`
      : tier === "response"
        ? "reserved"
        : "",
  ]);
  return renderTable(rows, ["left", "left", "right", "left"]);
}

function formatLimit(limit: number | "unlimited"): string {
  return limit === "unlimited" ? limit : formatNumber(limit);
}

/** Renders a bar that is full only if nothing is left, and empty only if nothing is used. */
function bar(used: number, limit: number): string {
  if (used >= limit && used > 0) return "█".repeat(width);
  const filled = used <= 0 ? 0 : Math.min(width - 1, Math.max(1, Math.round((used / limit) * width)));
  return "█".repeat(filled) + "░".repeat(width - filled);
}

/** Renders the work log in one of the views for models. */
function renderView(view: WorkLogView): string {
  if ("steps" in view) {
    const last = view.last_result === undefined ? [] : [`last: ${printable(view.last_result)}`];
    return [countNoun(view.steps, "step"), ...last].join("\n");
  }
  const steps = countNoun(view.total_steps, "step");
  if ("recent" in view) return [`${steps}, newest first`, ...view.recent.flatMap(entryLines)].join("\n");
  const evicted = view.evicted === 0 ? "" : `, ${formatNumber(view.evicted)} evicted`;
  return [`${steps}${evicted}`, ...view.entries.flatMap(entryLines)].join("\n");
}

const options = {
  all: { summary: "delete every session, and the folders of finished agent runs" },
  "older-than": { value: "AGE", summary: "delete sessions that were not used for this long: 7d, 12h, 30m" },
  "dry-run": { summary: "show what would be deleted; delete nothing" },
  ...storeOptions,
} as const satisfies OptionSpecs;

const rmCommand: Command = defineCommand({
  arguments: [{ name: "ID", optional: true, repeated: true, summary: "the sessions" }],
  options,
  details: `Deletes sessions: token use, work log, all results, and what a trimmer, an intake or a plugin stored under the
same id. Then rewrites the store's file, so that none of their bytes remain in it or in its log. Servers of one directory
share results; these are deleted with the session whose id they carry. A session that a server has open is not deleted.`,
  examples: [
    { line: "plimsoll session rm mcp-shop-0f3a77c2d1", meaning: "one session" },
    { line: "plimsoll session rm --older-than 7d", meaning: "sessions that were not used for a week" },
    { line: "plimsoll session rm --all --dry-run", meaning: "what --all would delete" },
  ],
  async run(call) {
    const { describeUse, removeSessions, unknownSession } = await import("../../clients/prune-store.ts");
    const { arguments: ids, options: given } = call;
    const all = given.all === true;
    const age = given["older-than"];
    const count = [ids.length > 0, all, age !== undefined].filter(Boolean).length;
    if (count !== 1) {
      throw new ContextError("usage", count === 0 ? "no session is named" : "too many choices", {
        hint: "Name sessions, or use --all or --older-than AGE.",
      });
    }
    const before = age === undefined ? undefined : new Date(Date.now() - readAge(age, "--older-than")).toISOString();
    const choice = { ids, all, before };
    const dryRun = call.options["dry-run"] === true;
    const result = await lookInStore(await storePath(call.options.store, call), (store) =>
      removeSessions(store, choice, { dryRun, env: call.env }),
    );
    const { deleted, kept } = result ?? { deleted: [], kept: [] };
    if (result === undefined && choice.ids.length > 0) throw unknownSession(choice.ids[0]!, []);
    const { findAttempts } = await import("../../plans/nebula/attempt-folders.ts");
    const attempts = choice.all ? await findAttempts(call.env) : undefined;
    const { ended = [], running = [] } = attempts ?? {};
    if (!dryRun) await attempts?.removeEnded();
    for (const { id, pid } of kept) call.output.note(describeUse(id, pid));
    if (running.length > 0)
      call.output.note(`${countNoun(running.length, "agent")} still running, so the folders are kept`);
    const told = deleted.map(({ id, lastUsed, calls }) => ({ id, calls, last_used: lastUsed ?? null }));
    const json = { dry_run: dryRun, deleted: told, kept, run_folders: ended };
    return { json, text: renderReport(deleted, { runFolders: ended.length, dryRun }) };
  },
});

function renderReport(
  deleted: readonly StoredSession[],
  { runFolders, dryRun }: { readonly runFolders: number; readonly dryRun: boolean },
): string {
  const verb = dryRun ? "would delete" : "deleted";
  const lines = deleted.map(({ id, lastUsed, calls }) => {
    const used = lastUsed === undefined ? "" : `, last used ${shownTime(lastUsed)}`;
    return `${verb} ${printable(id)} (${countNoun(calls, "call")}${used})`;
  });
  if (runFolders > 0) lines.push(`${verb} ${countNoun(runFolders, "run folder")}`);
  return lines.length === 0 ? "nothing to delete" : lines.join("\n");
}
