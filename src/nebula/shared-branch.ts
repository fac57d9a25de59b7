/** The branch of a nebula that several machines merge into. The remote decides who is first: a push moves the branch only
 *  from the commit that the machine has merged into. */
import { setTimeout as sleep } from "node:timers/promises";
import { ContextError } from "../errors.ts";
import { oneLine } from "../text/index.ts";
import type { GitRemote } from "../workspace/index.ts";
import type { Phase } from "./nebula.ts";
import type { LostAttempt } from "./nebula-record.ts";

export interface SharedBranch {
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

export interface SharedBranchOptions {
  readonly remote: GitRemote;
  readonly branch: string;
  branchOf(phase: Phase): string;
  /** Runs git where the branch is checked out. */
  git(...args: string[]): Promise<string>;
  /** Learns where the branch of the remote is. */
  onTip(tip: string): Promise<unknown>;
  /** Merges what is checked out with a commit. Returns why it cannot. */
  mergeCommit(commit: string, message: string): Promise<string | undefined>;
}

/** Several machines may push at the same time. */
const mostTries = 50;

export function openSharedBranch(options: SharedBranchOptions): SharedBranch {
  const { remote, branch, branchOf, git, mergeCommit, onTip } = options;
  let last: string | undefined;
  const update = async () => {
    const tip = await remote.fetch(branch);
    if (tip === undefined) {
      throw new ContextError("write_failed", `the branch ${branch} is no longer on ${remote.name}`, {
        hint: "Push it again, or delete it here too and start without --resume.",
      });
    }
    await git("checkout", "--quiet", "--force", "--detach", tip);
    if (tip !== last) await onTip(tip);
    last = tip;
    return tip;
  };
  /** Pushes what `change` commits, until nobody else pushes in between. `change` returns false to stop. */
  const publish = async (change: (tip: string) => Promise<boolean>) => {
    for (let tries = 1; ; tries++) {
      const tip = await update();
      if (!(await change(tip))) return;
      if (await remote.move(branch, { from: tip, to: (await git("rev-parse", "HEAD")).trim() })) return;
      if (tries === mostTries) throw new Error(`other machines were faster ${mostTries} times`);
      await sleep(Math.random() * 100 * Math.min(tries, 10));
    }
  };
  return {
    update,
    async merge(phase, { commit, attempt, isOurs }) {
      await remote.replace(branchOf(phase), commit);
      let refusal: string | undefined;
      await publish(async (tip) => {
        if ((await git("rev-list", "-1", commit, "--not", tip)).trim() === "") return false;
        refusal = (await isOurs()) ? await mergeCommit(commit, mergeMessage(phase, attempt)) : takenOver;
        return refusal === undefined;
      });
      return refusal;
    },
    async takeOver(phase, lost) {
      await publish(async () => {
        const message = `Take over phase ${phase.id} from ${oneLine(lost.machine)}\n\nPlimsoll-Phase: ${phase.id}`;
        await git("commit", "--quiet", "--allow-empty", "--no-verify", "--no-gpg-sign", "-m", message);
        return true;
      });
      const grep = ["--fixed-strings", `--grep=${attemptTrailer(lost.attempt)}`];
      return (await git("log", "-1", "--first-parent", "--format=%H", ...grep, "HEAD")).trim() !== "";
    },
  };
}

const takenOver = "another machine has taken the phase over";

function mergeMessage({ id, title }: Phase, attempt: string): string {
  return `Merge phase ${id}: ${oneLine(title)}\n\nPlimsoll-Phase: ${id}\n${attemptTrailer(attempt)}`;
}

function attemptTrailer(attempt: string): string {
  return `Plimsoll-Attempt: ${attempt}`;
}
