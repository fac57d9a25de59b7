import { join } from "node:path";
import { expect, test } from "vitest";
import { isFailure, type ToolArguments } from "../../session/index.ts";
import type { Place } from "../frame/run.ts";
import { addEntries, commit, createRepository, git, readResult } from "../frame/temporary-tree.contract.ts";
import { createVcsBlame } from "./vcs-blame.ts";
import { createVcsDiff } from "./vcs-diff.ts";
import { createVcsLog } from "./vcs-log.ts";
import { createVcsStatus } from "./vcs-status.ts";

/** `lib` is a submodule in all but its address, which nobody asks for. */
function createNested(): string {
  const root = createRepository({ "src/a.txt": "1\n" });
  addEntries(root, { "lib/src/b.txt": "1\n" });
  git(join(root, "lib"), "init", "--quiet");
  commit(join(root, "lib"), "Inside");
  commit(root, "Outside");
  return root;
}

const call = { signal: new AbortController().signal };

async function told(
  create: (place: Place) => ReturnType<typeof createVcsLog>,
  root: string,
  args: ToolArguments,
): Promise<unknown> {
  const result = await create({ root, env: process.env }).run(args, call);
  return isFailure(result) ? result.message : (await readResult(result)).warnings;
}

const note = '"lib/src/b.txt" lies in the submodule "lib", which has a history of its own.';

test("of a path in a submodule each tool says that its history is elsewhere", async () => {
  const root = createNested();
  const path = "lib/src/b.txt";
  expect(await told(createVcsBlame, root, { path })).toBe(note);
  for (const create of [createVcsLog, createVcsDiff, createVcsStatus]) {
    expect(await told(create, root, { path })).toEqual([note]);
    expect(await told(create, root, { path: "lib" })).toEqual([]);
    expect(await told(create, root, { path: "src/none.txt" })).toEqual([]);
  }
});

test("a submodule that vcs_status calls modified is in vcs_diff too, with a word on what is not shown", async () => {
  const root = createNested();
  addEntries(root, { "lib/src/b.txt": "2\n" });
  const place = { root, env: process.env };
  const status = await readResult(await createVcsStatus(place).run({}, call));
  expect(status.items).toEqual([{ path: "lib", unstaged: "modified", submodule: "modified files" }]);
  const diff = await readResult(await createVcsDiff(place).run({}, call));
  expect(diff.items).toMatchObject([{ path: "lib", text: expect.stringMatching(/-dirty$/) }]);
  expect(diff.warnings).toEqual(["Changes inside of a submodule are not shown: lib."]);
});
