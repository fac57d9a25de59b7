import { findModelRow, isClaude } from "../tokens/index.ts";

/** Whether a model ties each thinking block to everything before it. If that changes, the API refuses the block or drops
 *  it. A Claude that no table knows is newer than the table, so it binds: a request that keeps its prefix is valid for
 *  every model. */
export function bindsThinking(model: string | undefined): boolean {
  if (model === undefined || !isClaude(model)) return false;
  return findModelRow(model, claudeModels)?.binds ?? true;
}

interface ThinkingRow {
  readonly model: string;
  readonly binds: boolean;
}

const rows = (binds: boolean, models: readonly string[]): readonly ThinkingRow[] =>
  models.map((model) => ({ model, binds }));

export const claudeModels: readonly ThinkingRow[] = [
  // platform.claude.com/docs/en/build-with-claude/preserved-thinking/prefix-checks, 2026-11: these seven.
  ...rows(true, ["claude-fable-5.1", "claude-mythos-5.1", "claude-opus-5.5", "claude-sonnet-5.5", "claude-haiku-5.5"]),
  // platform.claude.com/docs/en/models/fable-5-2/whats-new-fable-5-2, 2026-11
  ...rows(true, ["claude-fable-5.2", "claude-mythos-5.2"]),
  // platform.claude.com/docs/en/build-with-claude, preserved thinking, 2026-10: older models check nothing.
  ...rows(false, ["claude-opus-5", "claude-sonnet-5", "claude-fable-5", "claude-mythos-5", "claude-mythos-preview"]),
  ...rows(false, ["claude-opus-4", "claude-opus-4.1", "claude-opus-4.5", "claude-opus-4.6", "claude-opus-4.7"]),
  ...rows(false, ["claude-opus-4.8", "claude-sonnet-4", "claude-sonnet-4.5", "claude-sonnet-4.6", "claude-haiku-4.5"]),
  ...rows(false, ["claude-opus-3", "claude-sonnet-3", "claude-sonnet-3.5", "claude-sonnet-3.7"]),
  ...rows(false, ["claude-haiku-3", "claude-haiku-3.5"]),
  // These have no thinking.
  ...rows(false, ["claude-2", "claude-2.0", "claude-2.1", "claude-v1", "claude-v2", "claude-instant"]),
];
