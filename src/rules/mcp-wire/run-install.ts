/** Installs our server in the configuration files of AI tools, or removes it, and reports each file. */
import { relative } from "node:path";
import type { ContextError } from "../../core/errors.ts";
import {
  createDiff,
  type Environment,
  homeDirectory,
  loadConfig,
  noteLeftOut,
  projectRoot,
  shownPath,
} from "../../host/index.ts";
import type { Adapter } from "../adapters/adapter.ts";
import { type LoadPacksOptions, loadPacks } from "../adapters/load-packs.ts";
import {
  findsCommand,
  installServers,
  type ServerResult,
  type ServersOptions,
  uninstallServers,
} from "./install-servers.ts";

export { readServers, serverFiles, serverTools } from "./install-servers.ts";

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
  const done = options.wrap === undefined ? "added" : "wrapped";
  const reports = await reportsOf(await installServers(await prepareInstall(options)), done, options);
  if (reports.some(({ status }) => status === done) && !(await findsCommand(options.env))) {
    options.note(notFound);
  }
  return reports;
}

/** Uninstalls the server and returns a report for each file that had it. */
export async function runMcpUninstall(options: McpInstallOptions): Promise<InstallReport[]> {
  return reportsOf(await uninstallServers(await prepareInstall(options)), "restored", options);
}

const notFound = 'plimsoll is not on PATH, so AI tools cannot start it. Run "npm link" in its clone to put it there';

/** Loads the AI tools and the places of their files. */
export async function prepareInstall(options: McpInstallOptions): Promise<ServersOptions> {
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
  results: readonly ServerResult[],
  changed: Changed,
  { cwd, env, dryRun }: McpInstallOptions,
): Promise<InstallReport[]> {
  const shown = (path: string) => shownPath(path, cwd, env);
  const diffOf = dryRun ? await createDiff(shown) : () => "";
  return results.map(({ adapters, path, next, change, problem }) => {
    const diff = change === undefined ? "" : diffOf(change);
    const written = change?.after === undefined ? "deleted" : changed;
    const status = change === undefined ? "failed" : change.before === change.after ? "current" : written;
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
