import { realpath } from "node:fs/promises";
import { relative } from "node:path";
import { usageError } from "../../core/errors.ts";
import { formatNumber, printable } from "../../core/text/index.ts";
import type { Output, Style } from "../../host/index.ts";
import {
  chooseCounter,
  homeDirectory,
  loadConfig,
  noteLeftOut,
  openDirectory,
  projectRoot,
  renderTable,
} from "../../host/index.ts";
import {
  type Adapter,
  type AuditedRepository,
  type AuditedTool,
  type AuditReport,
  isEnforced,
  loadAudit,
  loadPacks,
  loadRepositoriesAudit,
  refuseUnknownTools,
} from "../../rules/index.ts";
import { type Call, type Command, type CommandResult, defineCommand, type OptionValues } from "../command.ts";
import { counterOptions, type ListOption, type SwitchOption, trustOption } from "../shared-options.ts";

export const auditCommand: Command = defineCommand({
  arguments: [
    {
      name: "DIR",
      optional: true,
      repeated: true,
      summary: "the folder in which you would start the tools (default: the current one), or several repositories",
    },
  ],
  options: {
    tool: { value: "ID[,ID...]", list: true, summary: "show only these AI tools" },
    all: { summary: "also show tools that load nothing" },
    ...counterOptions,
    ...trustOption,
  },
  details: `Looks at the files that AI tools load by themselves: those from the root of the repository down to DIR,
those under HOME, and the files that they import. Shows the tokens of each file, broken limits and advice. Writes
nothing. Tools that load the same files are shown together. The counter is that of --counter, or else of --model,
or else of the project's configuration (counter, model), or else auto: the same as for inject.
With several DIR: one row for each repository, with the revision of the company's packs, the most tokens that a chosen
tool loads in the root (without HOME), and how often inject --check finds each fault. The exit code is 1 if there is
any.`,
  examples: [
    { line: "plimsoll audit", meaning: "what every tool loads here" },
    {
      line: "plimsoll audit services/api --model gpt-5",
      meaning: "in a subfolder, with that model's counter",
    },
    { line: "plimsoll audit --tool claude-code", meaning: "one tool" },
    { line: "plimsoll audit --all", meaning: "also tools that load nothing" },
    { line: "plimsoll audit ~/code/*", meaning: "one row for each repository; fails if one has a fault" },
    { line: "plimsoll audit --json | jq '.tools[] | {id, tokens}'", meaning: "JSON for programs" },
  ],
  async run(call) {
    const { cwd, env, options, output } = call;
    if (call.arguments.length > 1) return compareRepositories(call);
    const directory = await openDirectory(call.arguments[0] ?? ".", cwd);
    // As in inject, a person's own configuration does not change the counts of a project.
    const { values: project } = await loadConfig({ cwd: directory, env, projectOnly: true });
    const counter = await chooseCounter(call, "auto", { config: project });
    const home = await realpath(homeDirectory(env)).catch(() => homeDirectory(env));
    const { values: config, leftOut, sources } = await loadConfig({ cwd: directory, env });
    const content = await loadPacks({ config, sources, scope: "project", root: projectRoot(directory, home), env });
    noteLeftOut(leftOut, call);
    for (const { file, line, message } of content.problems)
      output.note(`${printable(relative(cwd, file))}:${line}: ${message}`);
    const report = await (await loadAudit()).audit({
      adapters: content.adapters,
      packs: content.packs,
      chosen: config.tools ?? content.company?.tools,
      directory,
      home,
      counter,
      cwd: await realpath(cwd),
      all: options.all === true || options.tool !== undefined,
    });
    const shown = { ...report, tools: chosenTools(report.tools, options.tool, content.adapters) };
    return { json: shown, text: renderReport(shown, output.style) };
  },
});

async function compareRepositories(
  call: Call<OptionValues<typeof counterOptions & Record<"tool", ListOption> & Record<"all", SwitchOption>>>,
): Promise<CommandResult> {
  const { options, output } = call;
  if (options.all === true) throw usageError("--all needs a single DIR");
  const { auditRepositories } = await loadRepositoriesAudit();
  const repositories = await auditRepositories(call.arguments, { ...options, tools: options.tool }, call);
  const faulty = repositories.filter((each) => each.problem !== null || listFaults(each).length > 0);
  return {
    json: { repositories, faults: faulty.length },
    text: renderRepositories(repositories, output),
    failed: faulty.length > 0,
  };
}

function listFaults({ hidden, twice, over, outOfDate }: AuditedRepository) {
  return [...hidden, ...twice, ...over, ...outOfDate];
}

