/** Detects facts about a project from the files in its root: its name, languages, package managers and test
 *  commands. */
import { lstat, readdir, realpath } from "node:fs/promises";
import { join, relative } from "node:path";

import { codeLanguage, compareText, isSecretName, tomlString } from "../../core/text/index.ts";
import { isGitInternal, isInside } from "../files/paths.ts";
import { readForeign } from "../files/read-foreign.ts";

interface ProjectFact {
  readonly name: string;
  readonly value: string;
}

/** Returns the facts that everybody who works in a project needs. The same files give the same facts. A project with
 *  several languages has several values. */
export async function detectFacts(root: string): Promise<ProjectFact[]> {
  return listFacts(await detectStacks(root));
}

/** Returns the same facts with the project's own name, for readers who do not know the project. The languages are those
 *  of the given files, the one with most code first. */
export async function describeProject(root: string, paths: readonly string[] = []): Promise<ProjectFact[]> {
  const languages = await rankLanguages(root, paths);
  const rankOf = ({ language }: Stack) => (languages.indexOf(language) + languages.length + 1) % (languages.length + 1);
  const stacks = (await detectStacks(root)).toSorted((one, two) => rankOf(one) - rankOf(two));
  const facts = listFacts(stacks).filter(({ name }) => name !== "Language" || languages.length === 0);
  const language = languages.length === 0 ? [] : [{ name: "Language", value: languages.join(", ") }];
  return [...row("Module", stacks, (stack) => stack.module), ...language, ...facts];
}

/** Ranks languages by their part of the files and of the bytes. */
async function rankLanguages(root: string, paths: readonly string[]): Promise<string[]> {
  // Enough to compare sizes. Statting every file of a large project would take seconds.
  const maxMeasured = 2_000;
  // A language with a smaller part of the code is not worth a word.
  const leastPart = 0.05;
  const maxLanguages = 5;
  // Code of others.
  const foreignPath = /(^|\/)(vendor|third_party|node_modules|dist)\/|\.min\.js$/;
  const files = new Map<string, string[]>();
  for (const path of paths) {
    const language = foreignPath.test(path) ? undefined : codeLanguage(path);
    if (language === undefined) continue;
    const known = files.get(language);
    if (known === undefined) files.set(language, [path]);
    else known.push(path);
  }
  const most = Math.floor(maxMeasured / Math.max(1, files.size));
  const sizes = await Promise.all(
    [...files].map(async ([language, all]) => ({
      language,
      files: all.length,
      bytes: await sumBytes(root, all, most),
    })),
  );
  const sum = (key: "files" | "bytes") => sizes.reduce((total, each) => total + each[key], 0) || 1;
  const [allFiles, allBytes] = [sum("files"), sum("bytes")];
  return sizes
    .map(({ language, files: count, bytes }) => ({ language, part: (count / allFiles + bytes / allBytes) / 2 }))
    .sort((one, two) => two.part - one.part || compareText(one.language, two.language))
    .filter(({ part }, index) => index === 0 || (part >= leastPart && index < maxLanguages))
    .map(({ language }) => language);
}

/** Estimates the bytes of files from at most `most` of them, evenly spread. */
async function sumBytes(root: string, paths: readonly string[], most: number): Promise<number> {
  const sorted = [...paths].sort(compareText);
  const step = Math.max(1, sorted.length / Math.max(1, most));
  let [bytes, measured] = [0, 0];
  for (let at = 0; at < sorted.length; at += step, measured++) {
    const stats = await lstat(join(root, sorted[Math.floor(at)]!)).catch(() => undefined);
    if (stats?.isFile()) bytes += stats.size;
  }
  return (bytes * sorted.length) / Math.max(1, measured);
}

async function detectStacks(root: string): Promise<Stack[]> {
  const names = new Set((await readdir(root).catch(() => [])).sort());
  const read = async (name: string) => (names.has(name) ? readInside(join(root, name), root) : "");
  const stacks: Stack[] = [];
  for (const detect of detectors) {
    const stack = await detect({ names, has: (name) => names.has(name), read });
    if (stack !== undefined) stacks.push(stack);
  }
  return stacks;
}

function listFacts(stacks: readonly Stack[]): ProjectFact[] {
  return [
    ...row("Language", stacks, (stack) => stack.language),
    ...row("Package manager", stacks, (stack) => stack.manager),
    ...row("Test command", stacks, (stack) => stack.test),
  ];
}

