/** Where a user's files live, by the XDG base directory specification. Nothing of the tool's own state is ever kept in a repository. */
import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Without a trailing slash, so that it can be compared with other paths. */
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

/** A relative value is ignored, as the specification asks: it would mean another place in every directory. */
function xdgDirectory(env: Environment, variable: string, fallback: string): string {
  const value = env[variable];
  const base = value !== undefined && isAbsolute(value) ? value : join(homeDirectory(env), fallback);
  return join(base, "plimsoll");
}
