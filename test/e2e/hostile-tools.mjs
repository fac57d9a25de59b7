/** Calls every built tool, and a scan, over one folder, and prints all that came out as JSON lines. Argument: the folder. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { scanProject } from "../../dist/host/index.js";
import { createTools } from "../../dist/results/tools/index.js";

const [root] = process.argv.slice(2);
const tools = new Map(createTools({ root }).map((tool) => [tool.name, tool]));
const names = ["notes.txt", "readme.txt", "AGENTS.md", "CLAUDE.md", ".env", "way-out", "tracked/file.txt"];
const paths = names.filter((name) => existsSync(join(root, name)));

const calls = [
  ["project_files", { mode: "files", include_hidden: true, max_depth: 9 }],
  // Both secrets have these characters, as has a password's line.
  ["search_content", { pattern: "(outside|own)-[0-9a-f]{16}|PASSWORD", is_regex: true }],
  ["vcs_status", {}],
  ["vcs_log", {}],
  ...[{}, { staged: true }, { commit: "HEAD" }, { from: "HEAD" }, { from: "HEAD", to: "HEAD~1" }].map((args) => [
    "vcs_diff",
    args,
  ]),
  ...paths.flatMap((path) => [
    ["read_file", { path }],
    ["vcs_blame", { path }],
    ["vcs_diff", { path }],
    ["vcs_log", { path }],
    ["search_content", { pattern: "-", path }],
  ]),
];

for (const [name, args] of calls) {
  const result = await tools.get(name).run(args, { signal: new AbortController().signal });
  const items = [];
  for await (const item of result.items ?? []) items.push(item);
  const warnings = typeof result.warnings === "function" ? result.warnings() : result.warnings;
  console.log(JSON.stringify({ name, args, ...result, items, warnings }));
}
console.log(JSON.stringify({ name: "scan", ...(await scanProject(root)) }));
