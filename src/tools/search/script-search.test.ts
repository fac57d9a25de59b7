import { expect, test } from "vitest";
import { createTree, readResult, whileDenied } from "../frame/temporary-tree.contract.ts";
import { createSearchContent } from "./search-content.ts";

const call = { signal: new AbortController().signal };

// Elsewhere modes do not bind.
const withModes = test.skipIf(process.geteuid === undefined);

withModes.each([["a.txt"], ["dir"]])(
  "without ripgrep too, it is told that %s was not searched",
  async (denied) => {
    const root = createTree({ "a.txt": "needle\n", "b.txt": "needle\n", "dir/c.txt": "needle\n" });
    const tool = createSearchContent({ root, env: { ...process.env, HOME: root } }, async () => undefined);
    const search = async () => readResult(await tool.run({ pattern: "needle" }, call));
    expect(await search()).toMatchObject({ total: 3, warnings: [] });
    const warnings = ["Some files could not be read, and were not searched."];
    expect(await whileDenied(root, [denied], search)).toMatchObject({ total: 2, warnings });
    const named = () => tool.run({ pattern: "needle", path: denied }, call);
    expect(await whileDenied(root, [denied], named)).toMatchObject({
      code: "unreadable",
      message: `"${denied}" may not be read.`,
    });
  },
);
