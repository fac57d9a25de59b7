/** Searches with ripgrep in two steps: one run counts the matches of every file on all cores, then the few files of the
 *  page are read. So totals are right and the order is fixed. ripgrep alone can do that only on one core. */

import { type FileHandle, lstat } from "node:fs/promises";
import { join } from "node:path";
import { cutText, expandBraces } from "../../core/text/index.ts";
import { loadProcesses, type ProcessEnd, type StartedProcess, splitRecords } from "../../host/index.ts";
import { isFailure, type ToolFailure, type ToolResult } from "../session/index.ts";
import { createMatchedFile, deniedFilesWarning, type FileFilter, type Match, type SearchRequest } from "./match.ts";
import { type CountedFile, openMatches } from "./ripgrep-matches.ts";
import { failure, listLate, type Run, startRun } from "./run.ts";
import {
  byteNamesWarning,
  createContainedDirectories,
  decodeName,
  displayName,
  isByteName,
  openRegular,
} from "./source/contained-path.ts";
import { startListing } from "./source/repository.ts";
import { secretWarning } from "./source/secret-paths.ts";
import { sampleEncoding } from "./source/text-encoding.ts";

export async function searchByRipgrep(
  program: string,
  request: SearchRequest,
  run: Run,
): Promise<ToolResult | ToolFailure> {
  // `-e` and `--` make sure that neither a pattern nor a path is read as an option.
  const pattern = [
    "--crlf",
    request.caseSensitive ? "--case-sensitive" : "--ignore-case",
    ...(request.isRegex ? [] : ["--fixed-strings"]),
    "-e",
    request.pattern,
  ];
  const { startProcess } = await loadProcesses();
  const start = (args: readonly string[], { root: cwd, env, signal }: Run, input?: number) =>
    startProcess(program, ["--no-config", ...args], { cwd, env, signal, input });
  // Leaves a part of the time to show what was found.
  const count = startRun(run, { signal: run.signal, timeoutMs: run.timeoutMs * 0.7 });
  const counting = start(
    [...countArguments, ...typeArguments(request.files), ...pattern, "--", `./${request.path}`],
    count,
  );
  const passedOver = countPassedOver(request, count, (paths) =>
    readCounts(start([...countArguments, ...pattern, "--", ...paths], count)),
  );
  const listing = findSecrets(request, count, (args) => start([...args, "--", `./${request.path}`], count));
  const { files, searched, denied } = merge(await readCounts(counting), await passedOver);
  const listed = await listing;
  const secrets = [...new Set([...listed, ...(await passedOver).secrets])].sort();
  const problem = explainFailure(await counting.end);
  count.finish();
  if (problem !== undefined && files.length === 0) return problem;
  const wanted = files.filter(({ path }) => request.files.matches(path) && !request.isSecret(path));
  wanted.sort((a, b) => (a.path < b.path ? -1 : 1));
  const startOn = (args: readonly string[], on: readonly string[] | FileHandle) =>
    "fd" in on ? start([...args, ...pattern, "--", "-"], run, on.fd) : start([...args, ...pattern, "--", ...on], run);
  const { matches, version } = await openMatches({ root: run.root, start: startOn }, wanted, request);
  return describe(wanted, matches, {
    request,
    searched: searched && searched - listed.length,
    secrets,
    denied,
    isLate: () => count.timedOut() || run.timedOut(),
    version,
    run,
  });
}

