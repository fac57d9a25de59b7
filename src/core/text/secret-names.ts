/** Recognises files that usually hold secrets, by their names. */

import { createGlob, type Glob } from "./glob.ts";

/** Returns whether a file usually holds secrets. The last part of the path counts, in any letter case, and for some
 *  names the folder. So pass a path from the root of the project: a project may be in a folder `secrets`. */
export function isSecretName(path: string): boolean {
  const parts = path.toLowerCase().split(/[/\\]/);
  const name = parts.at(-1)!;
  // No file system allows longer names.
  const maxLength = 255;
  if (name.length > maxLength) return false;
  // Windows opens `.env:stream` and `.env.` as `.env`.
  const plain = name.replace(/[. ]*(:.*)?$/s, "");
  return isSecret(name) || isSecret(plain) || (parts.length > 1 && isInSecretFolder(parts.slice(0, -1), plain));
}

function isSecret(name: string): boolean {
  const secretEndings =
    /\.(?:pem|key|ppk|p8|p12|pfx|jks|keystore|kdbx|kubeconfig|tfstate|tfstate\..*)$|^kubeconfig\.ya?ml$|^[^.].*(?<![._-](?:example|sample|template)|^(?:example|sample|template))\.env$/;
  // Keys of Google's service accounts and OAuth clients.
  const serviceKeys = /^(?:.*[_-])?(?:service[_-]?account|client[_-]secret)[^/]*\.json$/;
  if (name.startsWith(".env")) return /^\.env(?:rc)?(?:[._-]|$)/.test(name) && !template.test(name);
  if (/^\.?(?:credentials|secrets)/.test(name)) return !sourceCode.test(name);
  return secretNames.has(name) || secretEndings.test(name) || serviceKeys.test(name);
}

/** Shows which settings there are. */
const template = /[._-](?:example|sample|template)$/;

// Checked 2026-11-18: GitHub's templates for .gitignore (Terraform, Android, Java, Global/*), gitleaks (pkcs12-file) and
// the manuals of the programs that write the files.

const secretNames: ReadonlySet<string> = listNames(
  "id_rsa id_dsa id_ecdsa id_ed25519 id_ecdsa_sk id_ed25519_sk id_xmss",
  ".npmrc .netrc _netrc .pypirc .git-credentials .terraformrc terraform.rc .dockercfg",
  ".pgpass pgpass.conf .my.cnf .mylogin.cnf .htpasswd .s3cfg .boto .vault-token kubeconfig",
);

/** A program that handles secrets is not a secret. */
const sourceCode =
  /\.([cm]?[jt]sx?|vue|svelte|astro|py|pyi|rb|go|rs|java|kts?|scala|groovy|c|h|cc|cpp|cxx|hpp|hh|cs|fs|vb|swift|mm?|php|pl|pm|lua|exs?|erl|hs|ml|clj[cs]?|dart|jl|r|nim|zig|sh|bash|zsh|fish|ps1|sql|proto|graphql|tf|html|s?css|less)$/;

/** Files whose names say too little without their folder. */
const secretPlaces: ReadonlySet<string> = listNames(
  ".kube/config .docker/config.json .aws/config .m2/settings.xml gh/hosts.yml .azure/msal_token_cache.json",
  ".codex/auth.json .composer/auth.json gcloud/access_tokens.db",
);

function listNames(...lines: readonly string[]): ReadonlySet<string> {
  return new Set(lines.flatMap((line) => line.split(" ")));
}

function isInSecretFolder(folders: readonly string[], name: string): boolean {
  if (secretPlaces.has(`${folders.at(-1)}/${name}`)) return true;
  if (folders.includes(".gnupg")) return true;
  const isDocument =
    /\.(?:mdx?|rst|adoc)$|^(?:readme|\.git(?:keep|ignore|attributes))$/.test(name) || template.test(name);
  return folders.some((folder) => /^\.?secrets$/.test(folder)) && !isDocument && !sourceCode.test(name);
}

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
  const [denied, allowed] = [createGlobs(deny), createGlobs(allow)];
  if (denied.length + allowed.length === 0) return isSecretName;
  return (path) => {
    const name = path.toLowerCase();
    const isHidden = isSecretName(path) || denied.some((matches) => matches(name));
    return isHidden && !allowed.some((matches) => matches(name));
  };
}

/** If the braces make too many globs, the pattern matches only itself. */
function createGlobs(patterns: readonly string[]): Glob[] {
  return patterns.map((pattern) => {
    const name = pattern.toLowerCase();
    return createGlob(name) ?? ((path) => path === name);
  });
}
