import { expect, test } from "vitest";
import { limitOfClient } from "./client-limits.ts";

test.each([
  ["codex-mcp-client", 12_000],
  ["gemini-cli-mcp-client-plimsoll", 40_000],
  ["opencode", 50_000],
  ["claude-code", 50_000],
  ["Claude Code", 50_000],
])("%s gets pages that it shows whole", (name, characters) => {
  expect(limitOfClient(name).characters).toBeLessThan(characters);
});

test("a client that is not known gets the session's own pages", () => {
  for (const name of ["somebody", "my-codex", "", undefined]) expect(limitOfClient(name)).toEqual({});
});
