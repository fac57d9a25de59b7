/** Runs the built command under strace and reports what it did to the world: programs, files, connections. */
import { existsSync, readFileSync, realpathSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { type Run, type RunOptions, runProcess, type Sandbox } from "./run-plimsoll.ts";

export interface Trace extends Run {
  /** Programs that were started, by their path. */
  readonly programs: readonly string[];
  /** Files that were opened, by their real path where it still exists. */
  readonly opened: readonly string[];
  /** Network addresses that were connected to. */
  readonly connected: readonly string[];
}

/** Why nothing can be traced here; undefined where strace works. */
export async function whyNoTrace(): Promise<string | undefined> {
  try {
    const { code, stderr } = await runProcess(["strace", "-f", "-o", "/dev/null", "true"], {});
    return code === 0 ? undefined : `strace does not work here: ${stderr.trim()}`;
  } catch {
    return "strace is not installed";
  }
}

export async function runTraced(sandbox: Sandbox, args: readonly string[], options: RunOptions = {}): Promise<Trace> {
  const log = join(dirname(sandbox.home), `trace-${process.hrtime.bigint()}.txt`);
  // -y shows the folder of an open file, without which a relative path says nothing. -s: no path is cut. --seccomp-bpf: only the calls
  // that are traced stop the process.
  const wrapper = ["strace", "-f", "--seccomp-bpf", "-y", "-qq", "-s", "4096", "-e", `trace=${calls}`, "-o", log];
  const run = await sandbox.run(args, { ...options, wrapper });
  return { ...run, ...readTrace(readFileSync(log, "utf8"), options.cwd ?? sandbox.cwd) };
}

const calls = "execve,execveat,open,openat,openat2,connect,chdir,fchdir,clone,clone3,fork,vfork";

/** Programs may be started from, and files read in, these places whatever a repository contains: the system's and Node's own. */
const systemPlaces = [
  ...["/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc", "/proc", "/sys", "/dev", "/opt", "/var/lib"],
  dirname(dirname(realpathSync(process.execPath))),
];

export function isSystemPath(path: string): boolean {
  return systemPlaces.some((place) => isBelow(path, place));
}

export function isBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}

function readTrace(log: string, cwd: string): Pick<Trace, "programs" | "opened" | "connected"> {
  const seen = { programs: new Set<string>(), opened: new Set<string>(), connected: new Set<string>() };
  const places = new Map<string, string>();
  for (const line of joinResumed(log)) {
    const [, pid = "", call = "", rest = ""] = /^(\d+)\s+(\w+)\((.*)$/.exec(line) ?? [];
    const result = /\)\s+= (-?\d+)/.exec(rest)?.[1] ?? "-";
    const here = places.get(pid) ?? cwd;
    // A connection that was refused was tried all the same.
    if (call === "connect" && /AF_INET6?\b/.test(rest)) seen.connected.add(rest.slice(0, 200));
    else if (!result.startsWith("-")) noteCall({ call, rest, here, seen });
    const moved = placeAfter({ call, rest, here });
    if (!result.startsWith("-") && moved !== undefined) places.set(call.endsWith("chdir") ? pid : result, moved);
  }
  return { programs: [...seen.programs], opened: [...seen.opened], connected: [...seen.connected] };
}

interface TracedCall {
  readonly call: string;
  readonly rest: string;
  /** The working directory of the process. */
  readonly here: string;
}

type Seen = TracedCall & { readonly seen: Record<"programs" | "opened", Set<string>> };

function noteCall({ call, rest, here, seen }: Seen): void {
  if (call.startsWith("execve")) seen.programs.add(realPath(resolve(here, pathIn(rest))));
  if (call.startsWith("open")) seen.opened.add(realPath(/= \d+<([^>]*)>/.exec(rest)?.[1] ?? pathIn(rest)));
}

/** Where the process, or the one that it started, is after this call. */
function placeAfter({ call, rest, here }: TracedCall): string | undefined {
  if (call === "chdir") return resolve(here, pathIn(rest));
  if (call === "fchdir") return /<([^>]*)>/.exec(rest)?.[1];
  return /^(clone3?|v?fork)$/.test(call) ? here : undefined;
}

/** strace cuts a call in two when another process speaks in between. */
function joinResumed(log: string): string[] {
  const lines: string[] = [];
  const open = new Map<string, string>();
  for (const line of log.split("\n")) {
    const [, pid = "", rest = ""] = /^(\d+)\s+(.*)$/.exec(line) ?? [];
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/.exec(rest);
    if (rest.endsWith("<unfinished ...>")) open.set(pid, rest.slice(0, -"<unfinished ...>".length).trimEnd());
    else if (resumed !== null) lines.push(`${pid} ${open.get(pid) ?? ""}${resumed[1]}`);
    else lines.push(line);
  }
  return lines;
}

function pathIn(rest: string): string {
  const quoted = /"((?:[^"\\]|\\.)*)"/.exec(rest)?.[1] ?? "";
  return quoted.replace(/\\([0-7]{1,3})/g, (_, digits) => String.fromCharCode(Number.parseInt(digits, 8)));
}

function realPath(path: string): string {
  return existsSync(path) ? realpathSync(path) : path;
}
