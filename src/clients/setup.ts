/** Sets up the AI clients of this computer: plugins, and for Claude Code the status line and the spend guard. */
import { join } from "node:path";
import { ContextError } from "../core/errors.ts";
import { messageOf, toByteString } from "../core/text/index.ts";
import { attemptChange, configDirectory, type Environment, exists, findProgram, homeDirectory } from "../host/index.ts";
import { loadJsonFormat } from "../rules/index.ts";
import {
  changePlugin,
  installState,
  type PluginChange,
  type PluginClient,
  type PluginPlace,
} from "./plugins/plugin.ts";

/** Returns the clients whose program is on PATH or whose folder is in HOME, or in which our plugin is installed. */
export async function findClients(
  clients: Readonly<Record<string, () => Promise<PluginClient>>>,
  env: Environment,
): Promise<PluginClient[]> {
  const root = homeDirectory(env);
  const found: PluginClient[] = [];
  for (const load of Object.values(clients)) {
    const client = await load();
    const isHere =
      (await findProgram(client.program, env)) !== undefined ||
      (await exists(join(root, client.home))) ||
      (await installState(client, { scope: "user", root, env })) !== "absent";
    if (isHere) found.push(client);
  }
  return found;
}

export interface SetupOptions {
  readonly clients: readonly PluginClient[];
  readonly env: Environment;
  readonly dryRun: boolean;
  readonly hasStatusLine: boolean;
  /** Sets the guard's limit for a session, in dollars, if the configuration has no guard. */
  readonly sessionUsd?: number | undefined;
}

export interface SetupPart {
  readonly client: string;
  /** `plugin`, `status line` or `guard`. */
  readonly part: string;
  readonly changes: readonly PluginChange[];
  /** Why nothing changed although it was asked for. */
  readonly note?: string | undefined;
}

export async function setUpClients({
  clients,
  env,
  dryRun,
  hasStatusLine,
  sessionUsd,
}: SetupOptions): Promise<SetupPart[]> {
  const place: PluginPlace = { scope: "user", root: homeDirectory(env), env };
  const parts: SetupPart[] = [];
  for (const client of clients) {
    const isGuarded = client.canGuard === true && sessionUsd !== undefined;
    // What a person chose before stays.
    const earlier = client.installedSettings(place) ?? { deltas: true };
    const settings = isGuarded ? { ...earlier, guard: true } : earlier;
    const changes = await changePlugin(client, { action: "install", place, settings, dryRun });
    parts.push({ client: client.id, part: "plugin", changes });
    if (client.id !== "claude-code") continue;
    if (hasStatusLine) parts.push({ client: client.id, part: "status line", ...(await addStatusLine(place, dryRun)) });
    if (sessionUsd !== undefined)
      parts.push({ client: client.id, part: "guard", ...(await addLimit(place, { sessionUsd, dryRun })) });
  }
  return parts;
}

type Outcome = Pick<SetupPart, "changes" | "note">;

/** Seconds between two runs of the status line while nothing happens. Without it the client runs the command only after
 *  an answer, and a countdown would stand still. */
const refreshInterval = 10;

async function addStatusLine({ root, env }: PluginPlace, dryRun: boolean): Promise<Outcome> {
  const path = join(env.CLAUDE_CONFIG_DIR || join(root, ".claude"), "settings.json");
  const { add } = await loadJsonFormat();
  const entry = { type: "command", command: "plimsoll statusline", refreshInterval };
  return change(path, { root, env, dryRun }, (current) => add(current, { keys: [], name: "statusLine", entry }));
}

async function addLimit(
  { root, env }: PluginPlace,
  { sessionUsd, dryRun }: { readonly sessionUsd: number; readonly dryRun: boolean },
): Promise<Outcome> {
  const line = `guard: { session_usd: ${sessionUsd}, on_limit: ask }\n`;
  return change(join(configDirectory(env), "config.yaml"), { root, env, dryRun }, (current = "") => {
    if (/^guard\s*:/m.test(current)) throw new ContextError("refused_target", "has a guard already, which stays");
    return current === "" || current.endsWith("\n") ? current + line : `${current}\n${line}`;
  });
}

async function change(
  path: string,
  options: { readonly root: string; readonly env: Environment; readonly dryRun: boolean },
  edit: (current: string | undefined) => string,
): Promise<Outcome> {
  const plan = (current: string | undefined) => {
    try {
      return { after: toByteString(edit(current)), facts: undefined };
    } catch (error) {
      return { problem: new ContextError("refused_target", messageOf(error), { file: path }), facts: undefined };
    }
  };
  const { change: done, problem } = await attemptChange(path, { ...options, plan });
  return problem === undefined ? { changes: [{ path, change: done }] } : { changes: [], note: messageOf(problem) };
}
