/** The tools that read a project: files, search, and git. */
export { createTools, type ToolsOptions } from "../results/tools/index.ts";
