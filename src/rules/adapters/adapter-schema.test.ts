import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { z } from "zod";
import type { Adapter } from "./adapter.ts";
import { adapterFileSchema } from "./adapter-schema.ts";

test("the committed schemas/adapter.schema.json is the one the code makes (npm run schemas)", () => {
  const committed = readFileSync(new URL("../../../schemas/adapter.schema.json", import.meta.url), "utf8");
  expect(committed).toBe(`${JSON.stringify(z.toJSONSchema(adapterFileSchema, { io: "input" }), null, 2)}\n`);
});

test("id and type are enough", () => {
  expect(adapterFileSchema.parse({ id: "t", type: "file-inject" }).over(undefined)).toEqual({
    ...{ id: "t", name: "t", type: "file-inject", targets: [], format: "markdown", instructions: "" },
    ...{ detect: [], limits: [], reads: [], imports: false, mcpConfigs: [] },
  });
});

test("every key of the format loads, even keys that nothing uses", () => {
  const place = { path: "~/.t/settings.json", format: "json", key: "mcpServers" };
  const file = adapterFileSchema.parse({
    ...{
      id: "t",
      name: "Tool",
      type: "file-export",
      format: "plain-prose",
      template: "x",
      instructions: "Paste",
    },
    ...{ max_tokens: 500, max_bytes: 1400, verbosity: "minimal", export_path: "~/t.md", on_overflow: "thin" },
    targets: [
      { scope: "global", path: "~/.t/T.md", mode: "replace-section", section: "Developer Context" },
      { scope: "project", path: ".t/rules.md", mode: "replace-file", preamble: "---\na: b\n---" },
      { scope: "project", path: "T.md" },
    ],
    ...{ mcp_config: place, extra_mcp_configs: [{ ...place, key: "b" }], hook_config: place },
    skill_config: { path: "~/.t/skills" },
    detect: [{ command: "t --version" }, { path: "~/.t" }],
    limits: [
      {
        value: 8000,
        unit: "chars",
        kind: "hard",
        scope: "field",
        evidence: "docs",
        checked: "2026-11-15",
        note: "n",
      },
    ],
    reads: ["u"],
    imports: true,
  });
  const adapter = file.over(undefined) as Adapter;
  expect(adapter).toMatchObject({
    ...{ maxTokens: 500, maxBytes: 1400, exportPath: "~/t.md", onOverflow: "thin", verbosity: "minimal" },
    ...{ reads: ["u"], imports: true, mcpConfigs: [place, { ...place, key: "b" }] },
  });
  expect(adapter.targets.map(({ mode, section }) => [mode, section])).toEqual([
    ["replace-section", "Developer Context"],
    ["replace-file", "context"],
    ["replace-section", "context"],
  ]);
});

test("an unknown verbosity, type, mode, unit or evidence is refused", () => {
  const refused = [
    { verbosity: "verbose" },
    { type: "file" },
    { targets: [{ scope: "project", path: "x", mode: "overwrite" }] },
    { targets: [{ scope: "project", path: "x", mode: "append" }] },
    { limits: [{ value: 1, unit: "words", kind: "hard", scope: "file", evidence: "docs", checked: "x" }] },
    { limits: [{ value: 1, unit: "bytes", kind: "hard", scope: "file", evidence: "hearsay", checked: "x" }] },
  ];
  for (const part of refused) {
    expect(adapterFileSchema.safeParse({ id: "t", type: "file-inject", ...part }).success, JSON.stringify(part)).toBe(
      false,
    );
  }
});

test("a file changes only the keys that it holds", () => {
  const place = { path: "~/.t/settings.json", format: "json", key: "mcpServers" };
  const limit = { value: 9, unit: "bytes", kind: "hard", scope: "file", evidence: "docs", checked: "2026-11-15" };
  const lower = adapterFileSchema
    .parse({
      ...{ id: "t", name: "Tool", type: "file-inject", max_bytes: 1400, verbosity: "minimal", reads: ["u", "v"] },
      ...{ limits: [limit], imports: true, mcp_config: place, extra_mcp_configs: [{ path: "b.json" }] },
    })
    .over(undefined) as Adapter;
  expect(adapterFileSchema.parse({ id: "t" }).over(lower)).toEqual(lower);
  const changed = { max_tokens: 500, reads: ["w"], mcp_config: { path: ".t.json" }, imports: false };
  expect(adapterFileSchema.parse({ id: "t", ...changed }).over(lower)).toEqual({
    ...lower,
    ...{ maxTokens: 500, maxBytes: undefined, reads: ["w"], imports: false },
    mcpConfigs: [{ ...place, path: ".t.json" }, { path: "b.json" }],
  });
});

test("a file without a type needs a lower adapter", () => {
  expect(adapterFileSchema.parse({ id: "t", max_tokens: 500 }).over(undefined)).toEqual({ missing: "type" });
});
