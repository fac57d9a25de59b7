import type { InputTokens } from "../input-cost.ts";
import type { Ttl } from "./cache-rules.ts";
import type { PrefixChain } from "./prefix-chain.ts";

/** A provider's cache over time. */
export interface PromptCache {
  /** What a request reads and writes; what it writes is there for those that follow. */
  take(call: CacheCall): CacheTake;
}

export interface CacheCall {
  readonly chain: PrefixChain;
  readonly breakpoints: readonly Breakpoint[];
  readonly startMs: number;
  /** When the answer began: from then on others can read what this request wrote. */
  readonly firstByteMs: number;
}

/** A marker after a block. */
export interface Breakpoint {
  /** The index of the block. */
  readonly after: number;
  readonly ttl: Ttl;
}

export interface CacheTake extends InputTokens {
  /** Less was read than the request before had left there: the history was rewritten, or the marker was out of reach. */
  readonly isBreak: boolean;
}
