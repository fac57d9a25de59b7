import { join } from "node:path";
import { expect, test } from "vitest";
import { leastAllocation } from "../../core/budget/index.ts";
import { isFailure } from "../session/index.ts";
import { createTools } from "./index.ts";
import { createTree, whileDenied } from "./temporary-tree.contract.ts";

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

test("every tool names the smallest budget of a page", () => {
  for (const { inputSchema } of createTools({ root: "." })) {
    expect(inputSchema.properties.budget?.description).toContain(`at least ${leastAllocation}`);
  }
});

/** Each tool with its required arguments only. */
async function answersOf(root: string): Promise<string[]> {
  const answers = createTools({ root }).map(async ({ name, inputSchema, run }) => {
    const args = Object.fromEntries((inputSchema.required ?? []).map((each) => [each, "a"]));
    const result = await run(args, { signal: new AbortController().signal });
    return isFailure(result) ? result.message : name;
  });
  return Promise.all(answers);
}

test("every tool reports a root that is a file or gone", async () => {
  const root = createTree({ a: "" });
  expect(new Set(await answersOf(join(root, "a")))).toEqual(new Set(["The root of the project is not a directory."]));
  expect(new Set(await answersOf(join(root, "b")))).toEqual(new Set(["The root of the project is gone."]));
});

// Other systems do not enforce file modes.
test.skipIf(process.geteuid === undefined)("every tool reports a root that cannot be read", async () => {
  const root = createTree({ "in/a": "" });
  const answers = await whileDenied(root, ["in"], () => answersOf(join(root, "in")));
  expect(new Set(answers)).toEqual(new Set(["The root of the project cannot be read: permission denied."]));
});
