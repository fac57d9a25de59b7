/** The folder tree is the architecture: these hold it to ARCHITECTURE.md. The rules themselves are in architecture/. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { checkArchitecture, createProject, type Manifest } from "./architecture/check-architecture.ts";
import { lineCount, lookAgainLines } from "./architecture/form.ts";
import { staticReach } from "./architecture/reach.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const manifest: Manifest = JSON.parse(readFileSync(`${root}package.json`, "utf8"));
const paths = readdirSync(`${root}src`, { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".ts"))
  .map((path) => `src/${path.replaceAll("\\", "/")}`)
  .sort();
const project = createProject(
  Object.fromEntries(paths.map((path) => [path, readFileSync(`${root}${path}`, "utf8")])),
  manifest,
);

test("every source file keeps the architecture", () => {
  expect(checkArchitecture(project)).toEqual([]);
});

test("every door has its source, and the tree was really read", () => {
  expect([...project.doors].filter((door) => !project.sources.has(door))).toEqual([]);
  expect(paths).toEqual(expect.arrayContaining(["src/errors.ts", "src/index.ts", "src/cli/main.ts"]));
});

test("the version costs two modules", () => {
  expect([...staticReach("src/cli/main.ts", project).keys()]).toEqual([
    "src/cli/main.ts",
    "src/cli/version.ts",
    "node:fs",
  ]);
});

test("what every command starts with brings no package along", () => {
  const reached = [...staticReach("src/cli/run-process.ts", project).keys()];
  expect(reached.filter((target) => !/^(src\/|node:)/.test(target))).toEqual([]);
});

test("few files are long, and those are named", () => {
  const lengths = [...project.sources.values()].map(({ path, text }) => ({ path, lines: lineCount(text) }));
  const long = lengths.filter(({ lines }) => lines > lookAgainLines);
  for (const { path, lines } of long) console.log(`${path}: ${lines} lines, look again`);
  expect(long.length).toBeLessThan(lengths.length / 10);
});
