/** One configuration file: its values, the line of each, and all that is wrong with it. Loads yaml and zod. */
import { explainIssues, readYaml } from "../yaml/yaml-document.ts";
import type { ConfigPart } from "./config.ts";
import { configSchema } from "./config-schema.ts";

export interface ConfigFile {
  readonly values: ConfigPart;
  readonly problems: readonly ConfigProblem[];
  /** The line of a key, or of the nearest key around it. 1-based. */
  lineOf(path: readonly PropertyKey[]): number;
}

export interface ConfigProblem {
  readonly line: number;
  readonly message: string;
}

export function parseConfigFile(text: string): ConfigFile {
  const { input = {}, problems, lineOf } = readYaml(text);
  if (problems.length > 0) return { values: {}, problems, lineOf };
  const lost = lostKeys(input).map(({ path, message }) => ({ line: lineOf(path), message }));
  if (lost.length > 0) return { values: {}, problems: lost, lineOf };
  const result = configSchema.safeParse(input ?? {}, { reportInput: true });
  if (result.success) return { values: result.data, problems: [], lineOf };
  return { values: {}, problems: explainIssues(result.error.issues, configSchema, lineOf), lineOf };
}

interface LostKey {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/** The one name that zod leaves out of what it returns, without a word. */
function lostKeys(value: unknown, path: readonly PropertyKey[] = []): LostKey[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, child]) => {
    const here = [...path, key];
    const message = `"${here.join(".")}" cannot be used as a name`;
    return key === "__proto__" ? [{ path: here, message }] : lostKeys(child, here);
  });
}
