import { resolve } from "node:path";
import { createSecretTest, type SecretRules } from "../../core/text/index.ts";
import type { Environment } from "../../host/index.ts";
import type { BudgetedTool } from "../session/index.ts";
import type { ToolName } from "./define-tool.ts";
import { createProjectFiles } from "./project-files.ts";
import { createReadFile } from "./read-file.ts";
import type { ToolPlace } from "./run.ts";

import { createSearchContent } from "./search-content.ts";

export { createLineMatcher } from "./search-content.ts";

import { createVcsBlame } from "./vcs-blame.ts";
import { createVcsDiff } from "./vcs-diff.ts";
import { createVcsLog } from "./vcs-log.ts";
import { createVcsStatus } from "./vcs-status.ts";

/** Options of `createTools`. */
export interface ToolsOptions {
  /** The directory that the tools read. They read nothing outside of it. */
  readonly root: string;
  /** The environment variables of programs that the tools start (git, ripgrep).
   *  @default process.env */
  readonly env?: Environment | undefined;
  /** Adds or removes patterns of files that hold secrets. No tool shows the contents of such files. */
  readonly secrets?: SecretRules | undefined;
}

/** Creates seven tools that read a project: `project_files`, `search_content`, `read_file`, `vcs_log`, `vcs_diff`,
 *  `vcs_status` and `vcs_blame`. They change nothing. A call that cannot be answered returns a failure and does not
 *  throw.
 *
 * @example
 * ```ts
 * import { createSession } from "plimsoll/session";
 * import { createTools } from "plimsoll/tools";
 *
 * const session = await createSession({ tools: createTools({ root: "." }), now: Date.now });
 * const { text } = await session.call("search_content", { pattern: "TODO" });
 * console.log(text);
 * ```
 */
export function createTools(options: ToolsOptions): readonly BudgetedTool<ToolName>[] {
  const { root, env = process.env, secrets } = options;
  const place: ToolPlace = { root: resolve(root), env, isSecret: createSecretTest(secrets) };
  return tools.map((create) => create(place));
}

const tools: readonly ((place: ToolPlace) => BudgetedTool<ToolName>)[] = [
  createProjectFiles,
  (place) => createSearchContent(place),
  createReadFile,
  createVcsLog,
  createVcsDiff,
  createVcsStatus,
  createVcsBlame,
];
