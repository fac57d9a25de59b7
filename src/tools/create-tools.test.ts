import { expect, test } from "vitest";
import { leastAllocation } from "../budget/index.ts";
import { createTools } from "./create-tools.ts";

test("there are seven tools, each with the tokens that one of its items costs", () => {
  const tools = createTools({ root: "." });
  expect(tools.map(({ name, itemTokens, itemUnit }) => `${name} ${itemTokens} ${itemUnit}`)).toEqual([
    "project_files 100 files with metadata",
    "search_content 200 matches with context",
    "read_file 285 KB",
    "vcs_log 150 commits",
    "vcs_diff 285 KB",
    "vcs_status 30 changed files",
    "vcs_blame 50 lines",
  ]);
});

test("every tool tells the least budget that a page has", () => {
  for (const { inputSchema } of createTools({ root: "." })) {
    expect(inputSchema.properties.budget?.description).toContain(`${leastAllocation} at least`);
  }
});