function row(name: string, stacks: readonly Stack[], pick: (stack: Stack) => string | undefined): ProjectFact[] {
  const values = [...new Set(stacks.flatMap((stack) => pick(stack) || []))];
  return values.length === 0 ? [] : [{ name, value: values.join(", ") }];
}

/** A link may give a manifest another name. A link out of the project, or to a secret, is not read. */
async function readInside(path: string, root: string): Promise<string> {
  const [real, realRoot] = await Promise.all([realpath(path), realpath(root)]).catch(() => []);
  if (real === undefined || realRoot === undefined || !isInside(real, realRoot)) return "";
  const inside = relative(realRoot, real);
  if (isSecretName(inside) || isGitInternal(inside)) return "";
  const file = readForeign(real, { within: realRoot });
  return Buffer.isBuffer(file) ? file.toString("utf8") : "";
}

// Reads single values of manifests without a full parser: a manifest with a mistake elsewhere still has its name.

/** Returns a text in JSON by its keys, or `undefined` if it is missing or the text is not JSON. */
function memberOfJson(text: string, ...keys: readonly string[]): string | undefined {
  try {
    let value: unknown = JSON.parse(text);
    for (const key of keys) value = (value as Record<string, unknown> | null)?.[key];
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}

/** One language of a project, with the facts from its manifest. Add a language as a line in `detectors`. */
interface Stack {
  /** The project's name in the manifest. */
  readonly module?: string | undefined;
  readonly language: string;
  readonly manager?: string | undefined;
  readonly test?: string | undefined;
}

interface Root {
  /** The names of all entries, sorted. */
  readonly names: ReadonlySet<string>;
  has(name: string): boolean;
  /** Returns an empty text if the file is missing or cannot be read. */
  read(name: string): Promise<string>;
}

/** In the order in which their facts are shown. */
const detectors: readonly ((root: Root) => Promise<Stack | undefined>)[] = [
  detectNode,
  detectPython,
  manifest("go.mod", { language: "Go", manager: "go", test: "go test ./..." }, /^module[ \t]+"?([^\s"]+)/m),
  manifest("Cargo.toml", { language: "Rust", manager: "cargo", test: "cargo test" }, (text) =>
    tomlString(text, "package", "name"),
  ),
  manifest("pom.xml", { language: "Java", manager: "maven", test: "mvn test" }, mavenName),
  detectGradle,
  manifest(
    "build.sbt",
    { language: "Scala", manager: "sbt", test: "sbt test" },
    /^[ \t]*(?:ThisBuild \/ )?name[ \t]*:=[ \t]*"([^"\n]+)"/m,
  ),
  manifest("composer.json", { language: "PHP", manager: "composer" }, (text) => memberOfJson(text, "name")),
  detectRuby,
  detectDotnet,
  manifest("mix.exs", { language: "Elixir", manager: "mix", test: "mix test" }, /\bapp:\s*:(\w+)/),
  manifest("Package.swift", { language: "Swift", manager: "swift", test: "swift test" }, /\bname:\s*"([^"\n]+)"/),
  manifest("pubspec.yaml", { language: "Dart", manager: "pub" }, /^name:[ \t]*["']?([\w-]+)/m),
  manifest("CMakeLists.txt", { language: "C/C++", manager: "cmake" }, /^[ \t]*project[ \t]*\(\s*"?([^\s")$]+)/im),
];

/** A pattern matches the name in the manifest. */
function manifest(
  file: string,
  stack: Stack,
  name: RegExp | ((text: string) => string | undefined),
): (root: Root) => Promise<Stack | undefined> {
  const nameIn = (text: string) => (name instanceof RegExp ? firstMatch(text, name) : name(text));
  return async ({ has, read }) => (has(file) ? { ...stack, module: nameIn(await read(file)) } : undefined);
}

function firstMatch(text: string, pattern: RegExp): string | undefined {
  return pattern.exec(text)?.[1];
}

