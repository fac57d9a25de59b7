import { ContextError, usageError } from "../../core/errors.ts";
import { formatNumber, printable, type Verbosity, verbosities, wholeNumber } from "../../core/text/index.ts";
import { describeError, onOverflows, renderTable, reportError, shownPath } from "../../host/index.ts";
import {
  type InjectChoice,
  injectionStatus,
  type Prepared,
  prepareInject,
  scopes,
  type TargetState,
  uninstallFiles,
} from "../../rules/index.ts";
import {
  type Call,
  type Command,
  type CommandResult,
  defineCommand,
  type OptionSpecs,
  type OptionValues,
} from "../command.ts";
import { budgetProblem, nameUnit, renderRemoved } from "../inject/inject-report.ts";
import { runInject, tellLost } from "../inject/run-inject.ts";
import { contentOptions, counterOptions, trustOption } from "../shared-options.ts";

const injectOptions = {
  scope: { value: "SCOPE", choices: scopes, summary: "where to write (default: project)" },
  global: { summary: "short for --scope global: files under HOME, clipboard and exports" },
  tool: { value: "ID[,ID...]", list: true, summary: "write only for these AI tools" },
  all: { summary: "write for every known AI tool" },
  profile: { value: "ID", summary: "the profile, which orders and selects packs" },
  lang: contentOptions.lang,
  verbosity: {
    value: "LEVEL",
    choices: verbosities,
    ignoredWith: "uninstall",
    summary: "how much of each pack to write",
  },
  pack: { value: "ID[,ID...]", list: true, summary: "use only these packs and base packs" },
  "no-pack": { value: "ID[,ID...]", list: true, summary: "leave these packs out" },
  "max-tokens": { value: "N", summary: "the most tokens for each tool, instead of its budget" },
  "max-bytes": { value: "N", summary: "the same in bytes" },
  "on-overflow": {
    value: "WAY",
    choices: onOverflows,
    summary: "what to do when packs exceed a budget",
  },
  ...counterOptions,
  content: contentOptions.content,
  "dry-run": { summary: "show the changes as a unified diff; write nothing" },
  diff: { summary: "with --dry-run --stats: also show the diff, below the table" },
  stats: { summary: "show a table: packs, tokens and budget of each tool" },
  status: { summary: "show the state of each file; write nothing" },
  check: { summary: "like --status, but exit 1 unless all files are current and within limits" },
  prune: { summary: "also remove blocks and files that Plimsoll wrote for tools you no longer use" },
  uninstall: { summary: "remove all blocks and files that Plimsoll wrote" },
  force: { summary: "overwrite blocks that were edited by hand and files that Plimsoll did not write" },
  watch: { summary: "run again whenever packs or settings change" },
  ...trustOption,
} as const satisfies OptionSpecs;

export const injectCommand: Command = defineCommand({
  options: injectOptions,
  details: `Writes packs into the files that AI tools read, each within its own budget, between two markers. Text
outside the markers stays unchanged, byte for byte. Without --tool: the tools of the configuration, or else those
whose files are here, or else claude-code and agents-md. If AGENTS.md gets the packs, a tool that reads AGENTS.md
gets no second copy, unless own_files of the configuration names it. Tokens are counted with --counter, or else for
--model, or else as counter or model of the configuration say, or else with auto: the same as in audit.`,
  examples: [
    { line: "plimsoll inject --dry-run --stats", meaning: "what would be written, and how many tokens" },
    { line: "plimsoll inject", meaning: "write the packs into this project" },
    { line: "plimsoll inject --tool claude-code --verbosity standard", meaning: "one tool, fewer details" },
    { line: "plimsoll inject --global --tool chatgpt", meaning: "a text for the clipboard" },
    { line: "plimsoll inject --check", meaning: "in CI: fail if a file is stale, too large or left over" },
    { line: "plimsoll inject --prune", meaning: "write, and remove what earlier runs left for other tools" },
    { line: "plimsoll inject --uninstall", meaning: "restore the original files" },
  ],
  async run(call) {
    const { options } = call;
    refuseCombinations(options);
    const { "max-tokens": tokens, "max-bytes": bytes } = options;
    if (tokens !== undefined && bytes !== undefined) {
      throw usageError("--max-tokens and --max-bytes cannot be used together");
    }
    const [name, limit] = tokens === undefined ? ["max-bytes", bytes] : ["max-tokens", tokens];
    const unit = tokens === undefined ? "bytes" : "tokens";
    const choice: InjectChoice = {
      ...options,
      scope: options.global === true || options.scope === "global" ? "global" : "project",
      tools: options.tool,
      language: options.lang,
      packs: options.pack,
      withoutPacks: options["no-pack"],
      // The parser has refused other values.
      verbosity: options.verbosity as Verbosity | undefined,
      onOverflow: options["on-overflow"] as InjectChoice["onOverflow"],
      budget: limit === undefined ? undefined : { value: wholeNumber(limit, name, 1), unit },
    };
    if (options.watch === true) return watchInject(choice, call);
    const prepared = await prepareInject(choice, call);
    if (options.status === true || options.check === true) return reportStatus(prepared, call);
    if (options.uninstall === true) return runUninstall(prepared, call);
    return runInject(prepared, call);
  },
});

