/** Settings of git that only their names tell from harmless ones, and what is set in their place. */
import { isUtf8 } from "node:buffer";
import type { Environment } from "../directories.ts";

export interface GitSetting {
  /** `system`, `global`, `local`, `worktree` or `command`. */
  readonly scope: string;
  /** Section and name in small letters; a byte string, as is the value. */
  readonly key: string;
  readonly value: string;
}

/** Reads `git config --list -z --show-scope`, as a byte string: `SCOPE NUL KEY LF VALUE NUL`. */
export function parseSettings(listed: string): GitSetting[] {
  const fields = listed.split("\0");
  const settings: GitSetting[] = [];
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const [scope = "", entry = ""] = fields.slice(at, at + 2);
    const end = entry.indexOf("\n");
    const key = end < 0 ? entry : entry.slice(0, end);
    settings.push({ scope, key, value: end < 0 ? "" : entry.slice(end + 1) });
  }
  return settings;
}

export interface Overrides {
  /** Environment variables: unlike an argument they take a name with any character in it. */
  readonly variables: Environment;
  /** Names of the filters that are not run. */
  readonly filters: ReadonlySet<string>;
  /** A setting that nothing can override. */
  readonly problem?: string;
}

/** Turns off every filter, whoever defined it: attributes of the repository say which files it gets, and what git-lfs runs, for one, is a
 *  setting too. Also turns off files of rules that the repository, and not the user, has chosen. */
export function settingOverrides(settings: readonly GitSetting[]): Overrides {
  const names = new Set<string>();
  const values: [string, string][] = [];
  for (const { scope, key } of settings) {
    const name = /^filter\.(.*)\.[^.]*$/s.exec(key)?.[1];
    if (name !== undefined) names.add(name);
    const isOwn = scope === "local" || scope === "worktree";
    if (isOwn && ownFiles.has(key)) values.push([key, "/dev/null"]);
  }
  for (const name of names) {
    for (const command of ["clean", "smudge", "process"]) values.push([`filter.${name}.${command}`, ""]);
    values.push([`filter.${name}.required`, "false"]);
  }
  const bytes = [...names].map((name) => Buffer.from(name, "latin1"));
  const filters = new Set(bytes.map((name) => name.toString("utf8")));
  // No variable that we can set has such a name in it.
  if (!bytes.every((name) => isUtf8(name))) {
    return { variables: {}, filters, problem: "the name of a filter in its settings is not UTF-8" };
  }
  const variables: Record<string, string> = { GIT_CONFIG_COUNT: String(values.length) };
  for (const [index, [key, value]] of values.entries()) {
    variables[`GIT_CONFIG_KEY_${index}`] = Buffer.from(key, "latin1").toString("utf8");
    variables[`GIT_CONFIG_VALUE_${index}`] = value;
  }
  return { variables, filters };
}

const ownFiles: ReadonlySet<string> = new Set(["core.attributesfile", "core.excludesfile"]);
