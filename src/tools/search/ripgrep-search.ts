/** Searches with ripgrep in two steps: one run counts the matches of every file on all cores, then the few files of the page are read.
 *  So totals are true and the order is fixed, which ripgrep itself gives only on one core. */
import type { FileHandle } from "node:fs/promises";
import type { ToolFailure, ToolResult } from "../../session/index.ts";
import { cutText, expandBraces, isSecretName, secretGlobs } from "../../text/index.ts";
import { loadProcesses, type ProcessEnd, type StartedProcess, splitRecords } from "../../workspace/index.ts";
import { failure } from "../frame/failure.ts";
import { lateWarning, type Run, startRun } from "../frame/run.ts";
import { byteNamesWarning, isByteName, nameOfBytes, shownName } from "../source/byte-names.ts";
import { secretWarning } from "../source/secret-paths.ts";
import { versionOfFiles } from "./files-version.ts";
import { deniedFilesWarning, type FileFilter, type Match, type SearchRequest } from "./match.ts";
import { type Counts, countPassedOver } from "./passed-over-files.ts";
import { type CountedFile, readMatches } from "./ripgrep-matches.ts";

export async function searchByRipgrep(
  program: string,
  request: SearchRequest,
  run: Run,
): Promise<ToolResult | ToolFailure> {
  const pattern = patternArguments(request);
  const { startProcess } = await loadProcesses();
  const start = (args: readonly string[], { root: cwd, env, signal }: Run, input?: number) =>
    startProcess(program, ["--no-config", ...args], { cwd, env, signal, input });
  // Time is left to show what was found until then.
  const count = startRun(run, { signal: run.signal, timeoutMs: run.timeoutMs * countingShare });
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
  const problem = problemOf(await counting.end);
  count.finish();
  if (problem !== undefined && files.length === 0) return problem;
  const wanted = files.filter(({ path }) => request.files.matches(path) && !request.isSecret(path));
  wanted.sort((a, b) => (a.path < b.path ? -1 : 1));
  const startOn = (args: readonly string[], on: readonly string[] | FileHandle) =>
    "fd" in on
      ? start([...args, ...pattern, "--", "-"], run, on.fd)
      : start([...args, ...pattern, "--", ...on], run);
  return describe(wanted, readMatches({ root: run.root, start: startOn }, wanted, request), {
    request,
    searched: searched && searched - listed.length,
    secrets,
    denied,
    isLate: () => count.timedOut() || run.timedOut(),
    version: await versionOfFiles(run.root, wanted),
    run,
  });
}

const countingShare = 0.7;

interface Found {
  readonly request: SearchRequest;
  readonly searched: number | undefined;
  /** Files that were not searched, as they usually hold secrets. */
  readonly secrets: readonly string[];
  readonly denied: boolean;
  isLate(): boolean;
  readonly version: string;
  readonly run: Run;
}

function describe(
  files: readonly CountedFile[],
  matches: AsyncIterable<Match>,
  { request: { offset, maxResults }, searched, secrets, denied, isLate, version, run }: Found,
): ToolResult {
  const byteNames = files.filter(({ path }) => isByteName(path)).length;
  const total = files.reduce((sum, { count }) => sum + count, 0);
  return {
    fields: { search_tool: "ripgrep", files_searched: searched, files_matched: files.length },
    itemsName: "matches",
    items: matches,
    offset,
    total: () => (isLate() ? undefined : total),
    more: () => isLate() || offset + maxResults < total,
    version,
    warnings: () => [
      ...(isLate() ? [lateWarning(run, "the search")] : []),
      ...(denied ? [deniedFilesWarning] : []),
      ...[secretWarning(secrets, "searched") ?? []].flat(),
      ...[byteNamesWarning(byteNames) ?? []].flat(),
    ],
  };
}

/** Hidden files are searched, as git would. What .gitignore files leave out is not, in a repository or without one; a person's own
 *  settings do not count, so that a tree gives the same on every machine. */
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

/** `-e` and `--` after it: neither a pattern nor a path is taken for an option. */
function patternArguments({ pattern, isRegex, caseSensitive }: SearchRequest): string[] {
  return [
    "--crlf",
    caseSensitive ? "--case-sensitive" : "--ignore-case",
    ...(isRegex ? [] : ["--fixed-strings"]),
    "-e",
    pattern,
  ];
}

