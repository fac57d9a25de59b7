/** What an AI tool loads: the tools of the table, and tools that only an adapter describes. */
import { basename } from "node:path";
import type { Adapter, ToolLimit } from "../adapters/adapter.ts";
import { toolFiles } from "./tool-files.data.ts";

/** Names of which a tool reads only the first that exists. A name may end in a pattern: `.kiro/steering/*.md`,
 *  `.claude/rules/**\/*.md`. */
export type Alternatives = readonly string[];

export interface ToolFiles {
  readonly id: string;
  readonly name: string;
  /** The version of the real tool that `npm run accept:load` agreed with. Only such a row decides where a block goes. */
  readonly seen?: string;
  /** The adapter of the same product. Where a project uses that one, inject also says what this tool reads twice. */
  readonly siblingOf?: string;
  /** Below HOME, or absolute if an administrator installs the file. */
  readonly user?: readonly Alternatives[];
  /** In the root of the repository. */
  readonly root?: readonly Alternatives[];
  /** In every folder from the root down to the current one. */
  readonly down?: readonly Alternatives[];
  /** The tool also reads `down` and `otherwise` in the folders above the repository. */
  readonly above?: true;
  /** In the root and in the current folder, and in none between them. */
  readonly ends?: readonly Alternatives[];
  /** In the folders between the root and the current one, and in neither of these two. */
  readonly between?: readonly Alternatives[];
  /** In the current folder only. */
  readonly current?: readonly Alternatives[];
  /** Read in every folder if the project has none of the files above. */
  readonly otherwise?: Alternatives;
  /** Only these files keep the tool from reading `otherwise`. Without it, every file of the project does. */
  readonly unless?: readonly string[];
  /** How the tool follows `@file` lines. Without it, the adapter's `imports` decides, and every file may import. */
  readonly imports?: ToolImports;
  /** The tool sends a text once, however many files hold exactly this text. */
  readonly sendsTextOnce?: true;
  /** A file in the root whose `read:` list names the files. */
  readonly listedIn?: string;
  /** Front matter of rule files that the tool loads only for a path or on request. Rule files are the files that a
   *  pattern matches. */
  readonly onDemand?: RegExp;
  /** A rule file without this front matter is loaded on demand. */
  readonly always?: RegExp;
  /** The tool does not load files that git ignores. */
  readonly skipsIgnored?: true;
  /** The user's file does not count toward a limit on the chain. */
  readonly userExempt?: true;
  /** The adapter of a shared file that also lists a limit of this tool. */
  readonly limitsFrom?: string;
  /** The files that a limit of this value applies to. Without an entry, a limit applies to all files. */
  readonly limitedFiles?: Readonly<Record<number, RegExp>>;
  /** The advice to print when the tool reads the file in `otherwise`. */
  readonly otherwiseAdvice?: string;
}

export interface ToolImports {
  /** Names of the files whose imports are followed. Without it, those of every file are. */
  readonly from?: readonly string[];
  /** Imports count only in a file of the folder where the tool was started. */
  readonly onlyInCurrent?: true;
  /** A file that is loaded anyway is sent again for each import. */
  readonly repeats?: true;
}

/** Returns whether a tool's limit applies to this file. Some limits apply to one of the tool's files only. */
export function isLimitOn(path: string, { value, scope }: ToolLimit, id: string): boolean {
  const pattern = toolFiles.find((tool) => tool.id === id)?.limitedFiles?.[value];
  return scope !== "file" || pattern === undefined || pattern.test(path);
}

/** Returns the tools of the table, and the tools that only an adapter describes by its targets. */
export function knownTools(adapters: readonly Adapter[]): ToolFiles[] {
  // agents-md is the adapter of a file that many tools share. The tools in its `reads` load it.
  const known = new Set([...toolFiles.map((tool) => tool.id), "agents-md"]);
  const files = adapters.filter((adapter) => adapter.type === "file-inject");
  const ids = new Set(files.flatMap((adapter) => [adapter.id, ...adapter.reads]));
  const others = [...ids].filter((id) => !known.has(id)).map((id) => describeTool(id, files));
  return [...toolFiles, ...others].sort((a, b) => (a.id < b.id ? -1 : 1));
}

function describeTool(id: string, adapters: readonly Adapter[]): ToolFiles {
  const sharing = adapters.filter((adapter) => adapter.id === id || adapter.reads.includes(id));
  const targets = sharing.flatMap((adapter) => adapter.targets);
  const paths = (scope: string) => targets.filter((target) => target.scope === scope).map(({ path }) => path);
  const own = adapters.find((adapter) => adapter.id === id);
  // A limit on the chain means that the tool reads files of that name in every folder down to the current one.
  const hasChain = own?.limits.some((limit) => limit.scope === "chain") === true;
  // A name such as `.tool/rules.md` is looked up in each folder. For `sub/RULES.md` only the file name is.
  const down = paths("project").map((path) => [path.startsWith(".") ? path : basename(path)]);
  const project = hasChain ? { down } : { root: paths("project").map((path) => [path]) };
  return { id, name: own?.name ?? id, user: paths("global").map((path) => [path]), ...project };
}
