/** An adapter describes one AI tool: the files it reads, its format and its limits. */

import type { Verbosity } from "../../core/text/index.ts";
import type { OnOverflow } from "../../host/index.ts";
import type { AgentTool } from "../packs/index.ts";

export interface Adapter {
  readonly id: string;
  readonly name: string;
  readonly type: ValueOf<"type">;
  readonly targets: readonly AdapterTarget[];
  readonly format: ValueOf<"format">;
  /** Tells a person where to paste the text. May be empty. */
  readonly instructions: string;
  /** Counted by the counter of the run. As with `maxBytes`, 0 or less means no limit. */
  readonly maxTokens?: number | undefined;
  /** Used instead of `maxTokens` if both are set. */
  readonly maxBytes?: number | undefined;
  /** @default "full" */
  readonly verbosity?: Verbosity | undefined;
  /** The default comes from the configuration. */
  readonly onOverflow?: OnOverflow | undefined;
  readonly exportPath?: string | undefined;
  readonly detect: readonly DetectRule[];
  readonly limits: readonly ToolLimit[];
  /** Ids of the tools that read the same file. */
  readonly reads: readonly string[];
  /** The tool follows `@file` lines. */
  readonly imports: boolean;
  /** The tools read a file of the same name in every folder down to the one they work in. */
  readonly nested?: boolean | undefined;
  /** Where a project keeps rules that the tool loads only for some files. */
  readonly rules?: ScopedRules | undefined;
  /** Where a project keeps the skills that the tool finds. */
  readonly skills?: SkillFolders | undefined;
  /** Where a project keeps the commands that a person starts by name. */
  readonly commands?: PromptFiles | undefined;
  /** Where a project keeps the agents that the tool gives tasks to. */
  readonly agents?: PromptFiles | undefined;
  /** Where the tool keeps its MCP servers, the main place first. */
  readonly mcpConfigs: readonly ConfigPlace[];
}

export const scopes = ["global", "project"] as const;
export type Scope = (typeof scopes)[number];

/** The values that keys of an adapter's file may have. */
export const adapterValues = {
  type: ["file-inject", "clipboard-export", "file-export", "mcp-wire"],
  format: ["markdown", "plain-prose"],
  targetMode: ["replace-section", "replace-file"],
  limitUnit: ["bytes", "chars", "lines", "tokens"],
  limitKind: ["hard", "warn", "advice"],
  limitScope: ["file", "chain", "field"],
  /** The best source first. `several`: independent third parties agree. */
  limitEvidence: ["source", "docs", "issue", "several", "third-party"],
} as const;

type ValueOf<Key extends keyof typeof adapterValues> = (typeof adapterValues)[Key][number];

export interface AdapterTarget {
  readonly scope: Scope;
  readonly path: string;
  readonly mode: ValueOf<"targetMode">;
  readonly section: string;
  /** Text that a replace-file target starts with, such as front matter. */
  readonly preamble?: string | undefined;
}

/** One file for each pack with globs. */
export interface ScopedRules extends Dated {
  /** `{id}` stands for the pack's id. */
  readonly path: string;
  /** Front matter. `{globs}` is a text with commas, `{globs_list}` a list, `{name}` and `{description}` quoted texts. */
  readonly preamble: string;
  /** Front matter of a rule that the tool always loads: for packs that only this tool gets. Absent if it has none. */
  readonly always?: string | undefined;
}

/** Folders with one folder for each skill. */
export interface SkillFolders extends Dated {
  /** The tool reads all of them. Plimsoll writes into the first, or into one that another tool of the run needs. */
  readonly paths: readonly string[];
}

/** One file for each command or agent. */
export interface PromptFiles extends Dated {
  /** `{name}` stands for its name. The tool reads all of them, and its own format is that of the first. Plimsoll writes
   *  that one, or the first one of another tool of the run. */
  readonly paths: readonly string[];
  /** Front matter. `{description}`, `{argument_hint}` and `{model}` are quoted texts, `{tools}` and `{other_tools}` the
   *  tool's words for what an agent may and may not use. A line whose placeholder has no value is left out. */
  readonly preamble: string;
  /** The tool's words for the tools of an agent. */
  readonly tools?: Readonly<Partial<Record<AgentTool, string>>> | undefined;
  /** What the tool writes for `$ARGUMENTS`, if it has another form. */
  readonly arguments?: string | undefined;
}

/** The source of a fact about a tool. */
interface Dated {
  readonly evidence: ValueOf<"limitEvidence">;
  readonly note?: string | undefined;
  /** The date of the last check. */
  readonly checked: string;
}

/** A sign that the tool is installed: the command's program is on PATH, or the path exists. */
export interface DetectRule {
  readonly command?: string | undefined;
  readonly path?: string | undefined;
}

export interface ConfigPlace {
  readonly path?: string | undefined;
  readonly format?: string | undefined;
  readonly key?: string | undefined;
  /** What a person does before the tool uses a server that was added here. */
  readonly next?: string | undefined;
}

/** A limit of the tool itself, with the source of the number. */
export interface ToolLimit extends Dated {
  readonly value: number;
  readonly unit: ValueOf<"limitUnit">;
  readonly kind: ValueOf<"limitKind">;
  readonly scope: ValueOf<"limitScope">;
}
