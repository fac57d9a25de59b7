/** The peers that can be had: the AI SDK is here for its middleware's tests, LangChain comes from npm. */
import { createRequire } from "node:module";
import { join } from "node:path";
import { installPackages, installProblem } from "../../install-packages.ts";
import { aiSdkPeer } from "./ai-sdk.ts";
import { clearToolUsesPeer, type LangChain, trimMessagesPeer } from "./langchain.ts";
import type { Peer } from "./peer.ts";

export interface Peers {
  readonly peers: readonly Peer[];
  /** Why one is missing. */
  readonly notes: readonly string[];
}

/** Looked up 2026-11-15. */
const versions = { langchain: "1.5.14", core: "1.2.13" } as const;

/** Without a folder nothing is installed. */
export async function loadPeers(folder: string | undefined): Promise<Peers> {
  const peers = [await loadAiSdk()];
  if (folder === undefined) return { peers, notes: ["LangChain is left out: it would have to be installed"] };
  try {
    const langChain = loadLangChain(folder);
    peers.push(trimMessagesPeer(versions.core, langChain), clearToolUsesPeer(versions.langchain, langChain));
    return { peers, notes: [] };
  } catch (error) {
    return { peers, notes: [`LangChain is left out: ${installProblem(error)}`] };
  }
}

async function loadAiSdk(): Promise<Peer> {
  const { pruneMessages } = await import("ai");
  const { version } = createRequire(import.meta.url)("ai/package.json") as { version: string };
  return aiSdkPeer(version, pruneMessages);
}

function loadLangChain(folder: string): LangChain {
  installPackages(folder, [`langchain@${versions.langchain}`, `@langchain/core@${versions.core}`]);
  const load = createRequire(join(folder, "package.json"));
  return { ...load("@langchain/core/messages"), ...load("langchain") } as LangChain;
}
