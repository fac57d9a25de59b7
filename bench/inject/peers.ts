/** The other tools, installed into a temporary folder. What cannot be had is left out with a word. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { installPackages, installProblem } from "../install-packages.ts";

export interface Peer {
  readonly name: "ruler" | "rulesync";
  /** The Node that runs it. */
  readonly node: string;
  readonly script: string;
}

export interface Peers {
  readonly peers: readonly Peer[];
  /** Why one is missing. */
  readonly notes: readonly string[];
}

/** Looked up 2026-11-15. rulesync needs Node 22. */
const versions = { ruler: "0.3.44", rulesync: "17.0.0", node: "24" } as const;
const RULESYNC_NODE = 22;

export function installPeers(folder: string): Peers {
  const peers: Peer[] = [];
  const notes: string[] = [];
  for (const install of [installRuler, installRulesync]) {
    const name = install === installRuler ? "ruler" : "rulesync";
    try {
      const peer = install(join(folder, name));
      execFileSync(peer.node, [peer.script, "--version"], { stdio: "ignore" });
      peers.push(peer);
    } catch (error) {
      notes.push(`${name} is left out: ${installProblem(error)}`);
    }
  }
  return { peers, notes };
}

function installRuler(folder: string): Peer {
  const home = installPackages(folder, [`@intellectronica/ruler@${versions.ruler}`]);
  return { name: "ruler", node: process.execPath, script: scriptOf(join(home, "@intellectronica/ruler")) };
}

function installRulesync(folder: string): Peer {
  const isNewEnough = Number(process.versions.node.split(".")[0]) >= RULESYNC_NODE;
  const newer = `node-${process.platform}-${process.arch}`;
  const packages = [`rulesync@${versions.rulesync}`, ...(isNewEnough ? [] : [`${newer}@${versions.node}`])];
  const home = installPackages(folder, packages);
  const node = isNewEnough ? process.execPath : join(home, newer, "bin/node");
  return { name: "rulesync", node, script: scriptOf(join(home, "rulesync")) };
}

/** The file behind a package's only command. */
function scriptOf(home: string): string {
  const { bin } = JSON.parse(readFileSync(join(home, "package.json"), "utf8"));
  return join(home, Object.values<string>(bin)[0]!);
}
