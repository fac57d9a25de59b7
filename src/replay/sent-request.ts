import type { BillableBlock } from "../billing/index.ts";
import { type KindTokens, type MessageBlocks, noTokens, type SentKind, sentKinds } from "./message-blocks.ts";

/** What a call sends, kept from call to call: only messages that are other objects than before are looked at. */
export interface SentRequest {
  readonly blocks: readonly BillableBlock[];
  readonly tokens: KindTokens;
  /** Takes the messages of the next call. Gives how many at the beginning are the same objects as before. */
  update(messages: readonly object[]): number;
  /** The index of the last block of a message. */
  lastBlockOf(message: number): number;
}

export interface SentRequestOptions {
  readonly prefixTokens: number;
  readonly blocksOf: (message: object) => MessageBlocks;
}

export function createSentRequest({ prefixTokens, blocksOf }: SentRequestOptions): SentRequest {
  const blocks: BillableBlock[] = [{ key: "prefix", tokens: prefixTokens, kind: "prefix" }];
  const sent: object[] = [];
  /** For each message the number of blocks up to its end. */
  const ends: number[] = [];
  const tokens = { ...noTokens(), prefix: prefixTokens };
  return {
    blocks,
    tokens,
    update(messages) {
      const most = Math.min(sent.length, messages.length);
      let same = 0;
      while (same < most && sent[same] === messages[same]) same++;
      for (const message of sent.splice(same)) add(tokens, blocksOf(message).tokens, -1);
      ends.length = same;
      blocks.length = ends.at(-1) ?? 1;
      for (let index = same; index < messages.length; index++) {
        const message = messages[index] as object;
        const read = blocksOf(message);
        for (const block of read.blocks) blocks.push(block);
        add(tokens, read.tokens, 1);
        sent.push(message);
        ends.push(blocks.length);
      }
      return same;
    },
    lastBlockOf: (message) => (ends[message] as number) - 1,
  };
}

function add(sum: Record<SentKind, number>, tokens: KindTokens, factor: 1 | -1): void {
  for (const kind of sentKinds) sum[kind] += factor * tokens[kind];
}
