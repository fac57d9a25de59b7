/** Hides values that look like secrets: tokens by their form, passwords by what they are called. It is quick and not
 *  certain. docs/trust.md says what it finds. */

import { tokenForms } from "./token-forms.data.ts";

const redacted = "[redacted]";

/** Replaces likely secrets with `[redacted]`. The number of lines does not change. Takes time linear in the text. */
export function redactSecrets(text: string): string {
  // Documents show forms as `ghp_xxxxxxxx` and `AKIA00000000`.
  const known = replaceTokens(text, (token) =>
    isPlaceholder(token) || new Set(token.slice(-16)).size < 5 ? token : redacted,
  );
  return rules.reduce((rest, [form, replace]) => rest.replace(form, replace), known);
}

let anyForm: RegExp | undefined;

/** Replaces what has one of the forms. A form starts where a word starts. Looks only at long words that are not plain
 *  ones, because the forms are many. */
function replaceTokens(text: string, replace: (token: string) => string): string {
  const patterns = (): string => tokenForms.map(([, pattern]) => pattern.source).join("|");
  anyForm ??= new RegExp(`(?<![A-Za-z0-9])(?:${patterns()})`, "g");
  const forms = anyForm;
  return text.replace(/(?<![\w.~+/=:$-])[\w.~+/=:$-]{15,}/g, (word, at: number) => {
    if (!/\d|[A-Z]{8}|[A-Za-z]{20}/.test(word)) return word;
    // In a JSON string, `\n` stands before the word.
    const start = text[at - 1] === "\\" ? 1 : 0;
    return word.slice(0, start) + word.slice(start).replace(forms, replace);
  });
}

type Rule = readonly [form: RegExp, replace: (found: string, ...groups: string[]) => string];

/** Names of values that are secret if they look random. */
const tokenNames =
  "token|credentials?|auth(?:orization)?(?![a-z])|key-data|(?:php|j)sess(?:ion)?id|sessionid(?==)|[_.]sid(?![a-z])|" +
  "(?:api|access|private|account|signing|encryption|master|shared|storage|license|app|client|webhook)[_-]?key";

/** Each rule starts with a fixed word or at the start of a word, and each run that something must follow is bounded, so
 *  no rule backtracks far. Calls are marked as pure, so that commands that redact nothing do not load the rules. */
