/** Recognises files that usually hold secrets, by their names. */

import { createGlob, type Glob } from "./glob.ts";

/** Returns whether a file of this name usually holds secrets. Only the last part of the path counts, in any letter
 *  case. */
export function isSecretName(path: string): boolean {
  const name = path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1).toLowerCase();
  if (name.length > longestName) return false;
  // Windows opens `.env:stream` and `.env.` as `.env`.
  const plain = name.replace(/[. ]*(:.*)?$/s, "");
  return isSecret(name) || isSecret(plain);
}

/** No file system allows longer names. */
const longestName = 255;

function isSecret(name: string): boolean {
  if (name.startsWith(".env")) return /^\.env(\.|$)/.test(name) && !/\.(example|sample|template)$/.test(name);
  if (name.startsWith("credentials") || name.startsWith("secrets")) return !sourceCode.test(name);
  return secretNames.has(name) || secretEndings.test(name);
}

const secretNames: ReadonlySet<string> = new Set([
  ...["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk"],
  ...[".npmrc", ".netrc", "_netrc", ".pypirc", ".git-credentials"],
]);

const secretEndings = /\.(pem|key|p12|pfx)$/;

/** A program that handles secrets is not a secret. */
const sourceCode =
  /\.([cm]?[jt]sx?|vue|svelte|astro|py|pyi|rb|go|rs|java|kts?|scala|groovy|c|h|cc|cpp|cxx|hpp|hh|cs|fs|vb|swift|mm?|php|pl|pm|lua|exs?|erl|hs|ml|clj[cs]?|dart|jl|r|nim|zig|sh|bash|zsh|fish|ps1|sql|proto|graphql|tf|html|s?css|less)$/;

/** Globs that match every such file, and some others. */
export const secretGlobs: readonly string[] = [
  ...[".env*", "credentials*", "secrets*", ...[...secretNames].map((name) => `${name}*`)],
  ...["pem", "key", "p12", "pfx"].map((ending) => `*.${ending}*`),
];

export interface SecretRules {
  /** Globs of more files, in .gitignore syntax. */
  readonly deny?: readonly string[] | undefined;
  /** Globs of files that are shown anyway. */
  readonly allow?: readonly string[] | undefined;
}

/** Returns whether the contents of a path (from the root, with slashes) are hidden. Ignores letter case. */
export type SecretTest = (path: string) => boolean;

/** A link has two names: test both. */
export function createSecretTest({ deny = [], allow = [] }: SecretRules = {}): SecretTest {
  const [denied, allowed] = [globsOf(deny), globsOf(allow)];
  if (denied.length + allowed.length === 0) return isSecretName;
  return (path) => {
    const name = path.toLowerCase();
    const isHidden = isSecretName(path) || denied.some((matches) => matches(name));
    return isHidden && !allowed.some((matches) => matches(name));
  };
}

/** If the braces make too many globs, the pattern matches only itself. */
function globsOf(patterns: readonly string[]): Glob[] {
  return patterns.map((pattern) => {
    const name = pattern.toLowerCase();
    return createGlob(name) ?? ((path) => path === name);
  });
}