function describe(
  files: readonly CountedFile[],
  matches: AsyncIterable<Match>,
  found: {
    readonly request: SearchRequest;
    readonly searched: number | undefined;
    /** Files that were not searched because they usually have secrets. */
    readonly secrets: readonly string[];
    readonly denied: boolean;
    isLate(): boolean;
    readonly version: string;
    readonly run: Run;
  },
): ToolResult {
  const { request, searched, secrets, denied, isLate, version, run } = found;
  const { mode, offset, maxResults } = request;
  const byteNames = files.filter(({ path }) => isByteName(path)).length;
  const isLines = mode === "lines";
  const total = isLines ? files.reduce((sum, { count }) => sum + count, 0) : files.length;
  const listed = files.slice(offset, offset + maxResults);
  return {
    fields: { search_tool: "ripgrep", files_searched: searched, files_matched: files.length },
    itemsName: isLines ? "matches" : "files",
    items: isLines ? matches : listed.map(({ path, count }) => createMatchedFile(displayName(path), count, mode)),
    offset,
    total: () => (isLate() ? undefined : total),
    more: () => isLate() || offset + maxResults < total,
    version,
    warnings: () => [
      ...listLate({ ...run, timedOut: isLate }, "the search"),
      ...(denied ? [deniedFilesWarning] : []),
      ...[secretWarning(secrets, "searched") ?? []].flat(),
      ...[byteNamesWarning(byteNames) ?? []].flat(),
    ],
  };
}

/** Searches hidden files, as git does. Skips what .gitignore files exclude, inside a repository or not. Ignores a
 *  person's own settings, so that a tree gives the same result on every machine. */
const walkArguments: readonly string[] = [
  "--null",
  "--no-messages",
  "--color=never",
  "--hidden",
  "--glob=!.git",
  "--no-require-git",
  "--no-ignore-global",
  "--no-ignore-dot",
];

const countArguments: readonly string[] = ["--count", "--with-filename", "--stats", ...walkArguments];

/** A ripgrep type is faster than checking every file, and unlike `--glob` it respects .gitignore. It knows names only,
 *  and only plain globs mean the same there, so our own glob is checked afterwards. */
function typeArguments({ pattern }: FileFilter): string[] {
  const globs = pattern === undefined ? [] : (expandBraces(pattern) ?? []);
  if (globs.length === 0 || !globs.every((glob) => /^[\w.*-]+$/.test(glob))) return [];
  return [...globs.map((glob) => `--type-add=wanted:${glob}`), "--type=wanted"];
}

/** Finds the searched files that usually have secrets. Their matches are dropped. They are named even without a match,
 *  because a search must not reveal what is in them. */
async function findSecrets(
  request: SearchRequest,
  { signal }: Run,
  start: (args: readonly string[]) => StartedProcess,
): Promise<string[]> {
  const { path, files, knownSecrets } = request;
  const known = knownSecrets.get(path);
  const isKnown = known !== undefined && known.until > performance.now();
  const paths: string[] = isKnown ? [...known.paths] : [];
  if (!isKnown) {
    for await (const batch of splitRecords(start(["--files", ...walkArguments]).output, "\0")) {
      const names = batch.map((record) => decodeName(record).replace(/^(\.\/)+/, ""));
      paths.push(...names.filter((name) => request.isSecret(name)));
    }
    paths.sort();
  }
  if (!isKnown && !signal.aborted) {
    knownSecrets.clear();
    // Walking a large tree a second time takes long, and its result seldom changes.
    knownSecrets.set(path, { paths, until: performance.now() + 30_000 });
  }
  return paths.filter((each) => files.matches(each)).map(displayName);
}

/** In an ignored directory that a call names, ripgrep finds the same files. */
function merge(found: Counts, passedOver: Counts): Counts {
  const known = new Set(found.files.map(({ path }) => path));
  const files = [...found.files, ...passedOver.files.filter(({ path }) => !known.has(path))];
  const searched = found.searched && found.searched + (passedOver.searched ?? 0);
  return { files, searched, denied: found.denied || passedOver.denied };
}

/** Reads `PATH NUL COUNT LF` repeatedly, and at the end the output of `--stats`. */
async function readCounts({ output, end: ending }: StartedProcess): Promise<Counts> {
  const files: CountedFile[] = [];
  let path: string | undefined;
  let rest = "";
  for await (const batch of splitRecords(output, "\0", "keep")) {
    for (const record of batch) {
      const end = path === undefined ? -1 : record.indexOf("\n");
      if (path !== undefined && end > 0) files.push({ path, count: Number(record.slice(0, end)) });
      rest = record.slice(end + 1);
      path = decodeName(rest).replace(/^(\.\/)+/, "");
    }
  }
  const searched = /^(\d+) files? searched$/m.exec(rest)?.[1];
  const denied = isDeniedEnd(await ending);
  return { files, searched: searched === undefined ? undefined : Number(searched), denied };
}

