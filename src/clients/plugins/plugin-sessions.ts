/** What plugins did, by session: the numbers of `plugin status`. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { AdmittedResult } from "../../conversation/intake/index.ts";
import { createEventWriter, type EventWriter, type Store } from "../../core/store/index.ts";
import { isText, isWhole, listOf, objectOf, readJson, type ShapeCheck } from "../../core/text/index.ts";
import { type Environment, stateDirectory } from "../../host/index.ts";
import { guardFile } from "../spend/guard-record.ts";

export interface PluginSession {
  readonly client: string;
  readonly sessionId: string;
  /** How many results the plugin saw. */
  readonly results: number;
  readonly duplicates: number;
  readonly deltas: number;
  readonly pages: number;
  /** Tokens that the edits left out of the first request with each result. */
  readonly savedTokens: number;
  readonly recalls: number;
  /** The newest ones, oldest first. */
  readonly errors: readonly string[];
  /** ISO 8601. */
  readonly lastUsed: string;
}

/** One thing that happened in a session. */
export type PluginEvent =
  | {
      readonly kind: "result";
      readonly edit: AdmittedResult["edit"];
      readonly savedTokens: number;
      /** What is sent. */
      readonly tokens?: number | undefined;
      readonly callId?: string | undefined;
      readonly agentId?: string | undefined;
    }
  /** A trim of the history, which breaks the prompt cache once. */
  | { readonly kind: "trim"; readonly before: number; readonly after: number; readonly agentId?: string | undefined }
  | { readonly kind: "recall" }
  | { readonly kind: "error"; readonly message: string };

/** `at` is in milliseconds since 1970. */
export type TimedEvent = PluginEvent & { readonly at: number };

const collection = "plugin-sessions";
/** Which results of a client whose history is trimmed were shortened, by session. */
export const pluginResults = "plugin-results";

const isSession: ShapeCheck<PluginSession> = objectOf({
  client: isText,
  sessionId: isText,
  results: isWhole,
  duplicates: isWhole,
  deltas: isWhole,
  pages: isWhole,
  savedTokens: isWhole,
  recalls: isWhole,
  errors: listOf(isText),
  lastUsed: isText,
});

/** Returns a function that adds events to the numbers of their session, and to the stream of events, where `bill` finds
 *  our trims. It returns all tokens that the session has saved. */
export function createSessionRecorder(
  client: string,
): (store: Store, sessionId: string, events: readonly TimedEvent[]) => Promise<number> {
  let at = 0;
  let writer: EventWriter | undefined;
  return async (store, sessionId, events) => {
    const onFailure = (): void => {
      writer = undefined;
    };
    writer ??= createEventWriter(store, { now: () => at, onFailure });
    for (const event of events) {
      at = event.at;
      const numbers = describeEvent(event);
      if (numbers === undefined) continue;
      const { agentId, callId } = event as { readonly agentId?: string; readonly callId?: string };
      const kind = event.kind === "result" ? "intake" : (event.kind as "trim" | "error");
      writer.write({ source: "plugin", client, sessionId, agentId, callId, kind, numbers });
    }
    const lastUsed = new Date(events.at(-1)?.at ?? Date.now()).toISOString();
    const { value } = await store.update(collection, makeKey(client, sessionId), (before) => {
      const session = readJson(before, isSession) ?? {
        client,
        sessionId,
        results: 0,
        duplicates: 0,
        deltas: 0,
        pages: 0,
        savedTokens: 0,
        recalls: 0,
        errors: [],
        lastUsed,
      };
      return JSON.stringify({ ...events.reduce<PluginSession>(addEvent, session), lastUsed });
    });
    await writer?.settled();
    return readJson(value, isSession)?.savedTokens ?? 0;
  };
}

/** Returns undefined for what the stream does not have. */
function describeEvent(event: PluginEvent): Readonly<Record<string, number | string | undefined>> | undefined {
  if (event.kind === "trim") return { before: event.before, after: event.after };
  if (event.kind === "error") return { name: "plugin" };
  if (event.kind === "recall" || event.edit === "none") return undefined;
  return { edit: event.edit, tokens: event.tokens, saved: event.savedTokens };
}

function addEvent(session: PluginSession, event: PluginEvent): PluginSession {
  if (event.kind === "trim") return session;
  if (event.kind === "recall") return { ...session, recalls: session.recalls + 1 };
  if (event.kind === "error") return { ...session, errors: [...session.errors, event.message].slice(-5) };
  const counted = { ...session, results: session.results + 1, savedTokens: session.savedTokens + event.savedTokens };
  if (event.edit === "none" || event.edit === "quote") return counted;
  const name = `${event.edit}s` as const;
  return { ...counted, [name]: session[name] + 1 };
}

/** Returns the sessions of a client, or of all clients, newest first. */
export async function listPluginSessions(store: Store, client?: string): Promise<PluginSession[]> {
  const records = await store.list(collection, client === undefined ? {} : { prefix: makeKey(client, "") });
  const sessions = records.flatMap(({ value }) => readJson(value, isSession) ?? []);
  return sessions.sort((one, other) => (one.lastUsed < other.lastUsed ? 1 : -1));
}

function makeKey(client: string, sessionId: string): string {
  return `${client}/${sessionId}`;
}

/** Returns the name under which a history is stored. A sub-agent has a history of its own. */
export function historyName(of: { readonly sessionId: string; readonly agentId?: string | undefined }): string {
  return of.agentId === undefined ? of.sessionId : `${agentPrefix(of.sessionId)}${of.agentId}`;
}

/** The names of the histories of a session's sub-agents start with it. */
export function agentPrefix(sessionId: string): string {
  return `${sessionId}:`;
}

/** Deletes what plugins of any client stored for sessions. */
export async function forgetPluginSessions(
  store: Store,
  { sessionIds, env }: { readonly sessionIds: ReadonlySet<string>; readonly env: Environment },
): Promise<void> {
  const { forgetHistory, listHistories } = await import("../../conversation/history/index.ts");
  const gone = (await listPluginSessions(store)).filter(({ sessionId }) => sessionIds.has(sessionId));
  for (const { client, sessionId } of gone) await store.delete(collection, makeKey(client, sessionId));
  for (const sessionId of sessionIds) {
    await store.delete(pluginResults, sessionId);
    const prefix = agentPrefix(sessionId);
    for (const { key } of await store.list(pluginResults, { prefix })) await store.delete(pluginResults, key);
    for (const name of await listHistories(store, { prefix })) await forgetHistory(store, name);
    const file = savedTokensFile(env, sessionId);
    const guard = guardFile(env, sessionId);
    const files = [file, file?.replace(/json$/, "usd"), guard];
    for (const path of files) if (path !== undefined) await rm(path, { force: true });
  }
}

/** Where the status line finds what a session saved. Undefined for an id that cannot be the name of a file. */
export function savedTokensFile(env: Environment, sessionId: string): string | undefined {
  return /^[\w-]+$/.test(sessionId) ? join(stateDirectory(env), "saved-tokens", `${sessionId}.json`) : undefined;
}
