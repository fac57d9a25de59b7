/** What kinds of session look like, in numbers taken from aggregates of recorded sessions: which share of the tokens is what, how
 *  large results are, how often calls are parallel or fail. Sizes are in tokens. */
import type { ProjectSizes } from "./content/project.ts";
import type { Size } from "./content/random.ts";
import type { ToolName } from "./content/tools.ts";

export interface Profile {
  readonly model: string;
  /** 0: the session was recorded without its system prompt. */
  readonly systemTokens: number;
  readonly tools: readonly ToolShare[];
  readonly project: ProjectSizes;
  /** `signed`: readable with a signature; `sealed`: only the provider can read it. */
  readonly thinking: { readonly kind: "signed" | "sealed"; readonly share: number; readonly size: Size };
  /** Text before calls. */
  readonly remark: { readonly share: number; readonly size: Size };
  /** The text that ends an exchange with the person, and how many turns that takes. */
  readonly answer: Size;
  readonly turnsPerPrompt: number;
  readonly firstPrompt: Size;
  readonly prompt: Size;
  /** Share of turns with several calls, and how many at most. */
  readonly parallel: { readonly share: number; readonly most: number };
  readonly errorShare: number;
}

export interface ToolShare {
  readonly name: ToolName;
  readonly weight: number;
  readonly size: Size;
}

export type ProfileName = "coding" | "search" | "chat";

export const profiles: Readonly<Record<ProfileName, Profile>> = {
  // Recorded coding agents with files, edits and signed thinking: 11 sessions, 1.6 M tokens (2025-11 to 2026-02).
  coding: {
    model: "claude-opus-4-5",
    systemTokens: 0,
    tools: [
      { name: "read_file", weight: 31, size: size(1, 0, 1) },
      { name: "run_command", weight: 24, size: size(100, 1.55, 9_000) },
      { name: "edit_file", weight: 24, size: size(105, 0.9, 2_000) },
      { name: "search_files", weight: 15, size: size(250, 1.35, 12_000) },
      { name: "delegate", weight: 1.5, size: size(1_100, 0.6, 5_000) },
      { name: "write_file", weight: 1.2, size: size(1_600, 0.8, 8_000) },
      { name: "fetch_page", weight: 0.3, size: size(4_500, 0.7, 20_000) },
    ],
    project: { rereadShare: 0.68, file: size(1_000, 1.4, 21_000), lines: size(66, 1, 600) },
    thinking: { kind: "signed", share: 0.8, size: size(75, 0.8, 2_500) },
    remark: { share: 0.35, size: size(25, 0.6, 300) },
    answer: size(210, 0.7, 1_500),
    turnsPerPrompt: 18,
    firstPrompt: size(500, 1, 6_000),
    prompt: size(120, 1.6, 5_000),
    parallel: { share: 0.055, most: 4 },
    errorShare: 0.035,
  },
  // Recorded agents that look at a tree by commands alone: 3 sessions, 445 k tokens (2026-02).
  search: {
    model: "gpt-5-codex",
    systemTokens: 10_000,
    tools: [
      { name: "run_command", weight: 60, size: size(110, 1.95, 11_000) },
      { name: "read_file", weight: 25, size: size(1, 0, 1) },
      { name: "search_files", weight: 18, size: size(300, 1.6, 10_000) },
      { name: "edit_file", weight: 16, size: size(105, 0.9, 2_000) },
    ],
    project: { rereadShare: 0.45, file: size(1_500, 0.85, 14_000), lines: size(140, 0.7, 400) },
    thinking: { kind: "sealed", share: 0.6, size: size(150, 0.6, 600) },
    remark: { share: 0.5, size: size(40, 0.6, 300) },
    answer: size(300, 0.6, 1_500),
    turnsPerPrompt: 30,
    firstPrompt: size(900, 0.6, 4_000),
    prompt: size(120, 1, 2_000),
    parallel: { share: 0.11, most: 5 },
    errorShare: 0.02,
  },
  // Recorded assistants that talk to a person and look records up: short sessions, small results (2024 to 2025).
  chat: {
    model: "gpt-4o",
    systemTokens: 1_250,
    tools: [{ name: "look_up", weight: 1, size: size(195, 0.92, 1_000) }],
    project: { rereadShare: 0, file: size(1, 0, 1), lines: size(1, 0, 1) },
    thinking: { kind: "signed", share: 0, size: size(1, 0, 1) },
    remark: { share: 0.1, size: size(30, 0.5, 200) },
    answer: size(85, 0.6, 500),
    turnsPerPrompt: 4,
    firstPrompt: size(40, 0.6, 300),
    prompt: size(15, 0.7, 200),
    parallel: { share: 0, most: 1 },
    errorShare: 0.02,
  },
};

function size(median: number, spread: number, most: number): Size {
  return { median, spread, most };
}
