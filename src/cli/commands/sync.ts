import { dirname, relative, resolve } from "node:path";
import { countNoun, formatNumber, printable } from "../../core/text/index.ts";
import type { Output } from "../../host/index.ts";
import { homeDirectory, loadConfig, noteLeftOut, projectRoot, renderTable, shownPath } from "../../host/index.ts";
import { loadSync, type SyncReport } from "../../rules/index.ts";
import { type Command, defineCommand } from "../command.ts";
import { trustOption } from "../shared-options.ts";

export const syncCommand: Command = defineCommand({
  options: {
    content: { value: "DIR", summary: "use packs of this directory instead of the built-in ones" },
    force: { summary: "fetch everything again, even if it is not due yet" },
    "allow-private": { summary: "also fetch from this machine and its network" },
    ...trustOption,
  },
  details: `Fetches the company's packs (configuration key company: a git URL at a revision, or a directory, which
is used in place) and the text of every sync:fetch marker in a pack.
The company's packs go to $XDG_CACHE_HOME/plimsoll (~/.cache by default). The texts go to .plimsoll/fetched, with
their source, date and hash in index.json. Commit that folder: inject and --check then read the same text on every
machine and need no network. Texts of your own packs go to fetched/ in $XDG_CONFIG_HOME/plimsoll instead.
A text is fetched again when it is older than ttl_hours of its marker (7 days). If a fetch fails, the last good text
is kept and the exit code is 1. A text that no marker names any more is removed.
Addresses that are not public (loopback, private, link-local, cloud metadata) are refused, even after a redirect or
a name lookup. --allow-private allows them, for example for a company's own git server.`,
  examples: [
    { line: "plimsoll sync", meaning: "fetch what is due" },
    {
      line: "plimsoll sync --force && plimsoll inject",
      meaning: "fetch everything again, and write it into the files",
    },
    { line: "plimsoll sync --json | jq '.texts[] | select(.reason)'", meaning: "what could not be fetched" },
  ],
  async run(call) {
    const { options, cwd, env, output } = call;
    const { values: config, leftOut, sources } = await loadConfig({ cwd, env });
    const { sync } = await loadSync();
    const report = await sync({
      config,
      root: projectRoot(cwd, homeDirectory(env)),
      env,
      isPartial: leftOut.length > 0,
      companyOf: sources["company.source"]?.startsWith("user ") ? "user" : "project",
      contentDirectory: options.content === undefined ? undefined : resolve(cwd, options.content),
      force: options.force,
      allowPrivate: options["allow-private"],
      progress: output.progress,
    });
    const problems = report.problems.map((problem) => ({ ...problem, file: relative(cwd, problem.file) }));
    const texts = report.texts.map(({ file, ...text }) => ({
      ...text,
      file: file === undefined ? undefined : shownPath(file, cwd, env),
    }));
    const shown = { ...report, texts, problems };
    const untrusted = [...leftOut, ...report.leftOut];
    noteLeftOut(untrusted, call);
    tellProblems(shown, output);
    const { company } = report;
    const nothing =
      untrusted.length > 0
        ? "Nothing was fetched: this project's sources are not trusted."
        : "Nothing to sync: no company's packs are configured, and no pack has a sync:fetch marker.";
    // Leaves out a path of this machine.
    const { directory: _, ...shownCompany } = company ?? { directory: undefined };
    return {
      json: { company: company === undefined ? null : shownCompany, texts, problems },
      text: company === undefined && texts.length === 0 ? nothing : renderReport(shown, output),
      failed:
        company?.status === "failed" ||
        texts.some(({ reason }) => reason !== undefined) ||
        problems.some(({ severity }) => severity === "error"),
    };
  },
});

/** Reports problems of the content, and sources that could not be fetched. */
function tellProblems({ company, texts, problems }: SyncReport, output: Output): void {
  for (const { file, line, severity, message } of problems) {
    const tell = severity === "error" ? output.problem : output.note;
    tell(`${printable(file)}:${line}: ${printable(message)}`);
  }
  if (company?.reason !== undefined) {
    const kept = company.commit === undefined ? "" : ` (${company.commit.slice(0, 12)} is kept)`;
    output.problem(printable(`company ${company.source}: ${company.reason}${kept}`));
  }
  for (const { url, reason, fetched, warning, truncated } of texts) {
    const kept = fetched === undefined ? "" : ` (the text of ${fetched} is kept)`;
    if (reason !== undefined) output.problem(printable(`${url}: ${reason}${kept}`));
    if (warning !== undefined) output.note(printable(`${url}: ${warning}`));
    if (truncated) output.note(printable(`${url}: longer than 1 MiB, so the rest is left out`));
  }
}

function renderReport({ company, texts }: SyncReport, { style }: Output): string {
  const rows = [["status", "bytes", "packs", "from"]];
  if (company !== undefined) {
    const at = [company.revision, company.commit?.slice(0, 12)].filter((each) => each !== undefined);
    rows.push([company.status, "", "company", [company.source, ...at].join(" ")]);
  }
  rows.push(...texts.map(({ status, bytes, packs, url }) => [status, formatNumber(bytes), packs.join(","), url]));
  const [header = "", ...lines] = renderTable(
    rows.map((row) => row.map(printable)),
    ["left", "right", "left", "left"],
  );
  const folders = texts.flatMap(({ status, file = "" }) => (status === "fetched" ? dirname(file) : []));
  const written = [...new Set(folders)].map((folder) => {
    const count = countNoun(folders.filter((each) => each === folder).length, "text");
    // Fetched texts are useful to others only after they are committed.
    const advice = folder.endsWith(".plimsoll/fetched")
      ? " Commit this folder, so everyone injects the same text."
      : "";
    return `Wrote ${count} to ${printable(folder)}.${advice}`;
  });
  return [style.dim(header), ...lines, ...written].join("\n");
}
