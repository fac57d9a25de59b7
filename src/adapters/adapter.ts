/** One AI tool as a target: where its file is, its format, its limits. */
import type { Verbosity } from "../text/index.ts";

export interface Adapter {
  readonly id: string;
  readonly name: string;
  readonly type: AdapterType;
  readonly targets: readonly AdapterTarget[];
  readonly format: AdapterFormat;
  /** Tells a person where to paste the text; empty where there is nothing to tell. */
  readonly instructions: string;
  /** 4 bytes a token, unless a counter was chosen. Like `maxBytes`, 0 or less is no limit. */
  readonly maxTokens?: number | undefined;
  /** Wins over `maxTokens`. */
  readonly maxBytes?: number | undefined;
  /** Absent: full. */
  readonly verbosity?: Verbosity | undefined;
  /** Absent: as configured. */
  readonly onOverflow?: OnOverflow | undefined;
  readonly exportPath?: string | undefined;
  readonly detect: readonly DetectRule[];
  readonly limits: readonly ToolLimit[];
  /** Ids of the tools that read the same file. */
  readonly reads: readonly string[];
  /** The tool follows `@file` lines. */
  readonly imports: boolean;
  /** Where the tool keeps its MCP servers, the main place first. */
  readonly mcpConfigs: readonly ConfigPlace[];
}

export const adapterTypes = ["file-inject", "clipboard-export", "file-export", "mcp-wire"] as const;
export type AdapterType = (typeof adapterTypes)[number];
export const adapterFormats = ["markdown", "plain-prose"] as const;
export type AdapterFormat = (typeof adapterFormats)[number];
export const scopes = ["global", "project"] as const;
export type Scope = (typeof scopes)[number];
export const targetModes = ["replace-section", "replace-file", "append"] as const;
export type TargetMode = (typeof targetModes)[number];
export const onOverflows = ["drop", "thin"] as const;
export type OnOverflow = (typeof onOverflows)[number];

export interface AdapterTarget {
  readonly scope: Scope;
  readonly path: string;
  readonly mode: TargetMode;
  readonly section: string;
  /** Goes before the text of a replace-file target: front matter. */
  readonly preamble?: string | undefined;
}

/** The tool is there when the command's program is on PATH, or the path exists. */
export interface DetectRule {
  readonly command?: string | undefined;
  readonly path?: string | undefined;
}

export interface ConfigPlace {
  readonly path?: string | undefined;
  readonly format?: string | undefined;
  readonly key?: string | undefined;
}

export const limitUnits = ["bytes", "chars", "lines", "tokens"] as const;
export const limitKinds = ["hard", "warn", "advice"] as const;
export const limitScopes = ["file", "chain", "field"] as const;
export const limitEvidences = ["source", "docs", "issue", "third-party"] as const;

/** A limit of the tool itself, and how well it is known. */
export interface ToolLimit {
  readonly value: number;
  readonly unit: (typeof limitUnits)[number];
  readonly kind: (typeof limitKinds)[number];
  readonly scope: (typeof limitScopes)[number];
  readonly evidence: (typeof limitEvidences)[number];
  readonly note?: string | undefined;
  /** The day it was last looked up. */
  readonly checked: string;
}
