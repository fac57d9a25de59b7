/** Finds out from Claude Code's own files whether it runs our process. After one failed start it skips the process for 15
 *  minutes and says nothing (2.1.327, 2026-11). */
import { dirname, join } from "node:path";
import { type Fields, isPlainObject, readJson } from "../../core/text/index.ts";
import { attemptChange, type Environment, homeDirectory, readForeignBytes } from "../../host/index.ts";
import type { PluginSilence } from "./plugin.ts";

const serverName = "plugin:plimsoll:plimsoll";
const skippedMs = 15 * 60_000;

/** The client also keeps servers there that need a sign-in, hence its name. */
function skipFile(env: Environment): string {
  return join(env.CLAUDE_CONFIG_DIR || join(homeDirectory(env), ".claude"), "mcp-needs-auth-cache.json");
}

/** Returns undefined if the client would start our process now. */
export function findSkippedServer(env: Environment, now: number): PluginSilence | undefined {
  const skipped = readJson(readForeignBytes(skipFile(env)), isPlainObject)?.[serverName];
  const since = Number((Object(skipped) as Fields).timestamp);
  const until = since + skippedMs;
  if (!(now < until)) return undefined;
  const message =
    'Claude Code could not start the plugin\'s process, and does not try again for 15 minutes. Is plimsoll on PATH? To mend it, run "plimsoll plugin install claude-code" and start a new session, or reconnect plimsoll in /mcp.';
  return { since, until, message };
}

/** Makes the client start our process in its next session. Returns whether it would have skipped it. */
export async function mendSkippedServer(env: Environment): Promise<boolean> {
  const path = skipFile(env);
  if (findSkippedServer(env, Date.now()) === undefined) return false;
  const plan = (current: string | undefined) => {
    const { [serverName]: _, ...others } = readJson(current, isPlainObject) ?? {};
    return { after: JSON.stringify(others), facts: undefined };
  };
  const { change } = await attemptChange(path, { root: dirname(path), env, dryRun: false, plan });
  return change?.written ?? false;
}
