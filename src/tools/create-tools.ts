import { resolve } from "node:path";
import type { BudgetedTool } from "../session/index.ts";
import { createSecretTest, type Environment, type SecretRules } from "../workspace/index.ts";
import { createProjectFiles } from "./files/project-files.ts";
import type { Place } from "./frame/run.ts";
import { createReadFile } from "./read/read-file.ts";
import { createSearchContent } from "./search/search-content.ts";
import { createVcsBlame } from "./vcs/vcs-blame.ts";
import { createVcsDiff } from "./vcs/vcs-diff.ts";
import { createVcsLog } from "./vcs/vcs-log.ts";
import { createVcsStatus } from "./vcs/vcs-status.ts";

export interface ToolsOptions {
  /** The directory that the tools read, and nothing outside of it. */
  readonly root: string;
  readonly env?: Environment | undefined;
  /** Corrects which files are taken for secrets, whose contents no tool shows. */
  readonly secrets?: SecretRules | undefined;
}

/** The tools that read a project. They change nothing, and whatever a model asks for comes back as a result or as a failure. */
export function createTools({ root, env = process.env, secrets }: ToolsOptions): readonly BudgetedTool[] {
  const place: Place = { root: resolve(root), env, isSecret: createSecretTest(secrets) };
  return tools.map((create) => create(place));
}

const tools: readonly ((place: Place) => BudgetedTool)[] = [
  createProjectFiles,
  (place) => createSearchContent(place),
  createReadFile,
  createVcsLog,
  createVcsDiff,
  createVcsStatus,
  createVcsBlame,
];
