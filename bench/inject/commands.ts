/** The command lines that are compared: ours and the peers', for the same four AI tools. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Peer } from "./peers.ts";
import { type Kind, writeProject } from "./projects.ts";

export interface BenchCommand {
  readonly name: string;
  readonly node: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** Puts the project into the state that the command starts from; not timed. */
  prepare?(): void;
  /** A file that must be there afterwards, or the run measured a failure. */
  readonly leaves?: string;
}

const tools = {
  plimsoll: "claude-code,agents-md,cursor,github-copilot",
  ruler: "claude,codex,cursor,copilot",
  rulesync: "claudecode,codexcli,cursor,copilot",
} as const;

export interface CommandOptions {
  readonly folder: string;
  /** The built command. */
  readonly main: string;
  readonly peers: readonly Peer[];
}

export function benchCommands({ folder, main, peers }: CommandOptions): BenchCommand[] {
  const node = process.execPath;
  const inject = [main, "inject", "--quiet", "--tool", tools.plimsoll];
  const commands: BenchCommand[] = [
    { name: "node -e 0", node, args: ["-e", "0"], cwd: folder },
    { name: "plimsoll --version", node, args: [main, "--version"], cwd: folder },
    ...applying("plimsoll inject, embedded packs", { folder, kind: "empty", node, args: inject }),
    ...applying("plimsoll inject, own packs", { folder, kind: "plimsoll", node, args: inject }),
  ];
  for (const { name, node: runtime, script } of peers) {
    if (runtime !== node) commands.push({ name: noOpOf(name), node: runtime, args: ["-e", "0"], cwd: folder });
    commands.push({ name: `${name} --version`, node: runtime, args: [script, "--version"], cwd: folder });
    const args =
      name === "ruler"
        ? [script, "apply", "--local-only", "--agents", tools.ruler]
        : [script, "generate", "--features", "rules", "--targets", tools.rulesync];
    const title = name === "ruler" ? "ruler apply" : "rulesync generate";
    commands.push(...applying(title, { folder, kind: name, node: runtime, args }));
  }
  return commands;
}

/** The no-op that a tool under another Node is compared with. */
function noOpOf(peer: Peer["name"]): string {
  return `node -e 0 (${peer}'s Node)`;
}

interface Applied {
  readonly folder: string;
  readonly kind: Kind;
  readonly node: string;
  readonly args: readonly string[];
}

/** A dry run, the first real run, and a second one that finds everything done. */
function applying(title: string, { folder, kind, node, args }: Applied): BenchCommand[] {
  const cwd = join(folder, `project-${kind}`);
  const leaves = join(cwd, "CLAUDE.md");
  const fresh = () => writeProject(cwd, kind);
  return [
    { name: `${title}, dry run`, node, args: [...args, "--dry-run"], cwd, prepare: fresh },
    { name: `${title}, first`, node, args, cwd, prepare: fresh, leaves },
    { name: `${title}, second`, node, args, cwd, prepare: () => mustExist(leaves), leaves },
  ];
}

/** The first run comes right before the second in every round. */
function mustExist(path: string): void {
  if (!existsSync(path)) throw new Error(`${path} is missing: the run before did not write it`);
}
