/** `mcp install` and `mcp uninstall`: add our server to the configuration files of AI tools, or remove it. */
import { relative } from "node:path";
import { type ContextError, usageError } from "../../core/errors.ts";
import {
  describeError,
  type Environment,
  type FileChange,
  homeDirectory,
  loadConfig,
  noteLeftOut,
  projectRoot,
  shownPath,
} from "../../host/index.ts";
import { type Adapter, type LoadPacksOptions, loadMcpWire, loadPacks } from "../../rules/index.ts";
import type { Call, CommandResult } from "../command.ts";
import { createDiff } from "../inject/unified-diff.ts";

export interface InstallFlags {
  readonly tool?: readonly string[] | undefined;
  readonly global?: boolean | undefined;
  readonly "dry-run"?: boolean | undefined;
  readonly wrap?: readonly string[] | undefined;
  readonly lazy?: boolean | undefined;
  readonly force?: boolean | undefined;
}

export interface McpInstallOptions {
  /** Ids of AI tools. If absent: those of the configuration, or else those in use here; for uninstalling, all. */
  readonly tools?: readonly string[] | undefined;
  readonly global: boolean;
  readonly dryRun: boolean;
  /** Existing servers that are put behind `mcp wrap`, instead of adding ours. */
  readonly wrap?:
    | { readonly names: readonly string[]; readonly isLazy: boolean; readonly isForced: boolean }
    | undefined;
  readonly cwd: string;
  readonly env: Environment;
  /** Receives notes that need no action. */
  readonly note: (text: string) => void;
}

/** What happened to one file. */
export interface InstallReport {
  readonly tools: readonly string[];
  /** Relative to the current directory. */
  readonly path: string;
  readonly status: "added" | "wrapped" | "current" | "restored" | "deleted" | "failed";
  readonly written: boolean;
  /** What a person does before the tools use the server. */
  readonly next?: readonly string[];
  /** The change that a dry run shows. */
  readonly diff?: string;
  readonly problem?: ContextError;
}

/** Installs the server and returns a report per file; none if no AI tool is found. Throws on an unknown tool. */
export async function runMcpInstall(options: McpInstallOptions): Promise<InstallReport[]> {
  const { installServers, findsCommand } = await loadMcpWire();
  const done = options.wrap === undefined ? "added" : "wrapped";
  const reports = await reportsOf(await installServers(await prepare(options)), done, options);
  if (reports.some(({ status }) => status === done) && !(await findsCommand(options.env))) {
    options.note(notOnPath);
  }
  return reports;
}

/** Uninstalls the server and returns a report for each file that had it. */
export async function runMcpUninstall(options: McpInstallOptions): Promise<InstallReport[]> {
  const { uninstallServers } = await loadMcpWire();
  return reportsOf(await uninstallServers(await prepare(options)), "restored", options);
}

export async function mcpInstall(call: Call<InstallFlags>): Promise<CommandResult> {
  const options = optionsOf(call);
  const reports = await runMcpInstall(options);
  if (reports.length > 0) return resultOf(reports, call);
  const { serverTools } = await loadMcpWire();
  // Its notes were printed before.
  const ids = serverTools(await prepare({ ...options, note: () => {} })).join(", ");
  call.output.problem(`found no AI tool with an MCP configuration here. Name one with --tool: ${ids}`);
  return { json: [], text: "", failed: true };
}

export async function mcpUninstall(call: Call<InstallFlags>): Promise<CommandResult> {
  const reports = await runMcpUninstall(optionsOf(call));
  return reports.length > 0 ? resultOf(reports, call) : { json: [], text: "found nothing that Plimsoll wrote" };
}

const notOnPath = 'plimsoll is not on PATH, so AI tools cannot start it. Run "npm link" in its clone to put it there';

type Wire = Awaited<ReturnType<typeof loadMcpWire>>;

/** Loads the AI tools and the places of their files. */
export async function prepare(options: McpInstallOptions): Promise<Parameters<Wire["installServers"]>[0]> {
  const { tools, global, dryRun, cwd, env } = options;
  const home = homeDirectory(env);
  const scope = global ? "global" : "project";
  const root = global ? home : projectRoot(cwd, home);
  // As with inject, files under HOME do not depend on the project's configuration.
  const { values: config, leftOut } = await loadConfig({ cwd: global ? home : cwd, env });
  noteLeftOut(leftOut, { cwd, env, output: { note: options.note } });
  const adapters = await loadAdapters({ config, scope, root, env }, options);
  return { adapters, places: { scope, root, home }, env, dryRun, tools, configured: config.tools, wrap: options.wrap };
}

/** Loads adapters. Mistakes in packs, or a failing company server, do not matter here. */
async function loadAdapters(content: LoadPacksOptions, { note, cwd }: McpInstallOptions): Promise<readonly Adapter[]> {
  const load = (config: LoadPacksOptions["config"]) => loadPacks({ ...content, config, profile: "all" });
  const { adapters, problems } = await load(content.config).catch((error: unknown) => {
    if (content.config.company === undefined) throw error;
    note(`continuing without the company's packs: ${(error as Error).message}`);
    return load({ ...content.config, company: undefined });
  });
  for (const { file, line, message } of problems) note(`${relative(cwd, file)}:${line}: ${message}`);
  return adapters;
}

async function reportsOf(
  results: Awaited<ReturnType<Wire["installServers"]>>,
  changed: Changed,
  { cwd, env, dryRun }: McpInstallOptions,
): Promise<InstallReport[]> {
  const shown = (path: string) => shownPath(path, cwd, env);
  const diffOf = dryRun ? await createDiff(shown) : () => "";
  return results.map(({ adapters, path, next, change, problem }) => {
    const diff = change === undefined ? "" : diffOf(change);
    const status = change === undefined ? "failed" : statusOf(change, changed);
    return {
      tools: adapters.map(({ id }) => id),
      path: shown(path),
      status,
      ...(status === "added" && next.length > 0 && { next }),
      written: change?.written ?? false,
      ...(diff !== "" && { diff }),
      ...(problem && { problem }),
    };
  });
}

type Changed = "added" | "wrapped" | "restored";

function statusOf({ before, after }: FileChange, changed: Changed): InstallReport["status"] {
  if (before === after) return "current";
  return after === undefined ? "deleted" : changed;
}

function optionsOf({ options, cwd, env, output }: Call<InstallFlags>): McpInstallOptions {
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

function resultOf(reports: readonly InstallReport[], { cwd, env, options, output }: Call<InstallFlags>): CommandResult {
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
      ...(problem && { error: errorOf(problem, shown) }),
    })),
    text: [...done.flatMap(({ diff }) => diff ?? []), ...lines].join("\n"),
    failed: done.length < reports.length,
  };
}

function errorOf({ code, message, hint, file, line }: ContextError, shown: (path: string) => string): object {
  return { code, message, hint: hint ?? null, file: file === undefined ? undefined : shown(file), line };
}
