import type { PageLimit } from "../session/index.ts";

/** What each client keeps of one result before it cuts it, in the client's own unit, keyed by the beginning of the name that it gives at
 *  initialize. Seen in runs of these versions, 2026-11. Each limit leaves some room for what the client writes around the result. */
const clientLimits: readonly (readonly [name: string, limit: PageLimit])[] = [
  // Codex 0.166 kept 12,000 bytes of UTF-8, its own "Wall time: … Output:" included, and cut out the middle. It showed a text as it is,
  // and structured content as JSON.
  ["codex", { bytes: 11_500 }],
  // gemini-cli 0.61 kept the first 8,000 and the last 32,000 characters.
  ["gemini-cli", { characters: 39_000 }],
  // opencode 1.18 kept 51,200 bytes of UTF-8 and 2,000 lines, blocks joined by an empty line. Of a longer single line it showed nothing.
  ["opencode", { bytes: 48_000, lines: 1_900 }],
  // Claude Code 2.1 moves what is above 25,000 tokens, or about 50,000 characters, into a file.
  ["claude-code", { tokens: 24_000, characters: 48_000 }],
];

/** Nothing is lowered for a client that is not known. */
export function limitOfClient(name: string | undefined): PageLimit {
  const given = name?.toLowerCase().replaceAll(/[\s_]+/g, "-") ?? "";
  return clientLimits.find(([start]) => given.startsWith(start))?.[1] ?? {};
}
