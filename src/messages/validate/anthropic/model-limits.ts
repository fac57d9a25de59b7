/** What a model of Anthropic refuses although the API knows it. Told by its name alone: of one that is not known, nothing is. */
export type ModelLimit = "system-role" | "prefill" | "sampling" | "budget" | "disabled" | "forced-tool";

export function rejects(model: string | undefined, limit: ModelLimit): boolean {
  const known = model === undefined ? undefined : versionOf(model);
  if (known === undefined) return false;
  const { from, upTo } = limits[limit];
  const [first, last] = [from?.[known.line], upTo?.[known.line]];
  return (first !== undefined && known.version >= first) || (last !== undefined && known.version <= last);
}

type Line = "opus" | "sonnet" | "haiku" | "fable" | "mythos";
type ByLine = Partial<Readonly<Record<Line, number>>>;

// Versions as major × 100 + minor. From the platform's migration guides, "What's new" pages and "Mid-conversation system messages", 2026-11-15.
const limits: Readonly<Record<ModelLimit, { from?: ByLine; upTo?: ByLine }>> = {
  "system-role": { upTo: { opus: 407, sonnet: 500, haiku: 405 } },
  prefill: { from: { opus: 406, sonnet: 406, haiku: 505, fable: 500, mythos: 500 } },
  sampling: { from: { opus: 407, sonnet: 500, haiku: 505, fable: 500, mythos: 500 } },
  budget: { from: { opus: 407, sonnet: 500, haiku: 505, fable: 500, mythos: 500 } },
  disabled: { from: { opus: 505, sonnet: 505, fable: 500, mythos: 500 } },
  "forced-tool": { from: { opus: 505, sonnet: 505, fable: 501, mythos: 501 } },
};

/** `claude-opus-4-8`, `claude-3-5-sonnet-20241022`, `anthropic.claude-sonnet-5`; a date is no minor version. */
function versionOf(model: string): { line: Line; version: number } | undefined {
  const id = model.toLowerCase();
  const line = /opus|sonnet|haiku|fable|mythos/.exec(id)?.[0] as Line | undefined;
  const version = /claude-(?:[a-z]+-)*(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)/.exec(id);
  if (line === undefined || version === null) return undefined;
  return { line, version: Number(version[1]) * 100 + Number(version[2] ?? 0) };
}
