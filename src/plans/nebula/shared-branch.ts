/** The branch of a nebula that several machines merge into. A push succeeds only if the remote's branch is still at the
 *  commit that this machine merged into. So the remote decides who is first. */
import { setTimeout as sleep } from "node:timers/promises";
import { ContextError } from "../../core/errors.ts";
import { oneLine } from "../../core/text/index.ts";
import type { GitRemote } from "./git-remote.ts";
import type { Phase } from "./nebula.ts";
import type { LostAttempt } from "./nebula-record.ts";
import type { Git } from "./open-git.ts";

export interface SharedBranch {
  /** Returns the commit of the branch on the remote, and creates the branch if it is new. */
  start(): Promise<string>;
  /** Fetches the branch and checks it out. Returns its commit. */
  update(): Promise<string>;
  /** Pushes the phase's own branch, merges the commit and pushes the result. Returns a sentence if that is not
   *  possible. */
  merge(phase: Phase, work: SharedWork): Promise<string | undefined>;
  /** Makes sure that a lost attempt can no longer be merged. Returns whether it was merged before. */
  takeOver(phase: Phase, lost: LostAttempt): Promise<boolean>;
}

/** The work of one attempt. */
export interface SharedWork {
  readonly commit: string;
  /** The name of the attempt, which the merge has in its message. */
  readonly attempt: string;
  /** Whether the phase still belongs to this run. */
  isOurs(): Promise<boolean>;
}

export interface Sharing {
  readonly remote: GitRemote;
  /** Whether another machine has started the run, and with it the branch. */
  readonly joins: boolean;
}

export interface SharedBranchOptions extends Sharing {
  readonly resume: boolean;
  readonly branch: string;
  branchOf(phase: Phase): string;
  /** Git in the repository. */
  readonly git: Git;
  /** Git where the branch is checked out. */
  readonly merged: Git;
}

export function openSharedBranch(options: SharedBranchOptions): SharedBranch {
  const { remote, branch, branchOf, git, merged } = options;
  let last: string | undefined;
  const update = async () => {
    const tip = await remote.fetch(branch);
    if (tip === undefined) {
      throw new ContextError("write_failed", `the branch ${branch} is no longer on ${remote.name}`, {
        hint: "Push it again, or delete it here too and start without --resume.",
      });
    }
    await merged.run("checkout", "--quiet", "--force", "--detach", tip);
    // The branch here follows the one of the remote, unless a person has it checked out.
    if (tip !== last) await git.attempt("branch", "--force", "--no-track", branch, tip);
    last = tip;
    return tip;
  };
  /** Lets `change` commit on top of the remote's branch, and pushes that. If another machine has pushed meanwhile,
   *  starts again from its commit. `change` returns false to stop. */
  const publish = async (change: (tip: string) => Promise<boolean>) => {
    for (let tries = 1; ; tries++) {
      const tip = await update();
      if (!(await change(tip))) return;
      if (await remote.move(branch, { from: tip, to: (await merged.run("rev-parse", "HEAD")).trim() })) return;
      // Several machines may push at the same time.
      if (tries === 50) throw new Error("other machines were faster 50 times");
      await sleep(Math.random() * 100 * Math.min(tries, 10));
    }
  };
  return {
    start: () => startBranch(options),
    update,
    async merge(phase, { commit, attempt, isOurs }) {
      await remote.replace(branchOf(phase), commit);
      const { id, title } = phase;
      const message = `Merge phase ${id}: ${oneLine(title)}\n\nPlimsoll-Phase: ${id}\nPlimsoll-Attempt: ${attempt}`;
      let refusal: string | undefined;
      await publish(async (tip) => {
        if ((await merged.run("rev-list", "-1", commit, "--not", tip)).trim() === "") return false;
        const takenOver = "another machine has taken the phase over";
        refusal = (await isOurs()) ? await merged.merge(commit, message) : takenOver;
        return refusal === undefined;
      });
      return refusal;
    },
    async takeOver(phase, lost) {
      await publish(async () => {
        const message = `Take over phase ${phase.id} from ${oneLine(lost.machine)}\n\nPlimsoll-Phase: ${phase.id}`;
        await merged.run("commit", "--quiet", "--allow-empty", "--no-verify", "--no-gpg-sign", "-m", message);
        return true;
      });
      const grep = ["--fixed-strings", `--grep=Plimsoll-Attempt: ${lost.attempt}`];
      return (await merged.run("log", "-1", "--first-parent", "--format=%H", ...grep, "HEAD")).trim() !== "";
    },
  };
}

async function startBranch({ git, resume, remote, joins, branch }: SharedBranchOptions): Promise<string> {
  const local = await git.commitOf(`refs/heads/${branch}`);
  // The machine that starts a run has a minute to push its branch.
  const deadline = performance.now() + 60_000;
  let tip = await remote.fetch(branch);
  for (; tip === undefined && joins && performance.now() < deadline; tip = await remote.fetch(branch)) await sleep(500);
  if (tip === undefined && joins) {
    const problem = `${remote.name} has no branch ${branch}, which the other machine works on`;
    throw new ContextError("invalid_content", problem, { hint: "Use the same git remote on every machine." });
  }
  if (tip !== undefined && !joins && !resume) throw existsError(branch, remote.name);
  if (tip === undefined) {
    const first = local ?? (await git.run("rev-parse", "--verify", "HEAD")).trim();
    await remote.move(branch, { from: undefined, to: first });
    tip = (await remote.fetch(branch)) ?? first;
  }
  if (local === undefined || (await git.run("rev-list", "-1", local, "--not", tip)).trim() === "") return tip;
  throw new ContextError("invalid_content", `the branch ${branch} here has commits that ${remote.name} does not have`, {
    hint: `Push them with git push ${remote.name} ${branch}, or delete the branch here with git branch -D ${branch}.`,
  });
}

export function existsError(branch: string, remote: string): ContextError {
  return new ContextError("invalid_content", `the branch ${branch} already exists on ${remote}`, {
    hint: `Use --resume to continue, or merge it and delete it with git push ${remote} --delete ${branch}.`,
  });
}
