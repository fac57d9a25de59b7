/** The user's directories, by the XDG base directory specification. Plimsoll never keeps its own state in a
 *  repository. */
import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Returns the home directory without a trailing slash, so it can be compared with other paths. */
export function homeDirectory(env: Environment): string {
  return resolve(env.HOME || homedir());
}

export function configDirectory(env: Environment): string {
  return xdgDirectory(env, "XDG_CONFIG_HOME", ".config");
}

export function stateDirectory(env: Environment): string {
  return xdgDirectory(env, "XDG_STATE_HOME", ".local/state");
}

export function cacheDirectory(env: Environment): string {
  return xdgDirectory(env, "XDG_CACHE_HOME", ".cache");
}

/** Ignores a relative value, as the specification requires: it would mean a different place in every directory. */
function xdgDirectory(env: Environment, variable: string, fallback: string): string {
  const value = env[variable];
  const base = value !== undefined && isAbsolute(value) ? value : join(homeDirectory(env), fallback);
  return join(base, "plimsoll");
}
