/** How each language's manifests are told and read. A new one is a line in `detectors`. */
import { memberOfJson, membersOfXml, tomlString } from "./manifest-values.ts";

export interface Stack {
  /** The name that the manifest gives the project. */
  readonly module?: string | undefined;
  readonly language: string;
  readonly manager?: string | undefined;
  readonly test?: string | undefined;
}

export interface Root {
  /** Of all entries, sorted. */
  readonly names: ReadonlySet<string>;
  has(name: string): boolean;
  /** Empty when the file is not there or cannot be read. */
  read(name: string): Promise<string>;
}

/** In the order in which their facts are shown. */
export const detectors: readonly ((root: Root) => Promise<Stack | undefined>)[] = [
  detectNode,
  detectPython,
  manifest("go.mod", { language: "Go", manager: "go", test: "go test ./..." }, (text) =>
    firstMatch(text, /^module[ \t]+"?([^\s"]+)/m),
  ),
  manifest("Cargo.toml", { language: "Rust", manager: "cargo", test: "cargo test" }, (text) =>
    tomlString(text, "package", "name"),
  ),
  manifest("pom.xml", { language: "Java", manager: "maven", test: "mvn test" }, mavenName),
  detectGradle,
  manifest("build.sbt", { language: "Scala", manager: "sbt", test: "sbt test" }, (text) =>
    firstMatch(text, /^[ \t]*(?:ThisBuild \/ )?name[ \t]*:=[ \t]*"([^"\n]+)"/m),
  ),
  manifest("composer.json", { language: "PHP", manager: "composer" }, (text) => memberOfJson(text, "name")),
  detectRuby,
  detectDotnet,
  manifest("mix.exs", { language: "Elixir", manager: "mix", test: "mix test" }, (text) =>
    firstMatch(text, /\bapp:\s*:(\w+)/),
  ),
  manifest("Package.swift", { language: "Swift", manager: "swift", test: "swift test" }, (text) =>
    firstMatch(text, /\bname:\s*"([^"\n]+)"/),
  ),
  manifest("pubspec.yaml", { language: "Dart", manager: "pub" }, (text) =>
    firstMatch(text, /^name:[ \t]*["']?([\w-]+)/m),
  ),
  manifest("CMakeLists.txt", { language: "C/C++", manager: "cmake" }, (text) =>
    firstMatch(text, /^[ \t]*project[ \t]*\(\s*"?([^\s")$]+)/im),
  ),
];

function manifest(
  file: string,
  stack: Stack,
  nameIn: (text: string) => string | undefined,
): (root: Root) => Promise<Stack | undefined> {
  return async ({ has, read }) => (has(file) ? { ...stack, module: nameIn(await read(file)) } : undefined);
}

function firstMatch(text: string, pattern: RegExp): string | undefined {
  return pattern.exec(text)?.[1];
}

const nodeLocks: readonly (readonly [file: string, manager: string])[] = [
  ["pnpm-lock.yaml", "pnpm"],
  ["yarn.lock", "yarn"],
  ["bun.lock", "bun"],
  ["bun.lockb", "bun"],
  ["package-lock.json", "npm"],
];

async function detectNode({ has, read }: Root): Promise<Stack | undefined> {
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
    // What `npm init` writes is no test.
    test:
      test === undefined || test.includes("no test specified")
        ? undefined
        : `${manager}${manager === "bun" ? " run" : ""} test`,
  };
}

const pythonLocks: readonly (readonly [file: string, manager: string])[] = [
  ["uv.lock", "uv"],
  ["poetry.lock", "poetry"],
  ["pdm.lock", "pdm"],
  ["Pipfile.lock", "pipenv"],
];

async function detectPython({ has, read }: Root): Promise<Stack | undefined> {
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
  const own = membersOfXml(text);
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

const dotnetLanguages: Readonly<Record<string, string>> = {
  csproj: "C#",
  fsproj: "F#",
  vbproj: "Visual Basic",
};

/** A solution names the whole; its projects tell the language. */
async function detectDotnet({ names }: Root): Promise<Stack | undefined> {
  const files = [...names].flatMap((name) => {
    const [, base, kind] = /^(.+)\.(slnx?|csproj|fsproj|vbproj)$/.exec(name) ?? [];
    return base === undefined || kind === undefined ? [] : { base, kind };
  });
  const named = files.find(({ kind }) => kind.startsWith("sln")) ?? files[0];
  if (named === undefined) return undefined;
  const language = files.map(({ kind }) => dotnetLanguages[kind]).find((each) => each !== undefined) ?? "C#";
  return { module: named.base, language, manager: "dotnet", test: "dotnet test" };
}
