/** Where each client keeps its recordings, and which files in a folder may be recordings. */

import { type Dirent, existsSync, realpathSync, statSync } from "node:fs";
import { join, resolve, sep } from "node:path";
import { type Environment, homeDirectory, listForeign } from "../host/index.ts";

/** Returns the folders and files in which clients keep recordings, as far as they exist. */
export function recordingPlaces(env: Environment): readonly string[] {
  const home = homeDirectory(env);
  const codex = env.CODEX_HOME || join(home, ".codex");
  const data = env.XDG_DATA_HOME || join(home, ".local/share");
  const gemini = join(home, ".gemini/tmp");
  const places = [
    // The search does not follow links in a folder, but people move large projects to another disk.
    ...claudeProjects(env).flatMap((projects) => [
      projects,
      ...entriesIn(projects)
        .filter((entry) => entry.isSymbolicLink())
        .map(({ name }) => join(projects, name))
        .filter(isDirectory),
    ]),
    ...["sessions", "archived_sessions"].map((name) => join(codex, name)),
    join(data, "opencode/opencode.db"),
    ...entriesIn(gemini).map(({ name }) => join(gemini, name, "chats")),
    join(env.PI_CODING_AGENT_DIR || join(home, ".pi/agent"), "sessions"),
    join(env.COPILOT_HOME || join(home, ".copilot"), "session-state"),
    join(env.CLINE_DATA_DIR || join(home, ".cline/data"), "sessions"),
    join(home, ".qwen/projects"),
  ];
  return places.filter((place) => existsSync(place));
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

/** The folders in which Claude Code has a folder for each project. */
function claudeProjects(env: Environment): readonly string[] {
  const home = homeDirectory(env);
  const own = (env.CLAUDE_CONFIG_DIR ?? "").split(",").map((folder) => folder.trim());
  const folders = own.filter((folder) => folder !== "");
  const usual = [join(home, ".claude"), join(home, ".config/claude")];
  return (folders.length > 0 ? folders : usual).map((folder) => resolve(folder, "projects"));
}

/** Returns those of the transcripts that may be kept in the index. A hook may name one in a repository, which may bring
 *  links to what `bill` would not read, and `bill` shows what is in the index. */
export function keptTranscripts(paths: readonly string[], env: Environment): readonly string[] {
  const projects = claudeProjects(env).map((folder) => `${folder}${sep}`);
  return paths.filter((path) => {
    // Resolving a path takes long for hundreds of them, and only a hook's own may have dots.
    if (!path.includes("..") && projects.some((folder) => path.startsWith(folder))) return true;
    try {
      return realpathSync.native(path) === path;
    } catch {
      return false;
    }
  });
}

/** Finds the transcripts of Claude Code that changed since a time, and those of their sub-agents. With hundreds of
 *  sessions this is much faster than a search through all folders. `transcript` shows where the client keeps a running
 *  session. */
export function findClaudeTranscripts(
  env: Environment,
  { since, transcript }: { readonly since: number; readonly transcript?: string | undefined },
): readonly string[] {
  const projects = new Set(claudeProjects(env));
  if (transcript !== undefined) projects.add(resolve(transcript, "../.."));
  const isChanged = (file: string): boolean => (statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0) >= since;
  const changed = [...projects].flatMap((folder) =>
    entriesIn(folder).flatMap(({ name: project }) =>
      entriesIn(join(folder, project))
        .filter(({ name }) => name.endsWith(".jsonl"))
        .map(({ name }) => join(folder, project, name))
        .filter(isChanged),
    ),
  );
  return changed.flatMap((file) => [file, ...findSubAgents(file).filter(isChanged)]);
}

/** Returns the transcripts of a session's sub-agents, which are in a folder beside its own. */
export function findSubAgents(transcript: string): readonly string[] {
  const folder = transcript.replace(/\.jsonl$/, "");
  if (folder === transcript) return [];
  const files: string[] = [];
  const pending = [folder];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    for (const entry of entriesIn(next)) {
      const path = join(next, entry.name);
      if (entry.isDirectory()) pending.push(path);
      else if (entry.name.endsWith(".jsonl")) files.push(path);
    }
  }
  return files.sort();
}

/** No repository brings these folders, so links are followed. */
function entriesIn(folder: string): Dirent[] {
  const entries = listForeign(folder);
  return Array.isArray(entries) ? entries.sort((left, right) => (left.name < right.name ? -1 : 1)) : [];
}

/** A file that may have sessions. */
export interface SessionFile {
  /** Absolute. */
  readonly path: string;
  /** The file itself, or the directory that was named. Nothing outside of it is read. */
  readonly within: string;
}

export interface SessionFiles {
  /** Each once, those of a directory sorted by name. */
  readonly files: readonly SessionFile[];
  readonly unreadable: readonly { readonly path: string; readonly reason: string }[];
}

/** Finds named files, and *.jsonl, *.json and opencode.db files of directories, also ignored ones, because recordings are
 *  rarely committed. Does not follow links in directories. */
export function findSessionFiles(paths: readonly string[], cwd: string): SessionFiles {
  const files = new Map<string, SessionFile>();
  const unreadable: { path: string; reason: string }[] = [];
  const pending: (SessionFile & { isFolder?: boolean })[] = [];
  for (const path of paths.map((each) => resolve(cwd, each)).reverse()) pending.push({ path, within: path });
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    // Problems with the path are reported when it is read.
    const { path, within, isFolder = isDirectory(path) } = next;
    if (!isFolder) {
      if (!files.has(path)) files.set(path, { path, within });
      continue;
    }
    const entries = listForeign(path, { within });
    if (Array.isArray(entries)) pending.push(...sessionsAmong(entries, { path, within }).reverse());
    else unreadable.push({ path, reason: `cannot be listed: ${entries.reason}` });
  }
  return { files: [...files.values()], unreadable };
}

function sessionsAmong(
  entries: readonly Dirent[],
  { path, within }: SessionFile,
): (SessionFile & { isFolder: boolean })[] {
  const names = new Set(entries.map(({ name }) => name));
  // Claude Code describes a sub-agent in a file beside its session, and cline each session. Copilot CLI keeps the state of
  // rewinds.
  const isBeside = (name: string): boolean =>
    name.endsWith(".meta.json") ||
    name === "tracking.json" ||
    names.has(`${name.slice(0, -".json".length)}.messages.json`);
  const isSession = ({ name }: Dirent): boolean =>
    (/\.jsonl?$/.test(name) && !isBeside(name)) || name === "opencode.db";
  const wanted = entries.filter((entry) => entry.isDirectory() || (entry.isFile() && isSession(entry)));
  return wanted
    .sort((left, right) => (left.name < right.name ? -1 : 1))
    .map((entry) => ({ path: join(path, entry.name), within, isFolder: entry.isDirectory() }));
}
