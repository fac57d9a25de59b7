/** The folder tree is the architecture: these hold it to ARCHITECTURE.md. The rules themselves are in architecture/. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
// @ts-expect-error: a script has no types of its own
import { bundledPackages } from "../scripts/third-party.mjs";
import { checkArchitecture, createProject, type Manifest } from "./architecture/check-architecture.ts";
import { lineCount, lookAgainLines } from "./architecture/form.ts";
import { roomGroups } from "./architecture/layers.ts";
import { staticReach } from "./architecture/reach.ts";
import { idleReaders } from "./architecture/reads.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const manifest: Manifest = JSON.parse(readFileSync(`${root}package.json`, "utf8"));
const paths = readdirSync(`${root}src`, { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".ts"))
  .map((path) => `src/${path.replaceAll("\\", "/")}`)
  .sort();
const project = createProject(Object.fromEntries(paths.map((path) => [path, readFileSync(`${root}${path}`, "utf8")])), {
  ...manifest,
  dependencies: Object.fromEntries(bundledPackages.map((name: string) => [name, ""])),
});

test("every source file keeps the architecture", () => {
  expect(checkArchitecture(project)).toEqual([]);
});

test("the list of readers has only files that read", () => {
  expect(idleReaders(project.sources)).toEqual([]);
});

test("every door has its source, and the tree was really read", () => {
  expect([...project.doors].filter((door) => !project.sources.has(door))).toEqual([]);
  expect(paths).toEqual(expect.arrayContaining(["src/core/errors.ts", "src/public/index.ts", "src/cli/main.ts"]));
});

test("the version costs two modules", () => {
  expect([...staticReach("src/cli/main.ts", project).keys()]).toEqual([
    "src/cli/main.ts",
    "src/cli/version.ts",
    "node:fs",
  ]);
});

test("what every command starts with brings no package along", () => {
  const reached = [...staticReach("src/cli/run-cli.ts", project).keys()];
  expect(reached.filter((target) => !/^(src\/|node:)/.test(target))).toEqual([]);
});

test("few files are long, and those are named", () => {
  const lengths = [...project.sources.values()].map(({ path, text }) => ({ path, lines: lineCount(text) }));
  const long = lengths.filter(({ lines }) => lines > lookAgainLines);
  for (const { path, lines } of long) console.log(`${path}: ${lines} lines, look again`);
  expect(long.length).toBeLessThan(lengths.length / 10);
});

test("an exported name is declared once, so one word means one thing", () => {
  const declared = /^export (?:async )?(?:function\*?|const|class|interface|type) (\w+)/gm;
  const places = new Map<string, string[]>();
  for (const { path, text, isTest } of project.sources.values()) {
    if (isTest) continue;
    for (const [, name = ""] of text.matchAll(declared)) places.set(name, [...(places.get(name) ?? []), path]);
  }
  const twice = [...places].filter(([name, paths]) => paths.length > 1 && !sameForEverySdk.includes(name));
  expect(twice).toEqual([]);
});

/** Users of each SDK import it from another path. */
const sameForEverySdk: readonly string[] = ["withContextBudget", "recallTool"];

test("the files of each flow lead to one another", () => {
  const page = readFileSync(`${root}ARCHITECTURE.md`, "utf8");
  const flows = [...page.matchAll(/^\| \*\*.+$/gm)].map(([row]) =>
    [...row.matchAll(/`(src\/[^`]+\.ts)`/g)].map(([, path]) => path),
  );
  expect(flows).toHaveLength(5);
  for (const [first = "", ...others] of flows) {
    expect(others).toHaveLength(2);
    const reached = [...staticReach(first, project).keys()];
    expect(
      others.filter((path = "") => !reached.includes(path)),
      first,
    ).toEqual([]);
  }
});

test("every room has a README of at most twelve lines, and the files that it names exist", () => {
  for (const room of roomGroups.flat()) {
    const text = readFileSync(`${root}src/${room}/README.md`, "utf8");
    expect(text.split("\n").length, room).toBeLessThanOrEqual(13);
    const named = [...text.matchAll(/`([\w/-]+\.ts)`/g)].map(([, path]) => `src/${room}/${path}`);
    expect(named.length, room).toBeGreaterThan(0);
    expect(named.filter((path) => !project.sources.has(path))).toEqual([]);
  }
});

test("every path that ARCHITECTURE.md names exists, and the page is short", () => {
  const page = readFileSync(`${root}ARCHITECTURE.md`, "utf8");
  const named = [...page.matchAll(/`((?:src|test|content|docs|examples|bench|schemas)\/[^`\s]*)`/g)].map(
    ([, path = ""]) => path,
  );
  expect(named.length).toBeGreaterThan(50);
  expect(named.filter((path) => !/[A-Z]{2}/.test(path) && !existsSync(`${root}${path}`))).toEqual([]);
  expect(page.split("\n").length).toBeLessThanOrEqual(201);
});