/** The table is as wide as the terminal at most. A long path loses its beginning. */
function renderRepositories(repositories: readonly AuditedRepository[], { style, columns = 80 }: Output): string {
  const headings = ["repository", "company", "tokens", "largest", "hidden", "twice", "over", "outdated"];
  const cells = repositories.map(({ company, tools, problem, ...repository }) => {
    const largest = [...tools].sort((a, b) => b.tokens - a.tokens)[0];
    const revision = [company?.revision?.slice(0, 12), company?.commit?.slice(0, 7)].filter(Boolean).join(" ");
    const { hidden, twice, over, outOfDate } = repository;
    const counts = [hidden, twice, over, outOfDate].map(({ length }) => (problem === null ? String(length) : "?"));
    const source = company === null ? "none" : revision === "" ? "in place" : revision;
    const tokens = largest === undefined ? "" : formatNumber(largest.tokens);
    return [problem === null ? source : "?", tokens, largest?.id ?? "", ...counts];
  });
  const alignment = ["left", "left", "right", "left", "right", "right", "right", "right"] as const;
  const rest = renderTable([headings.slice(1), ...cells], alignment.slice(1));
  const room = Math.max(headings[0]!.length, columns - Math.max(...rest.map(({ length }) => length)) - 2);
  const shorten = (path: string) => (path.length <= room ? path : `…${path.slice(1 - room)}`);
  const rows = cells.map((row, index) => [shorten(printable(repositories[index]!.path)), ...row]);
  const lines = renderTable([headings, ...rows], alignment, style);
  const faults = repositories.flatMap((each) => [
    ...(each.problem === null ? [] : [`${each.path}: ${each.problem}`]),
    ...listFaults(each).map(({ path, tools, state }) => {
      const what = state === "does not fit" ? "lacks packs that do not fit" : `is ${state}`;
      return `${each.path}: ${path} ${what}${tools.length === 0 ? "" : ` (${tools.join(", ")})`}`;
    }),
    ...(each.required.length === 0 ? [] : [`${each.path}: lacks required packs: ${each.required.join(", ")}`]),
  ]);
  return [...lines, ...(faults.length === 0 ? [] : ["", ...faults.map(printable)])].join("\n");
}

/** Returns the tools with these ids. The id of an adapter that several tools read means all of them. Throws on an id
 *  that no tool has. */
function chosenTools(
  tools: readonly AuditedTool[],
  ids: readonly string[] | undefined,
  adapters: readonly Adapter[],
): readonly AuditedTool[] {
  if (ids === undefined) return tools;
  const known = tools.map(({ id }) => id);
  const other = ids.filter((id) => !known.includes(id));
  refuseUnknownTools(other, adapters);
  const readers = adapters.filter(({ id }) => other.includes(id)).flatMap(({ reads }) => reads);
  return tools.filter(({ id }) => ids.includes(id) || readers.includes(id));
}

function renderReport({ counter, tools }: AuditReport, style: Style): string {
  if (tools.length === 0) return "no AI tool loads any file here";
  const groups = new Map<string, AuditedTool[]>();
  for (const tool of tools) {
    const { id: _, ...rest } = tool;
    const key = JSON.stringify(rest);
    groups.set(key, [...(groups.get(key) ?? []), tool]);
  }
  return [...groups.values()]
    .map((alike) => [
      style.bold(alike.map(({ id }) => printable(id)).join(", ")),
      ...renderTool(alike[0]!, counter, style).map((line) => `  ${line}`),
    ])
    .map((lines) => lines.join("\n"))
    .join("\n\n");
}

function renderTool(tool: AuditedTool, counter: string, style: Style): string[] {
  const { files, tokens, alwaysTokens, onDemandTokens } = tool;
  const rows = files.map((file) => [printable(file.path), printable(file.via), formatNumber(file.tokens)]);
  // What a tool loads on demand is not part of a session's price, so it has its own line.
  if (onDemandTokens > 0) {
    rows.push(["always loaded", "", formatNumber(alwaysTokens)], ["on demand", "", formatNumber(onDemandTokens)]);
  } else if (files.length !== 1) rows.push(["total", "", formatNumber(tokens)]);
  const lines = renderTable([["file", "via", counter], ...rows], ["left", "left", "right"], style);
  const broken = tool.limits
    .filter((limit) => limit.exceeded)
    .map((limit) => {
      const label = isEnforced(limit) ? "OVER THE LIMIT" : softLabels[limit.kind];
      const size = `${formatNumber(limit.used)} of ${formatNumber(limit.value)} ${limit.unit}`;
      return `${label}: ${size} in ${limit.scope === "chain" ? "all files" : "one file"}`;
    });
  const table = files.length === 0 ? ["no file"] : lines;
  return [...table, ...broken, ...tool.advice.map((sentence) => `- ${printable(sentence)}`)];
}

/** Limits that do not fail the audit. `inject` ignores a hard limit from a third party too. */
const softLabels = {
  hard: "over a limit that a third party reports",
  warn: "over the size at which the tool warns",
  advice: "over the advised size",
} as const;
