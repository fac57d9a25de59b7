import { ContextError, usageError } from "../../core/errors.ts";
import { countNoun, printable } from "../../core/text/index.ts";
import {
  describeError,
  homeDirectory,
  listRuns,
  projectRoot,
  type RecordedRun,
  renderTable,
  shownPath,
  type UndoneFile,
  undoRun,
  withJournal,
} from "../../host/index.ts";
import { type Call, type Command, type CommandResult, defineCommand } from "../command.ts";

export const undoCommand: Command = defineCommand({
  options: {
    list: { summary: "list the commands of this project that can be taken back, the newest first" },
    "dry-run": { summary: "show what would be restored, and write nothing" },
    force: { summary: "also restore files that were changed since; keeps a copy as .bak" },
  },
  details: `Takes back the last command that recorded its changes in this project, such as "import --move", or for your clients,
such as "setup": every file gets its earlier bytes, and files that the command created are deleted. It also works after the command was killed.
A file that was changed since is named and left alone. The records are in $XDG_STATE_HOME/plimsoll/undo
(~/.local/state by default), which only you can read, and never in the project. They are deleted after undo. The last
20 of a project are kept, for at most 90 days and up to 64 MB.`,
  examples: [
    { line: "plimsoll undo --dry-run", meaning: "see what would be restored" },
    { line: "plimsoll undo", meaning: "take back the last command" },
    { line: "plimsoll undo --list", meaning: "what can be taken back here" },
    { line: "plimsoll undo --force", meaning: "also restore files that you changed since, and keep your text as .bak" },
  ],
  async run(call) {
    const { cwd, env, options } = call;
    const others = (["dry-run", "force"] as const).filter((name) => options[name] === true);
    if (options.list === true && others.length > 0)
      throw usageError(`--list and --${others[0]} cannot be used together`);
    const home = homeDirectory(env);
    const project = { root: projectRoot(cwd, home), env };
    // setup changes files of the user, whatever the folder is.
    const places = project.root === home ? [project] : [project, { root: home, env }];
    const runs = await Promise.all(places.map(async (place) => ({ place, runs: await listRuns(place) })));
    const newest = (all: readonly RecordedRun[]): string => all[0]?.at ?? "";
    runs.sort((left, right) => (newest(left.runs) < newest(right.runs) ? 1 : -1));
    if (options.list === true) {
      const all = runs.flatMap((each) => each.runs);
      return renderRuns(all.sort((left, right) => (left.at < right.at ? 1 : -1)));
    }
    const { place = project } = runs[0] ?? {};
    return options["dry-run"] === true ? undoLast(place, call) : withJournal(place, () => undoLast(place, call));
  },
});

type UndoCall = Call<{ readonly "dry-run"?: boolean | undefined; readonly force?: boolean | undefined }>;

async function undoLast(place: Parameters<typeof listRuns>[0], call: UndoCall): Promise<CommandResult> {
  const { env, options } = call;
  const [last] = await listRuns(place);
  if (last === undefined) return { json: null, text: nothing, isReport: true };
  if (last.state === "running") {
    const hint = "Wait until it has ended.";
    throw new ContextError("refused_target", `the last command, ${last.command}, is still running`, { hint });
  }
  const how = { env, force: options.force === true };
  const look = await undoRun(last, { ...how, dryRun: true });
  // Half of it would leave rules in no file: neither in the packs nor where they were before.
  const isRefused = look.some(({ state }) => state === "refused");
  const files = options["dry-run"] === true || isRefused ? look : await undoRun(last, { ...how, dryRun: false });
  return renderUndone(last, files, call);
}

const nothing = "There is nothing to take back in this project.";

function renderRuns(runs: readonly RecordedRun[]): CommandResult {
  const rows = runs.map(({ at, command, state, changes }) => ({
    at,
    command,
    state,
    files: new Set(changes.map(({ path }) => path)).size,
  }));
  const table = rows.map(({ at, command, state, files }) => [at, command, state, String(files)]);
  const text = renderTable([["when", "command", "state", "files"], ...table], ["left", "left", "left", "right"]);
  return { json: rows, text: rows.length === 0 ? nothing : text.join("\n") };
}

function renderUndone(
  { command, at, state }: RecordedRun,
  files: readonly UndoneFile[],
  { cwd, env, output, options }: UndoCall,
): CommandResult {
  const dryRun = options["dry-run"] === true;
  const shown = (path: string) => shownPath(path, cwd, env);
  for (const { problem } of files) if (problem !== undefined) output.problem(describeError(problem, shown));
  const left = files.filter((file) => file.state === "refused").length;
  const lines = files
    .filter((file) => file.state !== "refused" && (left === 0 || dryRun))
    .map((file) => `${dryRun ? "would be " : ""}${file.state} ${printable(shown(file.path))}`);
  const what = `${printable(command)} of ${at}${state === "interrupted" ? ", which was interrupted" : ""}`;
  const verb = left === 1 ? "was" : "were";
  const done =
    left === 0
      ? `took back ${what}`
      : `nothing was taken back: ${countNoun(left, "file")} of ${what} ${verb} changed since`;
  lines.push("", dryRun ? "Nothing was written, because this was a dry run." : done);
  return {
    json: {
      ...{ command, at, state },
      files: files.map((file) => ({
        path: shown(file.path),
        state: left === 0 || dryRun || file.state === "refused" ? file.state : "unchanged",
      })),
    },
    text: lines.join("\n"),
    isReport: !dryRun,
    failed: left > 0,
  };
}
