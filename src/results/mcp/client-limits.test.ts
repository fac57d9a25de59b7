import { expect, test } from "vitest";
import { completeBudget, findClientLimit, findToolName } from "./client-limits.ts";

test.each([
  ["codex-mcp-client", { bytes: 11_500 }],
  ["gemini-cli-mcp-client-plimsoll", { characters: 39_000 }],
  ["opencode", { bytes: 48_000, lines: 1_900 }],
  ["claude-code", { tokens: 20_000, characters: 48_000 }],
  ["Claude Code", { tokens: 20_000, characters: 48_000 }],
])("%s has a limit in its own unit", (name, limit) => {
  expect(findClientLimit(name)).toEqual(limit);
});

test("an unknown client gets short pages unless a person set their size", () => {
  for (const name of ["somebody", "my-codex", "", undefined]) {
    expect(findClientLimit(name)).toEqual({ tokens: 8_000 });
    expect(findClientLimit(name, { perToolCall: 12_000 })).toEqual({});
  }
});

test("a person's numbers stay, and without a total the client decides how large a page is", () => {
  expect(completeBudget({ total: "unlimited" })).toMatchObject({ perToolCall: 20_000, minPerCall: 2_000 });
  expect(completeBudget({ total: "unlimited", perToolCall: 900 }).perToolCall).toBe(900);
  expect(completeBudget({ total: 100_000 }).perToolCall).toBeUndefined();
});

test.each([
  ["claude-code", "mcp__my_files__next_page"],
  ["codex-mcp-client", "mcp__my_files__next_page"],
  ["gemini-cli-mcp-client-files", "mcp_my_files_next_page"],
  ["opencode", "my_files_next_page"],
  ["somebody", "next_page"],
])("a tool's name as %s shows it", (client, name) => {
  expect(findToolName("next_page", client, "my files")).toBe(name);
  expect(findToolName("next_page", client, undefined)).toBe("next_page");
});
