import { relative, resolve } from "node:path";
import { formatNumber, printable } from "../../text/index.ts";
import {
  homeDirectory,
  loadConfig,
  loadSync,
  projectRoot,
  type SyncReport,
  type TextSync,
} from "../../workspace/index.ts";
import { type Command, defineCommand } from "../command.ts";
import type { Output } from "../output.ts";
import { renderTable } from "../table.ts";
import { noteLeftOut, trustOption } from "../trust.ts";

export const syncCommand: Command = defineCommand({
  options: {
    content: { value: "DIR", summary: "packs of this directory instead of the embedded ones" },
    force: { summary: "fetch everything anew, also what is not due yet" },
    "allow-private": { summary: "fetch from this machine and its network, too" },
    ...trustOption,
  },
  details: `Fetches the company's packs (configuration key company: a git URL at a revision; a directory is used in place)
and the text of every sync:fetch marker in a pack, into $XDG_CACHE_HOME/plimsoll (~/.cache by default). A text is
fetched again when it is older than its marker's ttl_hours (7 days). What cannot be fetched keeps its last good
text; the exit code is 1 then. inject needs no network: it reads what is in the cache.
Addresses that are not public (loopback, private, link-local, metadata of clouds) are refused, also behind a name or
a redirect: --allow-private fetches from them, as a company's own git server may need.`,
  examples: [
    { line: "plimsoll sync", meaning: "fetch what is due" },
    { line: "plimsoll sync --force && plimsoll inject", meaning: "everything anew, and into the files" },
    { line: "plimsoll sync --json | jq '.texts[] | select(.reason)'", meaning: "what could not be fetched" },
  ],
  async run(call) {
    const { options, cwd, env, output } = call;
    const { values: config, leftOut } = await loadConfig({ cwd, env });
    const { sync } = await loadSync();
    const report = await sync({
      config,
      root: projectRoot(cwd, homeDirectory(env)),
      env,
      contentDirectory: options.content === undefined ? undefined : resolve(cwd, options.content),
      force: options.force,
      allowPrivate: options["allow-private"],
      progress: output.progress,
    });
    const problems = report.problems.map((problem) => ({ ...problem, file: relative(cwd, problem.file) }));
    const shown = { ...report, problems };
    noteLeftOut([...leftOut, ...report.leftOut], call);
    tellProblems(shown, output);
    return { json: toJson(shown), text: renderReport(shown, output), failed: hasFailed(shown) };
  },
});

function hasFailed({ company, texts, problems }: SyncReport): boolean {
  return (
    company?.status === "failed" ||
    texts.some(({ reason }) => reason !== undefined) ||
    problems.some(({ severity }) => severity === "error")
  );
}

function tellProblems({ company, texts, problems }: SyncReport, output: Output): void {
  for (const { file, line, severity, message } of problems) {
    const text = `${printable(file)}:${line}: ${printable(message)}`;
    if (severity === "error") output.problem(text);
    else output.note(text);
  }
  if (company?.reason !== undefined) {
    const kept = company.commit === undefined ? "" : ` (${company.commit.slice(0, 12)} is kept)`;
    output.problem(printable(`company ${company.source}: ${company.reason}${kept}`));
  }
  for (const text of texts) tellText(text, output);
}

function tellText({ url, reason, fetched, warning, truncated }: TextSync, output: Output): void {
  const kept = fetched === undefined ? "" : ` (the text of ${fetched} is kept)`;
  if (reason !== undefined) output.problem(printable(`${url}: ${reason}${kept}`));
  if (warning !== undefined) output.note(printable(`${url}: ${warning}`));
  if (truncated) output.note(printable(`${url}: longer than 1 MiB, the rest is left out`));
}

/** Without what only this machine knows. */
function toJson({ company, texts, problems }: SyncReport): unknown {
  const { directory, ...shown } = company ?? { directory: undefined };
  return { company: company === undefined ? null : shown, texts, problems };
}

function renderReport({ company, texts }: SyncReport, output: Output): string {
  if (company === undefined && texts.length === 0)
    return "Nothing to sync: no company's packs are configured, and no pack has a sync:fetch marker.";
  const rows = [["status", "bytes", "packs", "from"]];
  if (company !== undefined) {
    const at = [company.revision, company.commit?.slice(0, 12)].filter((each) => each !== undefined);
    rows.push([company.status, "", "company", [company.source, ...at].join(" ")]);
  }
  rows.push(...texts.map(textRow));
  const lines = renderTable(
    rows.map((row) => row.map(printable)),
    ["left", "right", "left", "left"],
  );
  return [output.style.dim(lines[0]!), ...lines.slice(1)].join("\n");
}

function textRow({ status, bytes, packs, url }: TextSync): string[] {
  return [status, formatNumber(bytes), packs.join(","), url];
}
