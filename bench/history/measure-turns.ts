/** What a turn costs, whatever the sessions: beside the peers, on long histories, and on histories that are parsed again. */
import type { Peer } from "./peers/peer.ts";
import { measurePeerTurns, type PeerTurns } from "./turns/measure-peers.ts";
import { measureReparsed, type Reparsed } from "./turns/measure-reparsed.ts";
import { measureScaling, type Scaling } from "./turns/measure-scaling.ts";

export interface TurnsReport {
  readonly peers: PeerTurns;
  readonly scaling: Scaling;
  readonly reparsed: readonly Reparsed[];
}

export async function measureTurns(peers: readonly Peer[], { isQuick }: { isQuick: boolean }): Promise<TurnsReport> {
  const rounds = isQuick ? 2 : 5;
  return {
    peers: await measurePeerTurns(peers, rounds),
    scaling: await measureScaling(rounds),
    reparsed: [await measureReparsed(400, rounds), await measureReparsed(5_000, rounds)],
  };
}
