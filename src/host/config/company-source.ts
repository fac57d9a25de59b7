/** The company's packs come from a directory that is used in place, or from a git repository at a revision. */
import { existsSync, realpathSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { ContextError } from "../../core/errors.ts";
import { cacheDirectory, configDirectory, type Environment, homeDirectory, stateDirectory } from "../directories.ts";
import { isInside } from "../files/paths.ts";
import { gitProtocols, withoutPasswords } from "../processes/start-git.ts";
import type { Config } from "./config.ts";

/** The configured source of the company's packs. */
export type Company = NonNullable<Config["company"]>;

export interface CompanyPlace {
  /** The folder that a relative directory starts from. */
  readonly root: string;
  readonly env: Environment;
}

/** Throws on a source or revision that git could take for something other than an address or a name. */
export function readCompanySource(
  { source, revision }: Company,
  { root, env }: CompanyPlace,
):
  | { readonly kind: "directory"; readonly path: string }
  | { readonly kind: "git"; readonly url: string; readonly revision: string } {
  refuseOption("source", source);
  const helper = /^[\w+.-]+::/.exec(source)?.[0];
  if (helper !== undefined) {
    throw new ContextError("invalid_config", `company.source "${source}" makes git run a helper, "${helper}"`, {
      hint: `Use an address with ${gitProtocols.join(", ")}, or a directory.`,
    });
  }
  if (revision !== undefined) refuseRevision(revision);
  // `scheme://…` or `host:path`. As in git, a host has no slash before the colon. A drive letter is not a host.
  if (/^[\w+.-]+:\/\//.test(source) || /^[^/\\:]{2,}:/.test(source)) {
    if (/^file:/i.test(source)) refuseOwn(pathOfUrl(source), source, env);
    return { kind: "git", url: checkScheme(source), revision: revision ?? "HEAD" };
  }
  const path = resolve(root, source.replace(/^~(?=\/|$)/, homeDirectory(env)));
  refuseOwn(path, source, env);
  // Without a revision, the working tree is used with its current changes.
  return revision !== undefined && isRepository(path)
    ? { kind: "git", url: path, revision }
    : { kind: "directory", path };
}

/** A project's files must never include a person's own files, whoever asks for it and through whatever links. */
function refuseOwn(path: string, source: string, env: Environment): void {
  const real = realPath(path);
  for (const own of [configDirectory(env), stateDirectory(env), cacheDirectory(env)]) {
    const realOwn = realPath(own);
    if (!isInside(real, realOwn) && !isInside(realOwn, real)) continue;
    throw new ContextError(
      "invalid_config",
      `company.source "${source}" leads to your own files in ${own}, which no project may use`,
      { hint: "Use a directory that holds only shared files." },
    );
  }
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}

function pathOfUrl(url: string): string {
  try {
    return decodeURIComponent(new URL(url).pathname);
  } catch {
    return resolve("/", url.replace(/^file:\/*/i, ""));
  }
}

function refuseOption(key: string, value: string): void {
  if (!value.startsWith("-")) return;
  throw new ContextError("invalid_config", `company.${key} "${value}" starts with "-", like an option`, {
    hint: "Write a directory or an address, such as ./-packs.",
  });
}

/** Accepts a branch, tag or commit. Other forms that git understands (ranges, refspecs, `main~3`) are ambiguous
 *  here. */
function refuseRevision(revision: string): void {
  refuseOption("revision", revision);
  if (/^[\w][\w./@+#-]*$/.test(revision) && !revision.includes("..") && !revision.includes("@{")) return;
  throw new ContextError("invalid_config", `company.revision "${revision}" is not the name of a branch, tag or commit`);
}

function checkScheme(url: string): string {
  const scheme = /^([\w+.-]+):\/\//.exec(url)?.[1]?.toLowerCase();
  if (scheme === undefined || gitProtocols.includes(scheme)) return url;
  throw new ContextError(
    "invalid_config",
    `company.source "${withoutPasswords(url)}" has the scheme ${scheme}, which is not supported`,
    {
      hint: `Use one of ${gitProtocols.join(", ")}, or a directory.`,
    },
  );
}

function isRepository(path: string): boolean {
  const isBare =
    existsSync(join(path, "HEAD")) && statSync(join(path, "objects"), { throwIfNoEntry: false }) !== undefined;
  return existsSync(join(path, ".git")) || isBare;
}
