export type ToolName =
  | "project_files"
  | "search_content"
  | "read_file"
  | "vcs_log"
  | "vcs_diff"
  | "vcs_status"
  | "vcs_blame";

/** Tokens that one unit of a tool's result costs before a session has measured its own. Six are those of Efrit's budget hints
 *  (2025-11-25); vcs_status had none, and an entry of it is a path and a word. */
export const itemHints: Readonly<Record<ToolName, { itemTokens: number; itemUnit: string }>> = {
  project_files: { itemTokens: 100, itemUnit: "files with metadata" },
  search_content: { itemTokens: 200, itemUnit: "matches with context" },
  read_file: { itemTokens: 285, itemUnit: "KB" },
  vcs_log: { itemTokens: 150, itemUnit: "commits" },
  vcs_diff: { itemTokens: 285, itemUnit: "KB" },
  vcs_status: { itemTokens: 30, itemUnit: "changed files" },
  vcs_blame: { itemTokens: 50, itemUnit: "lines" },
};