const rules: readonly Rule[] = [
  // A private key, up to its end or the end of the text. Code and prose name the first line without a key below it.
  [
    /-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----(?=["'\\rn+,\t\r ]{0,6}(?:\n|\\n)[\s\\rn"'+>|-]{0,12}[A-Za-z0-9+/]{4}|[ \t]{1,4}[A-Za-z0-9+/]{16})(?:(?!-----)[\s\S])*(?:-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----)?/g,
    (block) => block.replace(/[^\r\n]+/g, redacted),
  ],
  // Starts with the slashes: a search for them is ten times as fast as one that looks back at every character.
  [
    /:\/\/[^\s/@:"'<>`]{0,200}:([^\s/@"'<>`]{1,200})@/g,
    (found, password = "") => (isPlaceholder(password) ? found : `://${redacted}@`),
  ],
  [/[?&](?:sig|x-(?:amz|goog)-signature)=([^\s&"'<>`]{16,2000})/gi, /* @__PURE__ */ hideIf(isMixed)],
  [
    /\b(?:Bearer|Basic|Authorization:? {0,4}(?:Token|ApiKey)) {1,4}([\w+/.~=-]{8,})/gi,
    /* @__PURE__ */ hideIf((value) => isRandom(value) || isLogin(value)),
  ],
  [
    /cookie["'`]?[ \t]{0,4}[:=][ \t]{0,4}["'`]?[^\n"'`]{8,4000}/gi,
    (header) => header.replace(/=([^;\s]{8,4000})/g, /* @__PURE__ */ hideIf(isMixed)),
  ],
  // Options of commands.
  [
    /(?<![\w-])--?(?:[a-z0-9]{1,20}-){0,3}(?:password|passwd|passphrase|pass|pwd|token|secret|(?:api|access|private)-?key)(?:=|[ \t]{1,4})(["']?)([^\s"'`]{4,500})/gi,
    (found, quote = "", value = "") => (isOptionValue(value, quote) ? hide(found, value) : found),
  ],
  [/(?<![\w-])-(p|u|a|-user)[ \t=]{0,4}["']?([^\s"'`]{3,500})/g, hideArgument],
  // A line of a settings file.
  [/(?<![A-Z0-9_])([A-Z][A-Z0-9_]{2,60})=(?:\\?"([^"\n]{6,2000})|'([^'\n]{6,2000})|([^\s"'\\]{6,2000}))/g, hideSetting],
  // A name, a separator and a value, as in JSON, YAML, XML and connection strings.
  [
    /(?:passw(?:or)?d|passphrase|pwd|secret)([\w-]{0,40})\\{0,3}["'`]?(?: value)?(?:[ \t]{0,4}(?::=|=>|[:=])[ \t]{0,4}|>)(?:\\{0,3}["'`]([^"'`\n]{6,2000})|([^\s"'`,;(){}<>\\]{6,2000}))/gi,
    hidePassword,
  ],
  [
    /* @__PURE__ */ new RegExp(
      `(?:${tokenNames})([\\w-]{0,40})\\\\{0,3}["'\`]?(?:[ \\t]{0,4}(?::=|=>|[:=])[ \\t]{0,4}|>)\\\\{0,3}["'\`]?([^\\s"'\`,;(){}<>\\\\]{8,4000})`,
      "gi",
    ),
    (found, rest = "", value = "") => (!describes(rest) && isToken(value) ? hide(found, value) : found),
  ],
  // .netrc and .pgpass.
  [
    /\blogin\s{1,8}\S{1,100}\s{1,8}password[ \t]{1,8}(\S{1,200})/g,
    /* @__PURE__ */ hideIf((value) => !isPlaceholder(value)),
  ],
  [
    /:(?=\d{4}|\*)(?<=^[^\s:/#]{1,200}:)(?:\d{4,5}|\*):[A-Za-z_*][^\s:]{0,100}:[^\s:]{1,100}:(\S{1,200})$/gm,
    /* @__PURE__ */ hideIf((value) => !isPlaceholder(value)),
  ],
  // A line of a key without the lines around it. Lines of 76 are those of MIME and of the command `base64`.
  [
    /^[ \t>+-]{0,8}([A-Za-z0-9+/]{48,200}={0,2})$/gm,
    /* @__PURE__ */ hideIf(
      (value) => value.length !== 76 && isRandom(value) && /[a-z].*[A-Z]|[A-Z].*[a-z]/.test(value),
    ),
  ],
];

/** The value is the last group of its rule. */
function hideIf(isSecretValue: (value: string) => boolean): Rule[1] {
  return (found, value = "") => (isSecretValue(value) ? hide(found, value) : found);
}

/** The value is the end of what was found. The backslashes at its end belong to the quote that follows. */
function hide(found: string, value: string): string {
  let end = found.length;
  while (found[end - 1] === "\\" && end > found.length - value.length) end -= 1;
  return found.slice(0, found.length - value.length) + redacted + found.slice(end);
}

/** Help texts and prose have words after an option: `--password to log in`, `--token TOKEN`. */
function isOptionValue(value: string, quote: string): boolean {
  if (isPlaceholder(value) || isReference(value) || value.startsWith("-")) return false;
  return /[\d!#%^&*?@$~+]|[a-z][A-Z]/.test(value) || (quote !== "" && /^[a-z]{8,}$/.test(value));
}

/** `-p`, `-a` and `-u` have a password only after some commands. */
function hideArgument(found: string, ...[option = "", value = "", at, text]: string[]): string {
  const before = String(text).slice(Math.max(0, Number(at) - 120), Number(at));
  const newline = before.lastIndexOf("\n");
  const line = before[newline - 1] === "\\" ? before : before.slice(newline + 1);
  if (option === "u" || option === "-user") {
    const password = value.slice(value.indexOf(":") + 1);
    const isLoginOption =
      /(?:\b|\\n)(?:curl|wget|xh|https?) /.test(line) &&
      /\D/.test(password) &&
      password !== value &&
      !isPlaceholder(password);
    return isLoginOption ? hide(found, password) : found;
  }
  if (isPlaceholder(value) || value.startsWith("-")) return found;
  if (option === "a") return /(?:\b|\\n)redis-cli /.test(line) ? hide(found, value) : found;
  // mysql has its password in the same word. The next word is the database.
  const isJoined = /^-p["']?[^\s"'=]/.test(found);
  const command = isJoined
    ? /(?:\b|\\n)(?:mysql|mariadb)[\w-]{0,20} /
    : /(?:\b|\\n)(?:sshpass|(?:docker|podman|az|oc) login) /;
  return command.test(line) ? hide(found, value) : found;
}

/** In a settings file the name alone can be enough. */
function hideSetting(found: string, ...[name = "", ...values]: string[]): string {
  const value = values[0] ?? values[1] ?? values[2] ?? "";
  if (isPlaceholder(value) || isReference(value) || isPath(value)) return found;
  const [, word, rest = ""] =
    /(SECRET|TOKEN|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|API_?KEY|_PASS|_PWD)(.*)$/.exec(name) ?? [];
  if (word !== undefined && !describes(rest)) return /^[\d.,]+$/.test(value) ? found : hide(found, value);
  if (/_(?:KEY|AUTH)$/.test(name)) return isToken(value) || isMixed(value) ? hide(found, value) : found;
  const isHash = /SHA|HASH|DIGEST|CHECKSUM|COMMIT|INTEGRITY|PUBLIC/.test(name) || /^[0-9a-f-]+$/i.test(value);
  return value.length >= 20 && !isHash && isRandom(value) ? hide(found, value) : found;
}

function hidePassword(found: string, ...[rest = "", quoted, bare]: string[]): string {
  const value = quoted ?? bare ?? "";
  if (describes(rest) || isPlaceholder(value) || isReference(value)) return found;
  const isSecretValue = quoted === undefined ? isBarePassword(value) : isQuotedPassword(value, rest);
  return isSecretValue ? hide(found, value) : found;
}

/** In code such a word often names code: `password: string`, `secret = user.secret2`. */
function isBarePassword(value: string): boolean {
  if (isRandom(value)) return true;
  if (/^[A-Za-z_$][\w$]*(?:(?:\.|->|::)[A-Za-z_$#][\w$]*)+$|^[\d_.]+[a-z]{0,2}$/.test(value) || value.includes("["))
    return false;
  return hasUncommonMix(value);
}

/** Returns whether the quoted value after a name such as `password` is a password. Labels and messages often have the
 *  same names: `password: "Password must have 12 characters"`. */
function isQuotedPassword(value: string, rest: string): boolean {
  if (/\s/.test(value))
    return value.split(/\s+/).some((word) => /^(?=.*[a-z])(?=.*\d)\S{6,}$/i.test(word) && !isPlaceholder(word));
  return hasUncommonMix(value) || /[a-z][A-Z].*[a-z][A-Z]/.test(value) || (rest === "" && /^[a-z]{8,}$/.test(value));
}

/** Returns whether a value has characters that names lack. `password1` and `client_secret` are names of variables. */
function hasUncommonMix(value: string): boolean {
  const isName = /passw|secret|token|user|login|admin/i.test(value);
  return isName ? /\d.*\d|[!#%^&*?@]/.test(value) : /[\d!#%^&*?@]/.test(value);
}

/** Returns whether the end of a name says that the value only concerns a secret: `passwordField`, `secretName`,
 *  `TOKEN_URL`. */
function describes(nameEnd: string): boolean {
  return /(?:name|ref|field|label|input|length|size|min|max|count|limit|type|policy|regexp?|pattern|rules?|hint|errors?|message|title|text|placeholder|ur[il]|path|file|dir|expir\w*|ttl|timeout|valid\w*|algo\w*|method|version|header|prefix|index|budget|usage|used|endpoint|provider|manager|format|strength|reset|required|enabled|scopes?|issuer|source|[_-]id|Id|izer|arn|region)s?$/.test(
    /^[A-Z0-9_]+$/.test(nameEnd)
      ? nameEnd.toLowerCase()
      : nameEnd.replace(/[A-Z](?=[a-z]+$)/, (letter) => letter.toLowerCase()),
  );
}

/** Returns whether the value is something for a reader to fill in, a variable, a type or the name of an algorithm. */
function isPlaceholder(value: string): boolean {
  if (/^[$%@&*<{[]|^\\?\$|\$\{|\{\{|<[a-z]|^\.{3}|…|xxxx|\*{3}/i.test(value)) return true;
  if (
    /your[_-]|[_-]here\b|placeholder|redacted|change.?me|^process\.env|^os\.(?:environ|getenv)|^env[.:[]|^import\.meta/i.test(
      value,
    )
  ) {
    return true;
  }
  return /^(?:(?:my|the|a|new|old|user|some|test|db)?[_-]?(?:pass(?:word|wd|phrase|code)?|pw|pwd|secret|token|api[_-]?key|key|credentials?)|string|boolean|number|undefined|unknown|required|optional|disabled|enabled|example|none|null|true|false|sha-?\d+|md5|base64|utf-?8|aes-?\d+|x509|oauth2?|u?int\d+|float\d+|bcrypt|argon2\w*|scrypt|pbkdf2\w*)[;,.:)\]]*$/i.test(
    value,
  );
}

/** Returns whether the value says where the secret is, and is not the secret itself. */
function isReference(value: string): boolean {
  return /^(?:arn:|op:\/\/|vault:|ssm:|file:|projects\/|secrets?[./]|(?:https?|wss?):\/\/)/i.test(value);
}

function isPath(value: string): boolean {
  return /^(?:~|\.{1,2})?(?:\/[\w.@-]+)+\/?$/.test(value) && !isRandom(value);
}

function isToken(value: string): boolean {
  if (isPlaceholder(value) || isReference(value)) return false;
  return isRandom(value) || isLogin(value);
}

/** Mixes letters and digits as no word, no number, no path and no version does. */
function isRandom(value: string): boolean {
  if (value.length < 16 || !/^[\w+/=~.%-]+$/.test(value)) return false;
  if (!/\d/.test(value) || new Set(value).size < 10) return false;
  return countChanges(value) >= Math.max(3, value.length * 0.12);
}

/** Whether a value of a cookie or a signature is more than a word or a number. */
function isMixed(value: string): boolean {
  return !isPlaceholder(value) && /[a-z]/i.test(value) && countChanges(value) >= 3;
}

/** Counts where a letter follows a digit or a digit a letter, and where a capital follows a small letter. */
function countChanges(value: string): number {
  return value.slice(0, 400).match(/[A-Za-z](?=\d)|\d(?=[A-Za-z])|[a-z](?=[A-Z])/g)?.length ?? 0;
}

/** Whether the text is `name:password` in base64, as in a Basic header and in the settings of Docker. */
function isLogin(value: string): boolean {
  if (!/^[A-Za-z0-9+/]{8,4000}={0,2}$/.test(value) || value.length % 4 !== 0) return false;
  return /^[\x21-\x7e]{1,200}:[\x20-\x7e]{1,2000}$/.test(atob(value));
}
