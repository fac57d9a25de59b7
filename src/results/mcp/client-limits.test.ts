import { expect, test } from "vitest";
import { findClientLimit } from "./client-limits.ts";

test.each([
  ["codex-mcp-client", { bytes: 11_500 }],
  ["gemini-cli-mcp-client-plimsoll", { characters: 39_000 }],
  ["opencode", { bytes: 48_000, lines: 1_900 }],
  ["claude-code", { tokens: 24_000, characters: 48_000 }],
  ["Claude Code", { tokens: 24_000, characters: 48_000 }],
])("%s has a limit in its own unit", (name, limit) => {
  expect(findClientLimit(name)).toEqual(limit);
});

test("an unknown client gets the session's own pages", () => {
  for (const name of ["somebody", "my-codex", "", undefined]) expect(findClientLimit(name)).toEqual({});
});
