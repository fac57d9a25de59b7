import { dirname, relative, resolve } from "node:path";
import { usageError } from "../../core/errors.ts";
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
    update: { summary: "also move skills of repositories to their newest commit" },
    check: { summary: "write nothing; exit 1 if skills are behind their repository" },
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
Skills of git repositories (configuration key skills) are pinned there too, with their commit and a hash. --update
fetches their newest version, --check says which are behind. inject installs the pinned ones.
Addresses that are not public (loopback, private, link-local, cloud metadata) are refused, even after a redirect or
a name lookup. --allow-private allows them, for example for a company's own git server.`,
  examples: [
    { line: "plimsoll sync", meaning: "fetch what is due" },
    { line: "plimsoll sync --update && plimsoll inject", meaning: "install the newest version of every skill" },
    { line: "plimsoll sync --check", meaning: "which skills have changed in their repository" },
    {
      line: "plimsoll sync --force && plimsoll inject",
      meaning: "fetch everything again, and write it into the files",
    },
    { line: "plimsoll sync --json | jq '.texts[] | select(.reason)'", meaning: "what could not be fetched" },
  ],
  async run(call) {
    const { options, cwd, env, output } = call;
    if (options.update === true && options.check === true)
      throw usageError("--update and --check cannot be used together");
    const { values: config, leftOut, unfetched, sources } = await loadConfig({ cwd, env });
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
      skillMode: options.check === true ? "check" : options.update === true ? "update" : "missing",
      skipsSkills: unfetched.length > 0,
    });
    const problems = report.problems.map((problem) => ({ ...problem, file: relative(cwd, problem.file) }));
    const texts = report.texts.map(({ file, ...text }) => ({
      ...text,
      file: file === undefined ? undefined : shownPath(file, cwd, env),
    }));
    const shown = { ...report, texts, problems };
    const untrusted = [...leftOut, ...report.leftOut, ...unfetched];
    noteLeftOut(untrusted, call);
    tellProblems(shown, output);
    const { company } = report;
    const nothing =
      untrusted.length > 0
        ? "Nothing was fetched: this project's sources are not trusted."
        : "Nothing to sync: no company's packs and no skills are configured, and no pack has a sync:fetch marker.";
    const { skills } = report;
    // Leaves out a path of this machine.
    const { directory: _, ...shownCompany } = company ?? { directory: undefined };
    return {
      json: { company: company === undefined ? null : shownCompany, texts, skills, problems },
      text: company === undefined && texts.length + skills.length === 0 ? nothing : renderReport(shown, output),
      failed:
        company?.status === "failed" ||
        texts.some(({ reason }) => reason !== undefined) ||
        skills.some(({ status }) => ["failed", "behind", "new", "gone"].includes(status)) ||
        problems.some(({ severity }) => severity === "error"),
    };
  },
});

/** Reports problems of the content, and sources that could not be fetched. */
function tellProblems({ company, texts, skills, problems }: SyncReport, output: Output): void {
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
  tellSkillProblems(skills, output);
}

function tellSkillProblems(skills: SyncReport["skills"], output: Output): void {
  for (const { name, source, reason, commit, scripts, leftOut, status } of skills) {
    const kept = commit === undefined ? "" : ` (${commit.slice(0, 12)} is kept)`;
    const what = name === undefined ? "skills" : `skill ${name}`;
    if (reason !== undefined) output.problem(printable(`${what} of ${source}: ${reason}${kept}`));
    for (const left of leftOut) output.note(printable(`${what} of ${source}: ${left}`));
    if (scripts.length > 0 && (status === "fetched" || status === "updated"))
      output.note(printable(`${what} brings scripts. Read them before an agent runs them: ${scripts.join(", ")}`));
  }
}

function renderReport({ company, texts, skills }: SyncReport, { style }: Output): string {
  const rows = [["status", "bytes", "packs", "from"]];
  if (company !== undefined) {
    const at = [company.revision, company.commit?.slice(0, 12)].filter((each) => each !== undefined);
    rows.push([company.status, "", "company", [company.source, ...at].join(" ")]);
  }
  rows.push(...texts.map(({ status, bytes, packs, url }) => [status, formatNumber(bytes), packs.join(","), url]));
  rows.push(
    ...skills.map(({ status, name = "", source, revision, commit }) => {
      const at = [revision === "HEAD" ? undefined : revision, commit?.slice(0, 12)];
      return [status, "", `skill ${name}`, [source, ...at].filter((each) => each !== undefined).join(" ")];
    }),
  );
  const lines = renderTable(rows, ["left", "right", "left", "left"], style);
  const folders = texts.flatMap(({ status, file = "" }) => (status === "fetched" ? dirname(file) : []));
  const written = [...new Set(folders)].map((folder) => {
    const count = countNoun(folders.filter((each) => each === folder).length, "text");
    // Fetched texts are useful to others only after they are committed.
    const advice = folder.endsWith(".plimsoll/fetched")
      ? " Commit this folder, so everyone injects the same text."
      : "";
    return `Wrote ${count} to ${printable(folder)}.${advice}`;
  });
  return [...lines, ...written, ...tellSkills(skills)].join("\n");
}

function tellSkills(skills: SyncReport["skills"]): string[] {
  const list = (...statuses: readonly string[]) => skills.filter(({ status }) => statuses.includes(status));
  const lines: string[] = [];
  const behind = list("behind", "updated");
  const moves = behind.map(({ name, commit, previous = commit, latest = commit }) =>
    [name, previous?.slice(0, 7), "->", latest?.slice(0, 7)].join(" "),
  );
  const isUpdate = behind.some(({ status }) => status === "updated");
  const verb = isUpdate ? "updated" : behind.length === 1 ? "is behind" : "are behind";
  if (behind.length > 0) lines.push(`${countNoun(behind.length, "skill")} ${verb}: ${moves.join(", ")}`);
  for (const [status, what] of [
    ["new", "not pinned yet"],
    ["gone", "gone from the repository"],
  ] as const) {
    const names = list(status).map(({ name }) => name);
    if (names.length > 0) lines.push(`${countNoun(names.length, "skill")} ${what}: ${names.join(", ")}`);
  }
  if (list("fetched", "updated", "removed").length > 0)
    lines.push("Commit .plimsoll/fetched, and run plimsoll inject to install the skills.");
  else if (list("behind", "new", "gone").length > 0) lines.push("Run plimsoll sync --update to change that.");
  return lines.map(printable);
}
