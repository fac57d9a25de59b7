/** Where the company's packs come from: a directory that is used in place, or a git repository at a revision. */
import { existsSync, realpathSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { ContextError } from "../../errors.ts";
import type { Config } from "../config/config.ts";
import {
  cacheDirectory,
  configDirectory,
  type Environment,
  homeDirectory,
  stateDirectory,
} from "../directories.ts";
import { isInside } from "../files/resolve-target.ts";

export type Company = NonNullable<Config["company"]>;

export type CompanySource =
  | { readonly kind: "directory"; readonly path: string }
  | { readonly kind: "git"; readonly url: string; readonly revision: string };

export interface CompanyPlace {
  /** What a relative directory is relative to. */
  readonly root: string;
  readonly env: Environment;
}

/** Throws for a source or revision that git could take for something else than an address or a name. */
export function readCompanySource({ source, revision }: Company, { root, env }: CompanyPlace): CompanySource {
  refuseOption("source", source);
  const helper = /^[\w+.-]+::/.exec(source)?.[0];
  if (helper !== undefined) {
    throw new ContextError(
      "invalid_config",
      `company.source "${source}" hands git over to a helper, "${helper}"`,
      {
        hint: `Use an address with ${gitProtocols.join(", ")}, or a directory.`,
      },
    );
  }
  if (revision !== undefined) refuseRevision(revision);
  if (isGitUrl(source)) {
    if (/^file:/i.test(source)) refuseOwn(pathOfUrl(source), source, env);
    return { kind: "git", url: checkScheme(source), revision: revision ?? "HEAD" };
  }
  const path = resolve(root, source.replace(/^~(?=\/|$)/, homeDirectory(env)));
  refuseOwn(path, source, env);
  // Without a revision the working tree is meant, changes of the day included.
  return revision !== undefined && isRepository(path)
    ? { kind: "git", url: path, revision }
    : { kind: "directory", path };
}

/** What people keep for themselves must not get into a project's files, whoever asks for it and through whichever links. */
function refuseOwn(path: string, source: string, env: Environment): void {
  const real = realPath(path);
  for (const own of [configDirectory(env), stateDirectory(env), cacheDirectory(env)]) {
    const realOwn = realPath(own);
    if (!isInside(real, realOwn) && !isInside(realOwn, real)) continue;
    throw new ContextError(
      "invalid_config",
      `company.source "${source}" leads to your own files in ${own}, which no project may have`,
      { hint: "Name a directory that holds only what the projects share." },
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

/** An address, or a text with addresses, for people: without the passwords that may be in it, which may hold an `@` themselves. */
export function shownSource(source: string): string {
  return source.replace(/(\w[\w+.-]*:\/\/)[^/]*@/g, "$1");
}

function refuseOption(key: string, value: string): void {
  if (!value.startsWith("-")) return;
  throw new ContextError("invalid_config", `company.${key} "${value}" starts with "-", as an option does`, {
    hint: "Write a directory or an address, such as ./-packs.",
  });
}

/** A branch, tag or commit; what else git understands (ranges, refspecs, `main~3`) has no one meaning here. */
function refuseRevision(revision: string): void {
  refuseOption("revision", revision);
  if (/^[\w][\w./@+#-]*$/.test(revision) && !revision.includes("..") && !revision.includes("@{")) return;
  throw new ContextError(
    "invalid_config",
    `company.revision "${revision}" is no name of a branch, tag or commit`,
  );
}

/** `scheme://…` or `host:path`, as git tells them from paths: no slash before the colon. A drive letter is no host. */
function isGitUrl(source: string): boolean {
  return /^[\w+.-]+:\/\//.test(source) || /^[^/\\:]{2,}:/.test(source);
}

export const gitProtocols: readonly string[] = ["file", "git", "http", "https", "ssh"];

function checkScheme(url: string): string {
  const scheme = /^([\w+.-]+):\/\//.exec(url)?.[1]?.toLowerCase();
  if (scheme === undefined || gitProtocols.includes(scheme)) return url;
  throw new ContextError("invalid_config", `company.source "${shownSource(url)}" has the scheme ${scheme}`, {
    hint: `Use one of ${gitProtocols.join(", ")}, or a directory.`,
  });
}

function isRepository(path: string): boolean {
  const isBare =
    existsSync(join(path, "HEAD")) &&
    statSync(join(path, "objects"), { throwIfNoEntry: false }) !== undefined;
  return existsSync(join(path, ".git")) || isBare;
}
