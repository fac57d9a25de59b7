import { execFileSync } from "node:child_process";
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { describeProject, detectFacts } from "./project-facts.ts";

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "plimsoll-facts-"));
});
afterEach(() => rm(root, { recursive: true }));

async function factsOf(files: Record<string, string>) {
  for (const [name, text] of Object.entries(files)) await writeFile(join(root, name), text);
  return Object.fromEntries((await describeProject(root)).map(({ name, value }) => [name, value]));
}

it("finds nothing in an empty folder, and does not fail on a missing one", async () => {
  expect(await factsOf({})).toEqual({});
  expect(await detectFacts(join(root, "missing"))).toEqual([]);
});

it("leaves the project's name out for people who work in it", async () => {
  expect(Object.keys(await factsOf({ "go.mod": "module shop\n" }))[0]).toBe("Module");
  const names = (await detectFacts(root)).map(({ name }) => name);
  expect(names).toEqual(["Language", "Package manager", "Test command"]);
});

it("reads a TypeScript project's manager from its lock file and its test from the scripts", async () => {
  const manifest = JSON.stringify({ scripts: { test: "vitest" }, devDependencies: { typescript: "7" } });
  expect(await factsOf({ "package.json": manifest, "pnpm-lock.yaml": "" })).toEqual({
    Language: "TypeScript",
    "Package manager": "pnpm",
    "Test command": "pnpm test",
  });
});

it("does not take the placeholder of npm init for a test, and accepts broken JSON", async () => {
  const manifest = JSON.stringify({ scripts: { test: 'echo "Error: no test specified" && exit 1' } });
  expect(await factsOf({ "package.json": manifest })).toEqual({
    Language: "JavaScript",
    "Package manager": "npm",
  });
  expect(await factsOf({ "package.json": "{" })).toEqual({
    Language: "JavaScript",
    "Package manager": "npm",
  });
});

it("names every language of a mixed project, in a fixed order", async () => {
  const files = { "go.mod": "module x", "pyproject.toml": "[tool.pytest.ini_options]", "uv.lock": "" };
  expect(await factsOf(files)).toEqual({
    Module: "x",
    Language: "Python, Go",
    "Package manager": "uv, go",
    "Test command": "uv run pytest, go test ./...",
  });
});

it("does not wait for the writer of a pipe", { timeout: 5_000 }, async () => {
  execFileSync("mkfifo", [join(root, "package.json")]);
  expect(await factsOf({})).toEqual({ Language: "JavaScript", "Package manager": "npm" });
});

it.each([
  ["package.json", '{ "name": "@scope/web" }', "@scope/web", "JavaScript"],
  ["go.mod", "// comment\nmodule example.com/tool/v2\n\ngo 1.24\n", "example.com/tool/v2", "Go"],
  ["Cargo.toml", '[workspace]\nmembers = ["a"]\n\n[package]\nauthors = ["x"]\nname = "crate-x"\n', "crate-x", "Rust"],
  ["pyproject.toml", '[build-system]\nname = "no"\n[project]\nname = "py-x"\n', "py-x", "Python"],
  ["pyproject.toml", "[tool.poetry]\nname = 'poetic'\n", "poetic", "Python"],
  ["setup.py", 'from setuptools import setup\nsetup(\n    name="old",\n)\n', "old", "Python"],
  ["setup.cfg", "[metadata]\nname = configured\n", "configured", "Python"],
  ["settings.gradle.kts", 'plugins { kotlin("jvm") }\nrootProject.name = "ktx"\n', "ktx", "Kotlin"],
  ["build.sbt", 'ThisBuild / name := "scalable"\n', "scalable", "Scala"],
  ["composer.json", '{ "name": "vendor/site" }', "vendor/site", "PHP"],
  ["thing.gemspec", 'Gem::Specification.new do |s|\n  s.name = "thing"\nend\n', "thing", "Ruby"],
  ["mix.exs", "def project do\n  [app: :phoenixish, version: 1]\nend\n", "phoenixish", "Elixir"],
  ["Package.swift", 'let package = Package(\n  name: "Swiftly",\n', "Swiftly", "Swift"],
  ["pubspec.yaml", "name: dartish\n", "dartish", "Dart"],
  ["CMakeLists.txt", "cmake_minimum_required(VERSION 3.5)\nproject(engine CXX)\n", "engine", "C/C++"],
  ["Shop.sln", "", "Shop", "C#"],
  ["Core.fsproj", "<Project/>", "Core", "F#"],
])("reads the name and the language from %s", async (file, text, module, language) => {
  expect(await factsOf({ [file]: text })).toMatchObject({ Module: module, Language: language });
});

it("takes a Maven project's own name, not that of its parent or of a dependency", async () => {
  const pom = `<?xml version="1.0"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <!-- <artifactId>commented</artifactId> -->
  <parent><groupId>org.parent</groupId><artifactId>parent</artifactId></parent>
  <modelVersion/>
  <dependencies><dependency><artifactId>other</artifactId></dependency></dependencies>
  <groupId>org.example</groupId>
  <artifactId> app </artifactId>
</project>`;
  expect(await factsOf({ "pom.xml": pom })).toMatchObject({ Module: "org.example:app", Language: "Java" });
});

it("is quick on a manifest that is made to be slow", async () => {
  const [length, files] = [1_000_000, ["pom.xml", "CMakeLists.txt", "Cargo.toml", "build.sbt", "go.mod", "setup.py"]];
  for (const piece of ["<build>", "<a", "\n", " ", "[ ", "name ", "<!--"]) {
    const text = piece.repeat(length / piece.length);
    const before = process.cpuUsage();
    await factsOf(Object.fromEntries(files.map((file) => [file, text])));
    expect(process.cpuUsage(before).user / 1_000, JSON.stringify(piece)).toBeLessThan(2_000);
  }
});

it("does not follow a link out of the project", async () => {
  const outside = await mkdtemp(join(tmpdir(), "plimsoll-outside-"));
  await writeFile(join(outside, "go.mod"), "module secret\n");
  await symlink(join(outside, "go.mod"), join(root, "go.mod"));
  expect(await factsOf({})).toMatchObject({ Language: "Go" });
  expect(await factsOf({})).not.toHaveProperty("Module");
  await rm(outside, { recursive: true });
});

it("ranks languages by files and bytes, not by the first manifest", async () => {
  const paths = [
    "package.json",
    "build.js",
    "docs/a.md",
    "vendor/a/b.go",
    ...Array.from({ length: 9 }, (_, at) => `${at}.rs`),
  ];
  for (const path of ["build.js", "8.rs"])
    await writeFile(join(root, path), "x".repeat(path === "build.js" ? 100 : 400));
  await writeFile(join(root, "Cargo.toml"), '[package]\nname = "ship"\n');
  await writeFile(join(root, "package.json"), '{ "name": "tools" }');
  const facts = Object.fromEntries((await describeProject(root, paths)).map(({ name, value }) => [name, value]));
  expect(facts).toMatchObject({ Module: "ship, tools", Language: "Rust, JavaScript", "Package manager": "cargo, npm" });
});

it("shows no test command that only fails", async () => {
  for (const test of ["exit 1", "echo 'do not run tests from root' && exit 1", "false", "echo no; exit 2;"]) {
    expect(await factsOf({ "package.json": JSON.stringify({ scripts: { test } }) })).not.toHaveProperty("Test command");
  }
  expect(await factsOf({ "package.json": JSON.stringify({ scripts: { test: "vitest || exit 1" } }) })).toMatchObject({
    "Test command": "npm test",
  });
});
