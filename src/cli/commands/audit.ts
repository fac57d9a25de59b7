import { realpath } from "node:fs/promises";
import { relative } from "node:path";
import {
  type AuditedTool,
  type AuditReport,
  isEnforced,
  loadAudit,
  loadPacks,
} from "../../adapters/index.ts";
import { formatNumber, printable } from "../../text/index.ts";
import { homeDirectory, loadConfig, openDirectory, projectRoot } from "../../workspace/index.ts";
import { chooseCounter, counterOptions } from "../choose-counters.ts";
import { type Command, defineCommand } from "../command.ts";
import type { Style } from "../output.ts";
import { renderTable } from "../table.ts";
import { noteLeftOut, trustOption } from "../trust.ts";

export const auditCommand: Command = defineCommand({
  arguments: [{ name: "DIR", optional: true, summary: "where the tools would be started (default: here)" }],
  options: { ...counterOptions, all: { summary: "also the tools that load nothing" }, ...trustOption },
  details: `Looks at the files that AI tools load by themselves: those of the repository from its root down to DIR, those
under HOME, and what they import. Shows the tokens of each, limits that are broken, and advice. Nothing is written.
Tools that load the same files are shown together. The counter: --counter, else that of --model, else the
configuration's, else auto.`,
  examples: [
    { line: "plimsoll audit", meaning: "what every tool loads here" },
    {
      line: "plimsoll audit services/api --model gpt-5",
      meaning: "in a folder further down, as that model counts",
    },
    { line: "plimsoll audit --all", meaning: "with the tools that load nothing" },
    { line: "plimsoll audit --json | jq '.tools[] | {id, tokens}'", meaning: "for programs" },
  ],
  async run(call) {
    const { cwd, env, options, output } = call;
    const directory = await openDirectory(call.arguments[0] ?? ".", cwd);
    const counter = await chooseCounter({ ...call, cwd: directory }, "auto");
    const home = await realpath(homeDirectory(env)).catch(() => homeDirectory(env));
    const { values: config, leftOut } = await loadConfig({ cwd: directory, env });
    const content = await loadPacks({ config, scope: "project", root: projectRoot(directory, home), env });
    noteLeftOut([...leftOut, ...content.leftOut], call);
    for (const { file, line, message } of content.problems)
      output.note(`${printable(relative(cwd, file))}:${line}: ${message}`);
    const report = await (await loadAudit()).audit({
      ...{ adapters: content.adapters, directory, home, counter },
      ...{ cwd: await realpath(cwd), all: options.all === true },
    });
    return { json: report, text: renderReport(report, output.style) };
  },
});

function renderReport({ counter, tools }: AuditReport, style: Style): string {
  if (tools.length === 0) return "no AI tool loads a file here";
  return groupAlike(tools)
    .map((alike) => {
      const tool = alike[0]!;
      return [
        style.bold(alike.map(({ id }) => printable(id)).join(", ")),
        ...renderFiles(tool, counter, style),
        ...renderBroken(tool),
        ...tool.advice.map((sentence) => `  - ${printable(sentence)}`),
      ].join("\n");
    })
    .join("\n\n");
}

function groupAlike(tools: readonly AuditedTool[]): AuditedTool[][] {
  const groups = new Map<string, AuditedTool[]>();
  for (const tool of tools) {
    const { id: _, ...rest } = tool;
    const key = JSON.stringify(rest);
    groups.set(key, [...(groups.get(key) ?? []), tool]);
  }
  return [...groups.values()];
}

function renderFiles({ files, tokens }: AuditedTool, counter: string, style: Style): string[] {
  if (files.length === 0) return ["  no file"];
  const rows = files.map((file) => [printable(file.path), printable(file.via), formatNumber(file.tokens)]);
  const total = files.length === 1 ? [] : [["total", "", formatNumber(tokens)]];
  const lines = renderTable([["file", "via", counter], ...rows, ...total], ["left", "left", "right"]);
  return [style.dim(lines[0]!), ...lines.slice(1)].map((line) => `  ${line}`);
}

function renderBroken({ limits }: AuditedTool): string[] {
  return limits
    .filter((limit) => limit.exceeded)
    .map((limit) => {
      const { value, unit, scope, used } = limit;
      const label = isEnforced(limit) ? "OVER THE LIMIT" : softLabels[limit.kind];
      return `  ${label}: ${formatNumber(used)} of ${formatNumber(value)} ${unit} in ${scope === "chain" ? "all files" : "one file"}`;
    });
}

/** A hard limit that is known at second hand only is no reason to fail: `inject` does not keep to it either. */
const softLabels = {
  hard: "over a second-hand limit",
  warn: "over a warning",
  advice: "over an advice",
} as const;