async function detectNode({ has, read }: Root): Promise<Stack | undefined> {
  const nodeLocks: readonly (readonly [file: string, manager: string])[] = [
    ["pnpm-lock.yaml", "pnpm"],
    ["yarn.lock", "yarn"],
    ["bun.lock", "bun"],
    ["bun.lockb", "bun"],
    ["package-lock.json", "npm"],
  ];
  // A script that always fails, such as the one that `npm init` writes.
  const onlyFails = /(^|&&|;)\s*(exit\s+[1-9]\d*|false)\s*;?\s*$/;
  if (!has("package.json")) return undefined;
  const text = await read("package.json");
  const declared = firstMatch(text, /"packageManager"\s*:\s*"(\w+)@/);
  const manager = declared ?? nodeLocks.find(([file]) => has(file))?.[1] ?? "npm";
  const typed = has("tsconfig.json") || /"typescript"\s*:/.test(text);
  const test = memberOfJson(text, "scripts", "test");
  return {
    module: memberOfJson(text, "name"),
    language: typed ? "TypeScript" : "JavaScript",
    manager,
    test: test === undefined || onlyFails.test(test) ? undefined : `${manager}${manager === "bun" ? " run" : ""} test`,
  };
}

async function detectPython({ has, read }: Root): Promise<Stack | undefined> {
  const pythonLocks: readonly (readonly [file: string, manager: string])[] = [
    ["uv.lock", "uv"],
    ["poetry.lock", "poetry"],
    ["pdm.lock", "pdm"],
    ["Pipfile.lock", "pipenv"],
  ];
  if (!["pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Pipfile"].some(has)) return undefined;
  const manager = pythonLocks.find(([file]) => has(file))?.[1] ?? "pip";
  const pyproject = await read("pyproject.toml");
  const usesPytest = has("pytest.ini") || has("conftest.py") || pyproject.includes("pytest");
  const prefix = manager === "pip" ? "" : `${manager} run `;
  return {
    module:
      tomlString(pyproject, "project", "name") ??
      tomlString(pyproject, "tool.poetry", "name") ??
      firstMatch(await read("setup.cfg"), /^name[ \t]*=[ \t]*(\S+)/m) ??
      firstMatch(await read("setup.py"), /\bname\s*=\s*["']([^"'\n]+)/),
    language: "Python",
    manager,
    test: usesPytest ? `${prefix}pytest` : undefined,
  };
}

/** `group:artifact` of the project itself. */
function mavenName(text: string): string | undefined {
  // The texts directly inside the outermost element, by tag.
  const own = new Map<string, string>();
  const withoutComments = text.split("<!--").map((part, index) => (index === 0 ? part : (part.split("-->")[1] ?? "")));
  let depth = 0;
  // The lookahead prevents trying a tag without an end at every length.
  const tags = withoutComments.join("").matchAll(/<(\/?)([a-z][\w.:-]*)(?![\w.:-])([^<>]*)>([^<]*)/gi);
  for (const [, slash, tag = "", attributes, content = ""] of tags) {
    if (slash === "/") depth--;
    else {
      if (depth === 1 && !own.has(tag)) own.set(tag, content.trim());
      if (!attributes?.endsWith("/")) depth++;
    }
  }
  const [group, artifact] = [own.get("groupId"), own.get("artifactId")];
  return group === undefined ? artifact : artifact && `${group}:${artifact}`;
}

async function detectGradle({ has, read }: Root): Promise<Stack | undefined> {
  const scripts = ["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"].filter(has);
  if (scripts.length === 0) return undefined;
  const text = (await Promise.all(scripts.map(read))).join("\n");
  return {
    module: firstMatch(text, /\brootProject\.name\s*=\s*["']([^"'\n]+)/),
    language: /\bkotlin\b/.test(text) ? "Kotlin" : "Java",
    manager: "gradle",
    test: has("gradlew") ? "./gradlew test" : "gradle test",
  };
}

async function detectRuby({ names, has, read }: Root): Promise<Stack | undefined> {
  const gemspec = [...names].find((name) => name.endsWith(".gemspec"));
  if (gemspec === undefined && !has("Gemfile")) return undefined;
  const text = gemspec === undefined ? "" : await read(gemspec);
  return {
    module: firstMatch(text, /\.name\s*=\s*["']([^"'\n]+)/),
    language: "Ruby",
    manager: "bundler",
    test: has(".rspec") ? "bundle exec rspec" : undefined,
  };
}

/** A solution gives the name. Its projects give the language. */
async function detectDotnet({ names }: Root): Promise<Stack | undefined> {
  const dotnetLanguages: Readonly<Record<string, string>> = {
    csproj: "C#",
    fsproj: "F#",
    vbproj: "Visual Basic",
  };
  const files = [...names].flatMap((name) => {
    const [, base, kind] = /^(.+)\.(slnx?|csproj|fsproj|vbproj)$/.exec(name) ?? [];
    return base === undefined || kind === undefined ? [] : { base, kind };
  });
  const named = files.find(({ kind }) => kind.startsWith("sln")) ?? files[0];
  if (named === undefined) return undefined;
  const language = files.map(({ kind }) => dotnetLanguages[kind]).find((each) => each !== undefined) ?? "C#";
  return { module: named.base, language, manager: "dotnet", test: "dotnet test" };
}
