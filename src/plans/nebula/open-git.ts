/** Runs git for phases. Runs no hook, filter or merge driver: an agent may have changed the repository's settings. */
import { setTimeout as sleep } from "node:timers/promises";
import { ContextError } from "../../core/errors.ts";
import { countNoun, oneLine, printable } from "../../core/text/index.ts";
import { changeGit, decodeBytes, type Environment, readGit, splitRecords } from "../../host/index.ts";
import type { FinishedWork } from "./application.ts";
import type { Phase } from "./nebula.ts";

/** Git in one folder. */
export interface Git {
  /** Returns what git printed. Throws if it failed. */
  run(...args: readonly string[]): Promise<string>;
  /** Returns how git ended. */
  attempt(...args: readonly string[]): Promise<GitEnd>;
  commitOf(revision: string): Promise<string | undefined>;
  /** Commits everything that changed, with the id of the phase. */
  commitAll(phase: Phase): Promise<void>;
  /** Merges a commit into what is checked out. Returns why that is not possible. */
  merge(commit: string, message: string): Promise<string | undefined>;
  /** Throws if tracked files have changes that are not committed. */
  refuseDirty(): Promise<void>;
}

interface GitEnd {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The folder need not exist yet. */
export function openGit(root: string, env: Environment): Git {
  const attempt = async (...args: readonly string[]): Promise<GitEnd> => {
    const result = await changeGit({ root, env, signal: new AbortController().signal }, args);
    if (!("refused" in result)) return result;
    throw new ContextError("invalid_content", `git cannot be used: ${result.reason}`, { file: root });
  };
  const run = async (...args: readonly string[]): Promise<string> => {
    let { code, stdout, stderr } = await attempt(...args);
    // A git of a killed run, or of another agent, may still be at work.
    for (let tries = 0; code !== 0 && /\.lock'?: File exists/.test(stderr) && tries < 30; tries++) {
      await sleep(100);
      ({ code, stdout, stderr } = await attempt(...args));
    }
    if (code === 0) return stdout;
    const lock = /'([^']+\.lock)'?: File exists/.exec(stderr)?.[1];
    // In the message and not a hint, because it becomes the reason of a failed phase.
    const reason =
      lock && `there is a lock, ${lock}. If no git process is at work there, delete the file and use --resume`;
    const message = `git ${args[0]} failed: ${reason ?? oneLine(stderr || stdout)}`;
    throw new ContextError("write_failed", message, { file: root });
  };
  return {
    run,
    attempt,
    async commitOf(revision) {
      const { code, stdout } = await attempt("rev-parse", "--verify", "--quiet", revision);
      return code === 0 ? stdout.trim() : undefined;
    },
    async commitAll({ id, title }) {
      await run("add", "--all");
      if ((await attempt("diff", "--cached", "--quiet")).code === 0) return;
      const message = `${id}: ${oneLine(title)}\n\nPlimsoll-Phase: ${id}`;
      await run("commit", "--quiet", "--no-verify", "--no-gpg-sign", "-m", message);
    },
    async merge(commit, message) {
      const { code, stderr, stdout } = await attempt("merge", "--no-ff", "-m", message, commit);
      if (code === 0) return undefined;
      const names = (await attempt("diff", "--name-only", "--diff-filter=U", "-z")).stdout.split("\0");
      await attempt("merge", "--abort");
      const files = names.filter((each) => each !== "").join(", ");
      return files === "" ? oneLine(stderr || stdout) : `they conflict in ${files}`;
    },
    async refuseDirty() {
      const { stdout } = await attempt("status", "--porcelain", "--untracked-files=no", "-z");
      const names = stdout.split("\0").flatMap((record) => (record === "" ? [] : record.slice(3)));
      if (names.length === 0) return;
      const files = [...names.slice(0, 3), ...(names.length > 3 ? ["…"] : [])].join(", ");
      throw new ContextError("invalid_content", `the work tree has changes that are not committed: ${files}`, {
        hint: "Commit or stash them first, because agents work on commits.",
      });
    },
  };
}

/** Lines of a diff that a person is shown. */
const maxDiffLines = 400;

/** Returns what changed in a folder since a commit, and the names of new files. Empty outside of a repository. */
export async function diffWork(
  { folder, base = "HEAD" }: Omit<FinishedWork, "answer">,
  { env }: { readonly env: Environment },
): Promise<string> {
  const place = { root: folder, env, signal: AbortSignal.timeout(30_000) };
  const lines: string[] = [];
  const commands = [
    ["diff", base, "--", "."],
    ["ls-files", "--others", "--exclude-standard", "--", "."],
  ];
  for (const [index, args] of commands.entries()) {
    const git = await readGit(place, args);
    if ("refused" in git) return "";
    for await (const batch of splitRecords(git.output, "\n", "keep"))
      for (const line of batch) lines.push((index === 0 ? "" : "new file: ") + printable(decodeBytes(line)));
    await git.end;
  }
  const more = lines.length - maxDiffLines;
  const rest = more > 0 ? [`… and ${countNoun(more, "more line")}. See git -C ${printable(folder)} diff ${base}`] : [];
  return [...lines.slice(0, maxDiffLines), ...rest].join("\n");
}
