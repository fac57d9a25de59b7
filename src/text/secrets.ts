/** Recognises likely secrets: files by their names, values by their form. Neither is certain, but both are quick. */

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

const redacted = "[redacted]";

/** Replaces likely secrets with `[redacted]`. The number of lines does not change. Takes time linear in the text. */
export function redactSecrets(text: string): string {
  return rules.reduce((rest, [form, replace]) => rest.replace(form, replace), text);
}

type Rule = readonly [form: RegExp, replace: (found: string, ...groups: string[]) => string];

/** Each rule starts with a fixed word or at the start of a run of characters, and each run is bounded, so no rule
 *  backtracks. The value is the last group of its rule. */
const rules: readonly Rule[] = [
  // A private key, up to its end or the end of the text.
  [
    /-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----(?:(?!-----)[\s\S])*(?:-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----)?/g,
    (block) => block.replace(/[^\r\n]+/g, redacted),
  ],
  // Tokens with a fixed form, as of 2026-11: AWS, GitHub, GitLab, Slack, Anthropic and OpenAI, Stripe, npm, Google,
  // JWT.
  [
    /(?:AKIA|ASIA)[0-9A-Z]{16}|gh[oprsu]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{20,}|xox[a-z]-[\w-]{10,}|xapp-[\w-]{10,}|\bsk-[\w-]{20,}|[rsp]k_(?:live|test)_\w{16,}|npm_[A-Za-z0-9]{30,}|AIza[\w-]{30,}|(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?/g,
    () => redacted,
  ],
  // Starts with the slashes: a search for them is ten times as fast as one that looks back at every character.
  [/:\/\/[^\s/@:"'<>]{0,200}:[^\s/@"'<>]{1,200}@/g, () => `://${redacted}@`],
  [/\b(?:Bearer|Basic) {1,4}([\w+/.~=-]{16,})/gi, hideIf(isRandom)],
  // A line of a settings file.
  [
    /(?:SECRET|TOKEN|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|API_?KEY|_KEY|_PASS|_PWD|_AUTH)[A-Z0-9_]{0,40}=("[^"\n]{6,2000}|'[^'\n]{6,2000}|[^\s"'\\]{6,2000})/g,
    hideIf(() => true),
  ],
  [/(?<![A-Z0-9_])[A-Z][A-Z0-9_]{2,60}=["']?([^\s"'\\]{20,2000})/g, hideIf(isRandom)],
  // In other text such a word often names code: `password: string`, `token = next()`.
  [
    /(?:passw(?:or)?d|passphrase|secret)[\w-]{0,40}["'`]?[ \t]{0,4}(?::=|=>|[:=])[ \t]{0,4}(["'`][^"'`\n]{6,2000}|[^\s"'`,;(){}]{6,2000})/gi,
    hideIf((value) => "\"'`".includes(value[0] ?? " ") || /[\d!#%^&*?@]/.test(value)),
  ],
  [
    /(?:token|credential|auth|(?:api|access|private|account|signing)[_-]?key)[\w-]{0,40}["'`]?[ \t]{0,4}(?::=|=>|[:=])[ \t]{0,4}["'`]?([^\s"'`,;(){}]{16,2000})/gi,
    hideIf(isRandom),
  ],
  // A line of a key without the lines around it.
  [
    /^[ \t>+-]{0,8}([A-Za-z0-9+/]{48,200}={0,2})$/gm,
    hideIf((value) => isRandom(value) && /[a-z].*[A-Z]|[A-Z].*[a-z]/.test(value)),
  ],
];

function hideIf(isSecretValue: (value: string) => boolean): Rule[1] {
  return (found, value = "") => {
    if (!isSecretValue(value)) return found;
    const kept = "\"'`".includes(value[0] ?? " ") ? value.length - 1 : value.length;
    return found.slice(0, found.length - kept) + redacted;
  };
}

/** Mixes letters and digits as no word and no number does. */
function isRandom(value: string): boolean {
  if (value.length < 16 || !/^[\w+/=~-]+$/.test(value)) return false;
  return /[a-z]/i.test(value) && (value.match(/\d/g)?.length ?? 0) >= 2 && new Set(value).size >= 10;
}
