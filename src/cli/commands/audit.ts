import { realpath } from "node:fs/promises";
import { relative } from "node:path";
import { formatNumber, printable } from "../../core/text/index.ts";
import type { Style } from "../../host/index.ts";
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
  type AuditedTool,
  type AuditReport,
  isEnforced,
  loadAudit,
  loadPacks,
  refuseUnknownTools,
} from "../../rules/index.ts";
import { type Command, defineCommand } from "../command.ts";
import { counterOptions, trustOption } from "../shared-options.ts";

export const auditCommand: Command = defineCommand({
  arguments: [
    {
      name: "DIR",
      optional: true,
      summary: "the folder in which you would start the tools (default: the current one)",
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
or else of the project's configuration (counter, model), or else auto: the same as for inject.`,
  examples: [
    { line: "plimsoll audit", meaning: "what every tool loads here" },
    {
      line: "plimsoll audit services/api --model gpt-5",
      meaning: "in a subfolder, with that model's counter",
    },
    { line: "plimsoll audit --tool claude-code", meaning: "one tool" },
    { line: "plimsoll audit --all", meaning: "also tools that load nothing" },
    { line: "plimsoll audit --json | jq '.tools[] | {id, tokens}'", meaning: "JSON for programs" },
  ],
  async run(call) {
    const { cwd, env, options, output } = call;
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
  const [header = "", ...lines] = renderTable([["file", "via", counter], ...rows], ["left", "left", "right"]);
  const broken = tool.limits
    .filter((limit) => limit.exceeded)
    .map((limit) => {
      const label = isEnforced(limit) ? "OVER THE LIMIT" : softLabels[limit.kind];
      const size = `${formatNumber(limit.used)} of ${formatNumber(limit.value)} ${limit.unit}`;
      return `${label}: ${size} in ${limit.scope === "chain" ? "all files" : "one file"}`;
    });
  const table = files.length === 0 ? ["no file"] : [style.dim(header), ...lines];
  return [...table, ...broken, ...tool.advice.map((sentence) => `- ${printable(sentence)}`)];
}

/** Limits that do not fail the audit. `inject` ignores a hard limit from a third party too. */
const softLabels = {
  hard: "over a limit that a third party reports",
  warn: "over the size at which the tool warns",
  advice: "over the advised size",
} as const;
