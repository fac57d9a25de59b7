/** Looks at a project once: its manifests, its files, and what people wrote for those who work in it. Nothing is written, no link is
 *  followed out of it, and the same files give the same scan on every machine. */
import type { ProjectScan } from "../../compose/index.ts";
import type { Environment } from "../directories.ts";
import { openDirectory } from "../files/open-directory.ts";
import { createSecretTest, type SecretRules } from "../files/secret-files.ts";
import { listProject } from "./list-project.ts";
import { describeProject } from "./project-facts.ts";
import { readConventions } from "./read-conventions.ts";

export interface ScanOptions {
  /** Where git is found. Default: that of this process. */
  readonly env?: Environment | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Corrects which files are taken for secrets: their texts are not read. */
  readonly secrets?: SecretRules | undefined;
  /** Told of how many paths are known so far. */
  onProgress?(paths: number): void;
}

/** Throws where the directory cannot be listed; what is wrong inside of it is in `problems`. */
export async function scanProject(directory: string, options: ScanOptions = {}): Promise<ProjectScan> {
  const root = await openDirectory(directory);
  const isSecret = createSecretTest(options.secrets);
  const [facts, list, conventions] = await Promise.all([
    describeProject(root),
    listProject(root, options),
    readConventions(root, isSecret),
  ]);
  return {
    facts,
    paths: list.paths,
    conventions: conventions.files,
    problems: [...list.problems, ...conventions.problems],
  };
}
