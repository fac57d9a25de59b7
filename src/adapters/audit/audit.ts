/** What each AI tool would load in a folder, how much that is, and what could be better. Reads only. */
import { relative } from "node:path";
import type { Counter } from "../../tokens/index.ts";
import { isInside } from "../../workspace/index.ts";
import type { Adapter, ToolLimit } from "../adapter.ts";
import { adviseChain } from "./audit-advice.ts";
import { type LoadedFile, loadChain, repositoryRoot } from "./audit-chain.ts";
import type { ToolFiles } from "./audit-files.ts";
import { limitsOf, reportLimit } from "./audit-limits.ts";
import { createFileReader, type FileReader } from "./audit-reader.ts";
import { createRepetitionFinder, type RepetitionFinder } from "./repeated-text.ts";
import { knownTools } from "./tool-chains.ts";

export interface AuditReport {
  readonly counter: string;
  readonly tools: readonly AuditedTool[];
}

export interface AuditedTool {
  readonly id: string;
  readonly files: readonly AuditedFile[];
  readonly tokens: number;
  readonly limits: readonly AuditedLimit[];
  readonly advice: readonly string[];
}

export interface AuditedFile {
  readonly path: string;
  readonly bytes: number;
  readonly tokens: number;
  /** How it got in: "project", "user", "import of CLAUDE.md", "link to AGENTS.md". */
  readonly via: string;
}

export interface AuditedLimit extends Pick<ToolLimit, "value" | "unit" | "kind" | "scope" | "evidence"> {
  /** Of a limit on files: the largest one. */
  readonly used: number;
  readonly exceeded: boolean;
}

export interface AuditOptions {
  readonly adapters: readonly Adapter[];
  /** Absolute, with links resolved, like `home` and `cwd`. */
  readonly directory: string;
  readonly home: string;
  /** Paths are shown as seen from here. */
  readonly cwd: string;
  readonly counter: Counter;
  /** Also the tools that load nothing. */
  readonly all: boolean;
}

export async function audit(options: AuditOptions): Promise<AuditReport> {
  const reader = createFileReader(options.counter);
  const repetitions = createRepetitionFinder(options.counter);
  const root = repositoryRoot(options.directory);
  const tools: AuditedTool[] = [];
  for (const tool of knownTools(options.adapters)) {
    const audited = await auditTool(tool, { ...options, reader, repetitions, root });
    if (options.all || audited.files.length > 0 || audited.advice.length > 0) tools.push(audited);
  }
  return { counter: options.counter.name, tools };
}

async function auditTool(
  tool: ToolFiles,
  options: AuditOptions & {
    readonly reader: FileReader;
    readonly repetitions: RepetitionFinder;
    readonly root: string;
  },
): Promise<AuditedTool> {
  const { adapters, counter, home, reader, repetitions } = options;
  const adapter = adapters.find(({ id }) => id === tool.id);
  const imports = adapter?.imports === true;
  const chain = await loadChain(tool, { ...options, imports });
  const show = (path: string) => shownPath(path, options);
  const words = { name: tool.name, counter, show };
  const limits = limitsOf(tool, adapters).map((limit) => reportLimit(limit, chain.files, { ...words, tool }));
  const advice = await adviseChain(chain, { ...words, tool, imports, reader, repetitions, home });
  return {
    id: tool.id,
    files: chain.files.map((file) => ({
      path: show(file.path),
      bytes: file.bytes,
      tokens: file.tokens,
      via: viaOf(file, show),
    })),
    tokens: chain.files.reduce((sum, file) => sum + file.tokens, 0),
    limits: limits.map(({ limit: { value, unit, kind, scope, evidence }, used, exceeded }) => ({
      ...{ value, unit, kind, scope, evidence },
      ...{ used, exceeded },
    })),
    advice: [...limits.flatMap((limit) => limit.advice), ...advice],
  };
}

function viaOf(file: LoadedFile, show: (path: string) => string): string {
  if (file.importer !== undefined) return `import of ${show(file.importer)}`;
  const via = file.isLink ? `link to ${show(file.realPath)}` : file.scope;
  return file.onDemand ? `${via}, on demand` : via;
}

/** Relative to the current folder; a file of the user by its place under HOME. */
function shownPath(path: string, { cwd, home, root }: { cwd: string; home: string; root: string }): string {
  if (isInside(path, root) || isInside(path, cwd)) return relative(cwd, path);
  return isInside(path, home) ? `~/${relative(home, path)}` : path;
}