/** Exit code 2 is an error in the call. Files that could not be read give it too, without a message. */
function isDeniedEnd({ code, stderr }: ProcessEnd): boolean {
  return code === 2 && stderr.trim() === "";
}

function explainFailure(end: ProcessEnd): ToolFailure | undefined {
  const { code, stderr } = end;
  if (code !== 2 || isDeniedEnd(end)) return undefined;
  const line = /^error: (.+)$/m.exec(stderr)?.[1] ?? stderr.replace(/^rg: /, "").split("\n")[0] ?? "";
  const reason = cutText(line, 300).text;
  const hint = /look-around|backreference/.test(reason)
    ? "Rewrite it without look-around and backreferences."
    : "Check the regular expression.";
  return /regex|literal/.test(stderr)
    ? failure("invalid_pattern", `The pattern is not valid: ${reason}.`, hint)
    : failure("search_failed", `ripgrep failed: ${reason}`);
}

/** Files that git tracks although .gitignore excludes them. ripgrep skips them but the list of files has them. So they
 *  are searched by name. Then ripgrep also searches links and binary files, which are removed here. */
interface Counts {
  readonly files: readonly CountedFile[];
  /** Undefined if ripgrep did not finish. */
  readonly searched: number | undefined;
  /** Whether some files could not be read. */
  readonly denied: boolean;
}

/** `count` counts the matches of the given files. */
async function countPassedOver(
  { path, files: filter, isSecret }: SearchRequest,
  run: Run,
  count: (paths: readonly string[]) => Promise<Counts>,
): Promise<Counts & { readonly secrets: readonly string[] }> {
  const all = (await listTrackedIgnored(run, path)).filter(filter.matches);
  const secrets = all.filter((each) => isSecret(each));
  const tracked = all.filter((each) => !isSecret(each));
  const isContained = createContainedDirectories(run.root);
  const readable = await choose(
    tracked,
    async (each) => (await isContained(each)) && (await lstat(join(run.root, each))).isFile(),
  );
  const found: CountedFile[] = [];
  let searched = 0;
  let denied = false;
  // That many names fit on a command line.
  for (let at = 0; at < readable.length && !run.signal.aborted; at += 200) {
    const counts = await count(readable.slice(at, at + 200).map((each) => `./${each}`));
    found.push(...counts.files);
    searched += counts.searched ?? 0;
    denied ||= counts.denied;
  }
  const files = await choose(found, (file) => isTextFile(join(run.root, file.path), run.root));
  return { files, searched, denied, secrets };
}

async function listTrackedIgnored(run: Run, path: string): Promise<string[]> {
  const git = await startListing(run, ["--cached", "--ignored"], path);
  if (isFailure(git)) return [];
  const paths = new Set<string>();
  for await (const batch of splitRecords(git.output, "\0")) {
    for (const record of batch) paths.add(decodeName(record));
  }
  // A name that is not text cannot be an argument, and a line break would end a name in ripgrep's output.
  return [...paths].filter((each) => !isByteName(each) && !each.includes("\n"));
}

async function isTextFile(path: string, root: string): Promise<boolean> {
  const handle = await openRegular(path, root);
  try {
    return (await handle.stat()).isFile() && (await sampleEncoding(handle)) !== "binary";
  } finally {
    await handle.close();
  }
}

/** Skips what cannot be read: it is gone or not permitted. */
async function choose<Each>(all: readonly Each[], isChosen: (each: Each) => Promise<boolean>): Promise<Each[]> {
  const chosen: Each[] = [];
  for (let at = 0; at < all.length; at += 64) {
    const some = all.slice(at, at + 64);
    const answers = await Promise.all(some.map((each) => isChosen(each).catch(() => false)));
    chosen.push(...some.filter((_, index) => answers[index]));
  }
  return chosen;
}
