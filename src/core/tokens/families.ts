/** The tokenizer of a model, by the model's id. */
import { normaliseModel } from "./model-name.ts";

export const families = ["o200k", "cl100k", "claude-3", "claude-5"] as const;
export type Family = (typeof families)[number];

/** Returns the family of a model, or `undefined` if no rule knows it. Ignores prefixes and suffixes of resellers
 *  (`us.anthropic.`, `openai/`, `@20250514`, `-v1:0`). */
export function familyOfModel(model: string): Family | undefined {
  const id = normaliseModel(model);
  if (id.startsWith("claude")) {
    // Anthropic's token-counting page names Opus 4.7 and later, Sonnet 5, Haiku 5.5, Fable 5 and Mythos 5 as users
    // of the newer tokenizer (2026-11). A Claude without a version counts as new, because its counts are higher.
    // `claude-opus-4.6`, `claude-2.1`, `claude-v2`.
    const version = /^claude-(?:[a-z]+-)*v?(\d{1,2})(?:\.(\d{1,2}))?(?!\d)/.exec(id);
    if (version === null) return "claude-5";
    const [major, minor] = [Number(version[1]), Number(version[2] ?? 0)];
    return major > 4 || (major === 4 && minor >= 7) ? "claude-5" : "claude-3";
  }
  return openaiPatterns.find(([pattern]) => pattern.test(id))?.[1];
}

// The first match wins. From the model table of tiktoken (2026-11). Older OpenAI models (p50k, r50k) have no counter
// here.
const openaiPatterns: readonly (readonly [RegExp, Family])[] = [
  [/gpt-3\.?5|gpt-4(?![o.\d])|text-embedding-(?:3|ada-002)|(?<!text-|code-)(?:davinci|babbage)-002/, "cl100k"],
  [/gpt-(?:4o|4\.\d|[5-9]|\d\d|oss|audio|realtime)|^(?:gpt-)?chat-latest|codex|^o[1-9](?![a-z\d])/, "o200k"],
];
