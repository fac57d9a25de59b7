/** `mcp install` and `mcp uninstall`: our server in the configuration files of AI tools, told to people and programs. */
import { relative } from "node:path";
import { type Adapter, type LoadPacksOptions, loadMcpWire, loadPacks } from "../../adapters/index.ts";
import type { ContextError } from "../../errors.ts";
import {
  type Environment,
  type FileChange,
  homeDirectory,
  loadConfig,
  projectRoot,
} from "../../workspace/index.ts";
import type { Call, CommandResult } from "../command.ts";
import { createDiff } from "../inject/unified-diff.ts";
import { describeError } from "../report-error.ts";
import { shownPath } from "../shown-path.ts";
import { noteLeftOut } from "../trust.ts";

export interface InstallFlags {
  readonly tool?: readonly string[] | undefined;
  readonly global?: boolean | undefined;
  readonly "dry-run"?: boolean | undefined;
}

export interface McpInstallOptions {
  /** Ids of AI tools. Absent: those of the configuration, else those in use here; for uninstalling, all. */
  readonly tools?: readonly string[] | undefined;
  readonly global: boolean;
  readonly dryRun: boolean;
  readonly cwd: string;
  readonly env: Environment;
  /** Is told what a person may want to know and nobody has to act on. */
  readonly note: (text: string) => void;
}

/** What became of one file. */
export interface InstallReport {
  readonly tools: readonly string[];
  /** As a person sees it from where they are. */
  readonly path: string;
  readonly status: "added" | "current" | "restored" | "deleted" | "failed";
  readonly written: boolean;
  /** What a dry run would change. */
  readonly diff?: string;
  readonly problem?: ContextError;
}

/** The reports of all files; none where no AI tool is found. An unknown tool is wrong usage, and thrown. */
export async function runMcpInstall(options: McpInstallOptions): Promise<InstallReport[]> {
  const { installServers, findsCommand } = await loadMcpWire();
  const reports = await reportsOf(await installServers(await prepare(options)), "added", options);
  if (reports.some(({ status }) => status === "added") && !(await findsCommand(options.env))) {
    options.note(notOnPath);
  }
  return reports;
}

/** The reports of the files that held our server. */
export async function runMcpUninstall(options: McpInstallOptions): Promise<InstallReport[]> {
  const { uninstallServers } = await loadMcpWire();
  return reportsOf(await uninstallServers(await prepare(options)), "restored", options);
}

export async function mcpInstall(call: Call<InstallFlags>): Promise<CommandResult> {
  const options = optionsOf(call);
  const reports = await runMcpInstall(options);
  if (reports.length > 0) return resultOf(reports, call);
  const { serverTools } = await loadMcpWire();
  const ids = serverTools(await prepare(options)).join(", ");
  call.output.problem(`no AI tool with an MCP configuration was found here. Name one with --tool: ${ids}`);
  return { json: [], text: "", failed: true };
}

export async function mcpUninstall(call: Call<InstallFlags>): Promise<CommandResult> {
  const reports = await runMcpUninstall(optionsOf(call));
  return reports.length > 0 ? resultOf(reports, call) : { json: [], text: "nothing of ours was found" };
}

const notOnPath =
  'plimsoll is not on PATH, so that AI tools cannot start it: "npm link" in its clone puts it there';

type Wire = Awaited<ReturnType<typeof loadMcpWire>>;

async function prepare(options: McpInstallOptions): Promise<Parameters<Wire["installServers"]>[0]> {
  const { tools, global, dryRun, cwd, env } = options;
  const home = homeDirectory(env);
  const scope = global ? "global" : "project";
  const root = global ? home : projectRoot(cwd, home);
  // As for inject: a person's own files are the same wherever they stand.
  const { values: config, leftOut } = await loadConfig({ cwd: global ? home : cwd, env });
  noteLeftOut(leftOut, { cwd, env, output: { note: options.note } });
  const adapters = await loadAdapters({ config, scope, root, env }, options);
  return { adapters, places: { scope, root, home }, env, dryRun, tools, configured: config.tools };
}

/** Packs are of no concern here, so what is wrong with content, or with the company's server, stops nothing. */
async function loadAdapters(
  content: LoadPacksOptions,
  { note, cwd }: McpInstallOptions,
): Promise<readonly Adapter[]> {
  const load = (config: LoadPacksOptions["config"]) => loadPacks({ ...content, config, profile: "all" });
  const { adapters, problems } = await load(content.config).catch((error: unknown) => {
    if (content.config.company === undefined) throw error;
    note(`going on without the company's layer: ${(error as Error).message}`);
    return load({ ...content.config, company: undefined });
  });
  for (const { file, line, message } of problems) note(`${relative(cwd, file)}:${line}: ${message}`);
  return adapters;
}

async function reportsOf(
  results: Awaited<ReturnType<Wire["installServers"]>>,
  changed: "added" | "restored",
  { cwd, env, dryRun }: McpInstallOptions,
): Promise<InstallReport[]> {
  const shown = (path: string) => shownPath(path, cwd, env);
  const diffOf = dryRun ? await createDiff(shown) : () => "";
  return results.map(({ adapters, path, change, problem }) => {
    const diff = change === undefined ? "" : diffOf(change);
    return {
      tools: adapters.map(({ id }) => id),
      path: shown(path),
      status: change === undefined ? "failed" : statusOf(change, changed),
      written: change?.written ?? false,
      ...(diff !== "" && { diff }),
      ...(problem && { problem }),
    };
  });
}

function statusOf({ before, after }: FileChange, changed: "added" | "restored"): InstallReport["status"] {
  if (before === after) return "current";
  return after === undefined ? "deleted" : changed;
}

function optionsOf({ options, cwd, env, output }: Call<InstallFlags>): McpInstallOptions {
  const { tool: tools, global, "dry-run": dryRun } = options;
  return { tools, global: global === true, dryRun: dryRun === true, cwd, env, note: output.note };
}

const verbs: Readonly<Record<InstallReport["status"], readonly [done: string, planned: string]>> = {
  added: ["plimsoll added", "would add plimsoll"],
  current: ["already there", "already there"],
  restored: ["restored", "would restore"],
  deleted: ["deleted", "would delete"],
  failed: ["", ""],
};

function resultOf(
  reports: readonly InstallReport[],
  { cwd, env, options, output }: Call<InstallFlags>,
): CommandResult {
  const shown = (path: string) => shownPath(path, cwd, env);
  for (const { problem } of reports) if (problem !== undefined) output.problem(describeError(problem, shown));
  const done = reports.filter(({ status }) => status !== "failed");
  const lines = done.map(
    ({ path, tools, status }) =>
      `${path} (${tools.join(", ")}): ${verbs[status][options["dry-run"] === true ? 1 : 0]}`,
  );
  return {
    json: reports.map(({ problem, ...report }) => ({
      ...report,
      ...(problem && { error: errorOf(problem, shown) }),
    })),
    text: [...done.flatMap(({ diff }) => diff ?? []), ...lines].join("\n"),
    failed: done.length < reports.length,
  };
}

function errorOf({ code, message, hint, file, line }: ContextError, shown: (path: string) => string): object {
  return { code, message, hint: hint ?? null, file: file === undefined ? undefined : shown(file), line };
}