function refuseCombinations(options: Readonly<Record<string, unknown>>): void {
  const given = (names: readonly string[]) => names.filter((name) => options[name] === true).map((name) => `--${name}`);
  // Flags that choose another mode of the command.
  const ways = ["status", "check", "uninstall", "prune", "watch"] as const;
  const chosen = given(ways);
  if (chosen.length > 1) throw usageError(`${chosen.join(" and ")} cannot be used together`);
  const looking = given(["status", "check"])[0];
  // Flags that only a run that writes can use.
  const writingFlags = ["dry-run", "stats", "force"] as const;
  const writing = given(writingFlags)[0];
  if (looking !== undefined && writing !== undefined) {
    throw usageError(`${looking} writes nothing, so it cannot be used with ${writing}`);
  }
  if (options.diff === true && options["dry-run"] !== true) {
    throw usageError("--diff needs --dry-run");
  }
  if (options.global === true && options.scope === "project") {
    throw usageError("--global and --scope project cannot be used together");
  }
  if (options.all === true && options.tool !== undefined) {
    throw usageError("--all and --tool cannot be used together");
  }
}

/** Runs inject again whenever its content changes, until it is interrupted. Reports a mistake in a pack and keeps
 *  watching. */
async function watchInject(choice: InjectChoice, given: Call): Promise<undefined> {
  // With `--json` every value is one line, so that a program can read them as they come.
  const result = (text: string) => given.output.result(JSON.stringify(JSON.parse(text)));
  const call = given.output.json ? { ...given, output: { ...given.output, result } } : given;
  const { output } = call;
  const silent = { ...call, output: { ...output, note: () => {} } };
  await prepareInject(choice, silent).catch((error: unknown) => {
    if (error instanceof ContextError && ["usage", "untrusted"].includes(error.code)) throw error;
  });
  const { watchContent } = await import("../../rules/adapters/watch-content.ts");
  return watchContent(choice, call, async () => {
    try {
      const { json, text, isReport } = await runInject(await prepareInject(choice, call), call);
      if (output.json) output.result(JSON.stringify(json));
      else if (text !== "" && !(output.quiet && isReport)) output.result(text);
    } catch (error) {
      reportError(error, output);
    }
  });
}

/** Reports the state of each file. `--check` also fails unless all are current and within limits. */
async function reportStatus(
  { engine, whyNoPacks }: Prepared,
  { cwd, env, options, output }: Call<{ readonly check?: boolean | undefined }>,
): Promise<CommandResult> {
  const states = await injectionStatus(engine);
  const shown = (path: string) => shownPath(path, cwd, env);
  if (whyNoPacks !== undefined) output.note(`${whyNoPacks}, so no file needs a block`);
  const dropHint = "leave the packs out with packs.exclude, or set on_drop: warn in .plimsoll/config.yaml.";
  for (const state of states) {
    if (state.problem !== undefined) output.problem(describeError(state.problem, shown));
    const excess = budgetProblem(state, { ids: state.tools, shown });
    if (excess !== undefined) output.problem(excess);
    tellLost(state, { output, shown, engine });
    tellAbsent(state, { output, shown });
    const dropped = dropProblem(state);
    if (dropped === undefined) continue;
    const hint = `${isBudget(state) ? "Raise the budget" : "Give the packs globs"}, ${dropHint}`;
    if (options.check === true && engine.onDrop === "fail") output.problem(`${dropped}. ${hint}`);
    else output.note(dropped);
  }
  return {
    json: statusRows(states, shown),
    text: renderStatus(states, shown),
    failed: options.check === true && states.some(({ holds }) => !holds),
  };
}

