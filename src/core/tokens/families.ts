/** Model names, as each service writes them, and the tokenizer of a model. */

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

/** Returns the name under which the tables list a model, whoever serves it: without a region, a reseller, an ARN, a
 *  date, a revision or a variant. A Claude has its family first and a point in its version.
 *
 *  `us.anthropic.claude-3-5-haiku-20241022-v1:0` becomes `claude-haiku-3.5`. */
export function normaliseModel(model: string): string {
  // OpenRouter, "Model variants", 2026-11.
  const variant = /:(?:batch|beta|exacto|extended|floor|free|nitro|online|thinking)$/;
  // `ft:`, `anthropic:`, an ARN without a path, then Bedrock's regions and vendors: `us.anthropic.`,
  // `us-gov.anthropic.`.
  const reseller = /^(?:arn:.*:(?=[a-z])|[a-z_-]+:(?=[a-z]))?(?:(?!deepseek)[a-z]+(?:-[a-z]+)?\.(?=[a-z]))*/;
  // `[1m]`, Vertex's `@20260922`, Bedrock's `-v1:0`, the owner of a fine-tuned model, a date.
  const revision = /(?:\[\w*\]|@.*|(?<!claude|instant)-v\d+(?::.*)?|:.*|-20\d{6}|-20\d\d-\d\d-\d\d)+$/;
  // Claude Code's own names: `opus`, `sonnet[1m]`.
  const claudeFamily = /^(?:opus|sonnet|haiku|fable|mythos)(?:-\d|$)/;
  const id = model.toLowerCase().trim();
  const name = id
    .slice(id.lastIndexOf("/") + 1)
    .replace(variant, "")
    .replace(reseller, "")
    .replace(revision, "")
    .replace(/^.*?(?=claude|gemini|gpt)/, "");
  if (name.startsWith("claude")) return normaliseClaude(name);
  return claudeFamily.test(name) ? normaliseClaude(`claude-${name}`) : name;
}

/** Returns the row of the model, or of the models to which it belongs. The row `gpt-5` applies to `gpt-5-mini`, but
 *  neither to `gpt-5.6` nor to `gpt-50`. The longest match wins, and the row `""` matches every model. */
export function findModelRow<Row extends { readonly model: string }>(
  model: string,
  rows: readonly Row[],
): Row | undefined {
  const name = normaliseModel(model);
  let best: Row | undefined;
  for (const row of rows) {
    const isMatch = row.model === "" || (name.startsWith(row.model) && !/^[\w.]/.test(name.slice(row.model.length)));
    if (isMatch && row.model.length >= (best?.model.length ?? 0)) best = row;
  }
  return best;
}

/** Whether a model is one of Anthropic's. */
export function isClaude(model: string): boolean {
  return normaliseModel(model).startsWith("claude");
}

function normaliseClaude(name: string): string {
  return name
    .replace(/^claude-(\d)(?:[-.](\d{1,2}))?-([a-z]+)/, (_name, major, minor, family) =>
      minor === undefined ? `claude-${family}-${major}` : `claude-${family}-${major}.${minor}`,
    )
    .replace(/^(claude-[a-z]+-\d{1,2})-(\d{1,2})(?!\d)/, "$1.$2")
    .replace(/^(claude-[a-z]+-\d{1,2})(?:\.0(?!\d))/, "$1")
    .replace(/(?<=\d)-latest$/, "");
}
