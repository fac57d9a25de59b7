/** What the spend guard remembers: when it stopped a session, what a person allowed beyond the limits, and the question
 *  that it asked last. One small file for each session, because the guard runs before every tool call. */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { isNumber, isText, listOf, mapOf, objectOf, readJson, type ShapeCheck } from "../../core/text/index.ts";
import { type Environment, readForeign, replaceOwnFile, stateDirectory } from "../../host/index.ts";

export interface GuardRecord {
  readonly transcript: string;
  /** The newest stops, oldest first. */
  readonly stops: readonly GuardStop[];
  /** What a person allowed: dollars up to which the guard is silent, by the key of the limit. */
  readonly allowed: Readonly<Record<string, number>>;
  /** Reasons other than a limit that a person has accepted. */
  readonly accepted: readonly string[];
  /** The question that was asked last, until its answer is known. */
  readonly asked?: GuardQuestion | undefined;
}

export interface GuardQuestion {
  readonly callId: string;
  /** What a yes adds to `allowed`, */
  readonly allows: Readonly<Record<string, number>>;
  /** and to `accepted`. */
  readonly accepts: readonly string[];
}

interface GuardStop {
  /** ISO 8601. */
  readonly at: string;
  readonly decision: string;
  readonly tool: string;
  readonly reason: string;
}

const isRecord = objectOf(
  {
    transcript: isText,
    stops: listOf(objectOf({ at: isText, decision: isText, tool: isText, reason: isText })),
    allowed: mapOf(isNumber),
    accepted: listOf(isText),
  },
  { asked: objectOf({ callId: isText, allows: mapOf(isNumber), accepts: listOf(isText) }) },
) as ShapeCheck<GuardRecord>;

/** Returns undefined for an id that cannot be the name of a file. */
export function guardFile(env: Environment, sessionId: string): string | undefined {
  return /^[\w-]+$/.test(sessionId) ? join(guardFolder(env), `${sessionId}.json`) : undefined;
}

function guardFolder(env: Environment): string {
  return join(stateDirectory(env), "guard");
}

export function readGuardRecord(env: Environment, sessionId: string): GuardRecord {
  const file = guardFile(env, sessionId);
  const read = file === undefined ? undefined : readForeign(file, { refuseLink: true });
  const text = Buffer.isBuffer(read) ? read.toString("utf8") : undefined;
  return readJson(text, isRecord) ?? { transcript: "", stops: [], allowed: {}, accepted: [] };
}

export async function writeGuardRecord(env: Environment, sessionId: string, record: GuardRecord): Promise<void> {
  const file = guardFile(env, sessionId);
  if (file !== undefined) await replaceOwnFile(file, Buffer.from(JSON.stringify(record)));
}

/** Returns the sessions that the guard has stopped, the newest first. */
export function listGuardRecords(env: Environment): { readonly sessionId: string; readonly record: GuardRecord }[] {
  let names: string[] = [];
  try {
    names = readdirSync(guardFolder(env)).filter((name) => name.endsWith(".json"));
  } catch {
    // It has stopped none.
  }
  return names
    .map((name) => ({ name, time: statSync(join(guardFolder(env), name), { throwIfNoEntry: false })?.mtimeMs ?? 0 }))
    .sort((left, right) => right.time - left.time)
    .map(({ name }) => ({ sessionId: name.slice(0, -5), record: readGuardRecord(env, name.slice(0, -5)) }))
    .filter(({ record }) => record.stops.length > 0);
}
