import { describe, expect, it } from "vitest";
import { bindsThinking } from "./bound-prefix.ts";

const bound = ["fable-5-1", "mythos-5-1", "fable-5-2", "mythos-5-2", "opus-5-5", "sonnet-5-5", "haiku-5-5"];
const older = [
  ...["opus-5", "sonnet-5", "fable-5", "mythos-5", "mythos-preview"],
  ...["opus-4", "opus-4-0", "opus-4-1", "opus-4-5", "opus-4-6", "opus-4-7", "opus-4-8"],
  ...["sonnet-4", "sonnet-4-5", "sonnet-4-6", "haiku-4-5"],
  ...["3-opus", "3-sonnet", "3-haiku", "3-5-sonnet", "3-5-haiku", "3-7-sonnet"],
];

/** The same model as other services name it. */
const spellings = (name: string): readonly string[] => [
  `claude-${name}`,
  `Claude-${name.replace(/(\d)-(\d)/, "$1.$2")}`,
  `claude-${name}-20260922`,
  `claude-${name}[1m]`,
  `claude-${name}@20260922`,
  `anthropic.claude-${name}-20260922-v1:0`,
  `us.anthropic.claude-${name}-v1:0`,
  `arn:aws:bedrock:us-east-1:123456789012:inference-profile/global.anthropic.claude-${name}-v1:0`,
  `publishers/anthropic/models/claude-${name}@20260922`,
  `anthropic/claude-${name.replace(/(\d)-(\d)/, "$1.$2")}`,
  `openrouter/anthropic/claude-${name.replace(/(\d)-(\d)/, "$1.$2")}:beta`,
];

describe("bindsThinking", () => {
  it.each(bound.flatMap(spellings))("is true for %s", (model) => {
    expect(bindsThinking(model)).toBe(true);
  });

  it.each(older.flatMap(spellings))("is false for the older %s", (model) => {
    expect(bindsThinking(model)).toBe(false);
  });

  it.each(["claude-2.1", "anthropic.claude-v2:1", "claude-instant-1.2", "anthropic.claude-instant-v1"])(
    "is false for %s, which does not think",
    (model) => expect(bindsThinking(model)).toBe(false),
  );

  it.each([
    "claude-opus-6",
    "claude-haiku-5",
    "claude-opus-4-9",
    "claude-saga-1",
    "claude",
    "opus",
    "claude-next@default",
  ])("is true for %s, a Claude that is not in the table", (model) => expect(bindsThinking(model)).toBe(true));

  it.each(["gpt-6.1-sol", "openai/o3", "gemini-4-argon", "x-ai/grok-4.7", "deployment-7", "", undefined])(
    "is false for %s, which is not a Claude",
    (model) => expect(bindsThinking(model)).toBe(false),
  );
});
