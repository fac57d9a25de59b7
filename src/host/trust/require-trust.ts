/** How commands treat settings of a project that need trust: stop, or leave them out with a note. */
import { join } from "node:path";
import { ContextError } from "../../core/errors.ts";
import { printable } from "../../core/text/index.ts";
import type { LoadedConfig } from "../config/load-config.ts";
import { configDirectory } from "../directories.ts";
import type { Caller, Output } from "../print/output.ts";
import { shownPath } from "../print/table.ts";
import type { PowerfulSetting } from "./trusted.ts";

type Place = Pick<Caller, "cwd" | "env">;
type NotedCaller = Place & { readonly output: Pick<Output, "note"> };

/** Throws if a setting is not trusted. `folder` is the argument for `plimsoll trust`. */
export function requireTrust(settings: readonly PowerfulSetting[], place: Place, folder?: string): void {
  const [first, ...rest] = settings;
  if (first === undefined) return;
  const lines = rest.map((setting) => `${formatPlace(setting, place)}: ${described(setting)}`);
  const command = folder === undefined ? "plimsoll trust" : `plimsoll trust ${quoted(folder)}`;
  throw new ContextError("untrusted", [`${described(first)}. You have not trusted this project`, ...lines].join("\n"), {
    file: shownPath(first.file, place.cwd, place.env),
    line: first.line,
    hint: `Run "${command}" to see and trust its settings, or add --trust to trust them in this run.`,
  });
}

function described({ key, value, target }: PowerfulSetting): string {
  const shown = printable(value);
  const where = target === undefined || target === value ? "" : ` (that is ${printable(target)})`;
  return `the project sets ${key} to ${/^[[{]/.test(shown) ? shown : `"${shown}"`}${where}`;
}

/** Quotes a word for a shell. */
function quoted(word: string): string {
  return /^[\w./+:@%,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

function formatPlace({ file, line }: PowerfulSetting, { cwd, env }: Place): string {
  return `${printable(shownPath(file, cwd, env))}:${line}`;
}

/** Prints one note with the settings that are left out. */
export function noteLeftOut(settings: readonly PowerfulSetting[], call: NotedCaller): void {
  if (settings.length === 0) return;
  const named = settings.map((setting) => `${setting.key} (${formatPlace(setting, call)})`).join(", ");
  call.output.note(
    `left out, because this project is not trusted: ${named}. Run "plimsoll trust" to see and trust its settings.`,
  );
}

/** Prints a note that the project's store setting is ignored. */
export function noteIgnoredStore({ ignoredStore }: LoadedConfig, { cwd, env, output }: NotedCaller): void {
  if (ignoredStore === undefined) return;
  const { file, line } = ignoredStore;
  const own = shownPath(join(configDirectory(env), "config.yaml"), cwd, env);
  output.note(
    `${printable(file)}:${line}: store is left out: a project cannot choose where state goes. Set it in ${printable(own)}, with --store or with PLIMSOLL_STORE.`,
  );
}