/** Names required packs that would fit, but that the file does not hold yet. */
function tellAbsent(
  { path, missing, lost }: TargetState,
  { output, shown }: { readonly output: Call["output"]; shown(path: string): string },
): void {
  const absent = missing.filter((id) => !lost.some((each) => each.id === id)).join(", ");
  if (absent !== "") output.problem(`${shown(path)} lacks ${absent}, which the company requires. Run plimsoll inject.`);
}

/** Whether the budget, not the tool's own limit, decides what fits. */
function isBudget({ budget, boundBy }: TargetState): boolean {
  return budget !== undefined && boundBy !== "limit";
}

/** Names the packs that do not fit. A target without any pack has a message of its own. */
function dropProblem(state: TargetState): string | undefined {
  const { tools, status, budget, limit, dropped } = state;
  if (status !== "ok" || dropped.length === 0) return undefined;
  const verb = dropped.length === 1 ? "does" : "do";
  const [name, most] = isBudget(state) ? ["the budget", budget] : ["the tool's own limit", limit];
  const size = most === undefined ? name : `${name} of ${formatNumber(most.value)} ${nameUnit(most)}`;
  return `${tools.join(", ")}: ${dropped.join(", ")} ${verb} not fit ${size}`;
}

/** Rows of `--status` for programs: one per adapter and file. The adapter is null if none knows the file. */
function statusRows(states: readonly TargetState[], shown: (path: string) => string): object[] {
  return states.flatMap(({ tools, scope, path, state, bytes, limit, dropped, missing }) =>
    (tools.length === 0 ? [null] : tools).map((adapter) => ({
      adapter,
      scope,
      path: shown(path),
      state,
      bytes,
      limit: limit === undefined ? null : { value: limit.value, unit: limit.unit, kind: limit.kind },
      dropped,
      required: missing,
    })),
  );
}

function renderStatus(states: readonly TargetState[], shown: (path: string) => string): string {
  if (states.length === 0) return "no file to write for these tools in this scope";
  const rows = states.map(({ tools, path, state, bytes, limit }) => [
    state,
    shown(path),
    tools.join(", "),
    formatNumber(bytes),
    limit === undefined ? "" : `${formatNumber(limit.value)} ${limit.unit}`,
  ]);
  return renderTable(
    [["State", "File", "Tools", "Bytes", "Hard limit"], ...rows],
    ["left", "left", "left", "right", "right"],
  ).join("\n");
}

/** Removes our blocks and files. Without `--tool` removes all of them, also those for tools of earlier runs. */
async function runUninstall(
  { engine }: Prepared,
  { cwd, env, options, output }: Call<OptionValues<typeof injectOptions>>,
): Promise<CommandResult> {
  const dryRun = options["dry-run"] === true;
  const onlyKnown = options.tool !== undefined;
  const known = onlyKnown ? [...engine.adapters, ...(engine.served?.run ?? [])] : engine.everyAdapter;
  const results = await uninstallFiles({ ...engine, known, onlyKnown, env, dryRun });
  const shown = (path: string) => shownPath(path, cwd, env);
  for (const { problem } of results) if (problem !== undefined) output.problem(describeError(problem, shown));
  const lines = renderRemoved(results, { shown: (path) => printable(shown(path)), dryRun });
  return {
    json: results.map(({ adapters: owners, path, change }) => ({
      adapters: owners.map(({ id }) => id),
      path: shown(path),
      deleted: change !== undefined && change.after === undefined,
      written: change?.written ?? false,
    })),
    isReport: !dryRun,
    text: results.length === 0 ? "found nothing that Plimsoll wrote" : lines.join("\n"),
    failed: results.some(({ problem }) => problem !== undefined),
  };
}
