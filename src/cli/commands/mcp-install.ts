/** `mcp install` and `mcp uninstall`: add our server to the configuration files of AI tools, or remove it. */
import { usageError } from "../../core/errors.ts";
import { describeError, shownPath } from "../../host/index.ts";
import { type InstallReport, loadMcpInstall, type McpInstallOptions } from "../../rules/index.ts";
import type { Call, CommandResult } from "../command.ts";

export interface InstallFlags {
  readonly tool?: readonly string[] | undefined;
  readonly global?: boolean | undefined;
  readonly "dry-run"?: boolean | undefined;
  readonly wrap?: readonly string[] | undefined;
  readonly lazy?: boolean | undefined;
  readonly force?: boolean | undefined;
}

export async function mcpInstall(call: Call<InstallFlags>): Promise<CommandResult> {
  const { prepareInstall, runMcpInstall, serverTools } = await loadMcpInstall();
  const options = readInstallOptions(call);
  const reports = await runMcpInstall(options);
  if (reports.length > 0) return renderReports(reports, call);
  // Its notes were printed before.
  const ids = serverTools(await prepareInstall({ ...options, note: () => {} })).join(", ");
  call.output.problem(`found no AI tool with an MCP configuration here. Name one with --tool: ${ids}`);
  return { json: [], text: "", failed: true };
}

export async function mcpUninstall(call: Call<InstallFlags>): Promise<CommandResult> {
  const { runMcpUninstall } = await loadMcpInstall();
  const reports = await runMcpUninstall(readInstallOptions(call));
  return reports.length > 0 ? renderReports(reports, call) : { json: [], text: "found nothing that Plimsoll wrote" };
}

function readInstallOptions({ options, cwd, env, output }: Call<InstallFlags>): McpInstallOptions {
  const { tool: tools, global, "dry-run": dryRun, wrap: names, lazy, force } = options;
  if (names === undefined && (lazy === true || force === true)) {
    throw usageError(`--${lazy === true ? "lazy" : "force"} needs --wrap`);
  }
  const wrap = names && { names, isLazy: lazy === true, isForced: force === true };
  return {
    wrap,
    tools,
    global: global === true,
    dryRun: dryRun === true,
    cwd,
    env,
    note: output.note,
  };
}

const verbs: Readonly<Record<InstallReport["status"], readonly [done: string, planned: string]>> = {
  added: ["plimsoll added", "would add plimsoll"],
  wrapped: ["wrapped", "would wrap"],
  current: ["already there", "already there"],
  restored: ["restored", "would restore"],
  deleted: ["deleted", "would delete"],
  failed: ["", ""],
};

function renderReports(
  reports: readonly InstallReport[],
  { cwd, env, options, output }: Call<InstallFlags>,
): CommandResult {
  const shown = (path: string) => shownPath(path, cwd, env);
  for (const { problem } of reports) if (problem !== undefined) output.problem(describeError(problem, shown));
  for (const next of new Set(reports.flatMap((report) => report.next ?? []))) output.note(`next: ${next}`);
  const done = reports.filter(({ status }) => status !== "failed");
  const lines = done.map(
    ({ path, tools, status }) => `${path} (${tools.join(", ")}): ${verbs[status][options["dry-run"] === true ? 1 : 0]}`,
  );
  return {
    json: reports.map(({ problem, ...report }) => ({
      ...report,
      ...(problem && {
        error: {
          code: problem.code,
          message: problem.message,
          hint: problem.hint ?? null,
          file: problem.file === undefined ? undefined : shown(problem.file),
          line: problem.line,
        },
      }),
    })),
    text: [...done.flatMap(({ diff }) => diff ?? []), ...lines].join("\n"),
    failed: done.length < reports.length,
  };
}
