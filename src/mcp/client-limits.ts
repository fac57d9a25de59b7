import type { PageLimit } from "../session/index.ts";

/** What each client keeps of one result before it cuts by itself, keyed by the beginning of the name that it gives at initialize.
 *  Seen in runs of these versions, 2026-11; each with a little room for what the client writes around the result. */
const clientLimits: readonly (readonly [name: string, limit: PageLimit])[] = [
  // Codex 0.166 kept 11,984 characters and cut out the middle.
  ["codex", { characters: 11_500 }],
  // gemini-cli 0.61 kept the first 8,000 and the last 32,000 characters.
  ["gemini-cli", { characters: 39_000 }],
  // opencode 1.18 kept the first 50 KB.
  ["opencode", { characters: 48_000 }],
  // Claude Code 2.1 moves what is above 25,000 tokens, or about 50,000 characters, into a file.
  ["claude-code", { tokens: 24_000, characters: 48_000 }],
];

/** Nothing is lowered for a client that is not known. */
export function limitOfClient(name: string | undefined): PageLimit {
  const given = name?.toLowerCase().replaceAll(/[\s_]+/g, "-") ?? "";
  return clientLimits.find(([start]) => given.startsWith(start))?.[1] ?? {};
}
