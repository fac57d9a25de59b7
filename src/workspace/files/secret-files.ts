/** Files whose contents no tool, scan or prompt shows: those that usually hold secrets, as a person's configuration corrects that. */
import { createGlob, type Glob, isSecretName } from "../../text/index.ts";

export interface SecretRules {
  /** Globs of further files, as in .gitignore. */
  readonly deny?: readonly string[] | undefined;
  /** Globs of files that are shown all the same. */
  readonly allow?: readonly string[] | undefined;
}

/** Tells of a path from the root, with slashes, whether its contents stay hidden. Capital and small letters are the same. */
export type SecretTest = (path: string) => boolean;

/** A link has two names: ask about both. */
export function createSecretTest({ deny = [], allow = [] }: SecretRules = {}): SecretTest {
  const [denied, allowed] = [globsOf(deny), globsOf(allow)];
  if (denied.length + allowed.length === 0) return isSecretName;
  return (path) => {
    const name = path.toLowerCase();
    const isHidden = isSecretName(path) || denied.some((matches) => matches(name));
    return isHidden && !allowed.some((matches) => matches(name));
  };
}

/** Braces that make too many globs are taken for themselves. */
function globsOf(patterns: readonly string[]): Glob[] {
  return patterns.map((pattern) => {
    const name = pattern.toLowerCase();
    return createGlob(name) ?? ((path) => path === name);
  });
}
