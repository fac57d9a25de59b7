/** Model names, as each service writes them. */

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