/** A type of our own is quicker than looking at every file, and unlike `--glob` leaves .gitignore in force. It knows names only, and
 *  only plain globs mean the same there: our own glob has the last word. */
function typeArguments({ pattern }: FileFilter): string[] {
  const globs = pattern === undefined ? [] : (expandBraces(pattern) ?? []);
  if (globs.length === 0 || !globs.every((glob) => /^[\w.*-]+$/.test(glob))) return [];
  return [...globs.map((glob) => `--type-add=wanted:${glob}`), "--type=wanted"];
}

/** Going through a large tree once more takes time, and what it finds seldom changes. */
const secretsKnownMs = 30_000;

/** Files that are searched with the rest and that usually hold secrets: their matches are dropped, and they are named whether they have
 *  one or not, since a search must not tell what is in them. */
async function findSecrets(
  request: SearchRequest,
  { isSecret, signal }: Run,
  start: (args: readonly string[]) => StartedProcess,
): Promise<string[]> {
  const { path, files, knownSecrets } = request;
  const known = knownSecrets.get(path);
  const isKnown = known !== undefined && known.until > performance.now();
  // Rules of a person's own may be about folders, of which a type knows nothing.
  const types = isSecret === undefined || isSecret === isSecretName ? secretTypes : [];
  const paths = isKnown
    ? known.paths
    : await listSecrets(request, start(["--files", ...walkArguments, ...types]));
  if (!isKnown && !signal.aborted) {
    knownSecrets.clear();
    knownSecrets.set(path, { paths, until: performance.now() + secretsKnownMs });
  }
  return paths.filter((each) => files.matches(each)).map(shownName);
}

async function listSecrets(request: SearchRequest, { output }: StartedProcess): Promise<string[]> {
  const paths: string[] = [];
  for await (const batch of splitRecords(output, "\0")) {
    for (const record of batch) {
      const path = nameOfBytes(record).replace(/^(\.\/)+/, "");
      if (request.isSecret(path)) paths.push(path);
    }
  }
  return paths.sort();
}

/** A type tells capital letters from small ones. */
const secretTypes: readonly string[] = [
  ...secretGlobs.map((glob) => {
    const letters = glob.replace(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}]`);
    return `--type-add=secret:${letters}`;
  }),
  "--type=secret",
];

/** In a directory that git ignores and a call names, ripgrep finds the same files. */
function merge(found: Counts, passedOver: Counts): Counts {
  const known = new Set(found.files.map(({ path }) => path));
  const files = [...found.files, ...passedOver.files.filter(({ path }) => !known.has(path))];
  const searched = found.searched && found.searched + (passedOver.searched ?? 0);
  return { files, searched, denied: found.denied || passedOver.denied };
}

/** `PATH NUL COUNT LF`, again and again; at the end what `--stats` says. */
async function readCounts({ output, end: ending }: StartedProcess): Promise<Counts> {
  const files: CountedFile[] = [];
  let path: string | undefined;
  let rest = "";
  for await (const batch of splitRecords(output, "\0", "keep")) {
    for (const record of batch) {
      const end = path === undefined ? -1 : record.indexOf("\n");
      if (path !== undefined && end > 0) files.push({ path, count: Number(record.slice(0, end)) });
      rest = record.slice(end + 1);
      path = nameOfBytes(rest).replace(/^(\.\/)+/, "");
    }
  }
  const searched = /^(\d+) files? searched$/m.exec(rest)?.[1];
  const denied = isDeniedEnd(await ending);
  return { files, searched: searched === undefined ? undefined : Number(searched), denied };
}

/** 2 is a mistake in the call; files that could not be read give it too, without a word. */
function isDeniedEnd({ code, stderr }: ProcessEnd): boolean {
  return code === 2 && stderr.trim() === "";
}

function problemOf(end: ProcessEnd): ToolFailure | undefined {
  const { code, stderr } = end;
  if (code !== 2 || isDeniedEnd(end)) return undefined;
  const line = /^error: (.+)$/m.exec(stderr)?.[1] ?? stderr.replace(/^rg: /, "").split("\n")[0] ?? "";
  const told = cutText(line, 300).text;
  const hint = /look-around|backreference/.test(told)
    ? "Rewrite it without."
    : "Check the regular expression.";
  return /regex|literal/.test(stderr)
    ? failure("invalid_pattern", `The pattern cannot be searched for: ${told}.`, hint)
    : failure("search_failed", `ripgrep failed: ${told}`);
}
