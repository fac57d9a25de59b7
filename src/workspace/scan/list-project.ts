/** The paths of a project as someone sees it who works there: what git tracks and is there, and what it would track. Where git cannot
 *  say, the same by a walk. */
import { relative, sep } from "node:path";
import type { ScanProblem } from "../../compose/index.ts";
import { listFiles } from "../files/list-files.ts";
import { decodeBytes, splitRecords } from "../processes/output-records.ts";
import { type GitRefusal, gitReason, readGit } from "../processes/read-git.ts";
import type { ScanOptions } from "./scan-project.ts";

export interface ProjectList {
  /** As in `ProjectScan`. */
  readonly paths: string[];
  readonly problems: ScanProblem[];
}

export async function listProject(root: string, options: ScanOptions): Promise<ProjectList> {
  const listed = await listByGit(root, options);
  if ("paths" in listed && listed.paths.length > 0) return { ...listed, problems: [] };
  // git lists nothing below a directory that it leaves out. This one was named on purpose.
  const walked = await listByWalk(root, options);
  const problems = "reason" in listed ? [{ path: ".", reason: listed.reason }] : [];
  return { paths: walked.paths, problems: [...problems, ...walked.problems] };
}

/** The letters of `-t` tell `?` not tracked, `S` not checked out, `R` tracked and not there. A person's global excludes are not read. */
const listing = [
  ...["ls-files", "-z", "-t", "--stage"],
  ...["--cached", "--others", "--deleted", "--exclude-standard", "--", "."],
];

type GitList = { readonly paths: string[] } | { readonly reason: string };

async function listByGit(
  root: string,
  { env = process.env, signal, onProgress }: ScanOptions,
): Promise<GitList> {
  const place = { root, env, signal: signal ?? new AbortController().signal };
  const git = await readGit(place, listing, ["core.excludesFile="]);
  if ("refused" in git) {
    signal?.throwIfAborted();
    return withoutGit(git);
  }
  const records: string[] = [];
  for await (const batch of splitRecords(git.output, "\0")) {
    for (const record of batch) records.push(record);
    onProgress?.(records.length);
  }
  const { code, stderr } = await git.end;
  signal?.throwIfAborted();
  if (code === 0) return { paths: pathsOf(records) };
  return { reason: `listed without git: ${gitReason(stderr).slice(0, 300)}` };
}

function withoutGit({ refused, reason }: GitRefusal): GitList {
  // A folder that is in no repository lacks nothing.
  if (refused === "no_repository") return { paths: [] };
  if (refused === "no_git") return { reason: "listed without git, which is not on PATH" };
  return { reason: `listed without git: ${reason.slice(0, 300)}` };
}

function pathsOf(records: readonly string[]): string[] {
  const removed = new Set(records.filter((record) => record.startsWith("R ")).map(nameIn));
  const paths: string[] = [];
  let last: string | undefined;
  for (const record of records) {
    const name = nameIn(record);
    // A file in conflict is listed once for each of its versions.
    if (name === last || !/^[^RS] /.test(record) || removed.has(name)) continue;
    last = name;
    // A submodule, as a folder of which no more is known. A repository that git does not know ends with a slash already.
    paths.push(record.startsWith("160000 ", 2) ? `${decodeBytes(name)}/` : decodeBytes(name));
  }
  return paths;
}

/** `H 100644 <hash> 0<tab>name` or `? name`. */
function nameIn(record: string): string {
  return record.startsWith("?") ? record.slice(2) : record.slice(record.indexOf("\t") + 1);
}

async function listByWalk(root: string, { signal, onProgress }: ScanOptions): Promise<ProjectList> {
  const { files, skipped } = await listFiles(root);
  signal?.throwIfAborted();
  const within = (path: string) => relative(root, path).split(sep).join("/");
  const closed = skipped.filter(({ kind }) => kind === "failed");
  const special = skipped.filter(({ kind }) => kind !== "failed");
  const paths = [...files, ...special.map(({ path }) => path)].map(within);
  onProgress?.(paths.length);
  return {
    paths: [...paths, ...closed.map(({ path }) => `${within(path)}/`)],
    problems: closed.map(({ path, reason }) => ({ path: within(path), reason })),
  };
}
