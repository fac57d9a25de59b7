/** The package as users get it: packed, unpacked into an empty project, started and imported there. */
import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { isBuiltin } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import Database from "libsql";
import { rolldown } from "rolldown";
import { parseSync } from "rolldown/utils";
import { afterAll, beforeAll, expect, test } from "vitest";
// @ts-expect-error: a script has no types of its own
import { bundledPackages } from "../../scripts/third-party.mjs";
import { packageOf } from "../architecture/packages.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const doors = Object.keys(manifest.exports).filter((door) => manifest.exports[door].default !== undefined);
const onWindows = process.platform === "win32";
const deep = process.env.PLIMSOLL_DEEP === "1";

let folder: string;
let project: string;
let installed: string;
let tarball: { filename: string; size: number };

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "plimsoll-package-"));
  project = createProject("project");
  installed = join(project, "node_modules/plimsoll");
  const packed = run(
    "npm",
    ["pack", "--json", "--ignore-scripts", "--loglevel=error", "--pack-destination", folder],
    root,
  );
  tarball = JSON.parse(packed)[0];
  mkdirSync(installed, { recursive: true });
  run("tar", ["-xzf", join(folder, tarball.filename), "--strip-components=1", "-C", installed], project);
}, 120_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

// Half of it are the ranks of two tokenizers.
test("the package has no dependencies, and with all that it needs is smaller than 3.7 MB", () => {
  expect(manifest.dependencies).toBeUndefined();
  expect(tarball.size).toBeLessThan(3_700_000);
});

test("no module and no declaration of the package needs a package, except optional ones and the SDKs of users", () => {
  const allowed = [...Object.keys(manifest.optionalDependencies), ...Object.keys(manifest.peerDependencies), "#exact"];
  const found = packedFiles().flatMap((file) => packagesOf(file).filter((name) => !allowed.includes(name)));
  expect([...new Set(found)]).toEqual([]);
  // The search finds what is there.
  expect(packedFiles().flatMap(packagesOf)).toEqual(expect.arrayContaining(["libsql", "pg", "@vscode/ripgrep", "ai"]));
});

test("the notices name every bundled package with its licence", () => {
  const notices = readFileSync(join(installed, "THIRD-PARTY-NOTICES.txt"), "utf8");
  expect(notices).toBe(readFileSync(join(root, "THIRD-PARTY-NOTICES.txt"), "utf8"));
  const parts = new Map(notices.split(`\n\n${"-".repeat(80)}\n\n`).map((part) => [part.split(" ")[0] ?? "", part]));
  // The last three are in files that the MCP server bundles itself.
  const embedded = ["@cfworker/json-schema", "ajv", "content-type"];
  expect([...parts.keys()]).toEqual(expect.arrayContaining([...bundledPackages, "entities", ...embedded]));
  for (const name of [...bundledPackages, "entities"]) {
    const { version } = JSON.parse(readFileSync(join(root, "node_modules", name, "package.json"), "utf8"));
    expect(parts.get(name)?.startsWith(`${name} ${version}\n\n`)).toBe(true);
  }
  for (const part of [...parts.values()].slice(1)) expect(part).toMatch(/Copyright/i);
});

test("the package holds every file that one of its modules imports", () => {
  const missing = packedFiles().flatMap((file) =>
    importsOf(file)
      .filter((path) => !existsSync(path))
      .map((path) => `${file} imports ${path}`),
  );
  expect(missing).toEqual([]);
});

test("no module of the library asks for another one with require, which a module does not have", () => {
  const library = packedFiles().filter((file) => file.startsWith(join(installed, "dist/public")));
  const asking = library.filter((file) => /\b__require\(/.test(readFileSync(file, "utf8")));
  expect(asking).toEqual([]);
  expect(library.length).toBeGreaterThan(20);
});

test("the package holds no module that neither an import path, the command nor a plugin leads to", () => {
  const entries = doors.map((door) => join(installed, manifest.exports[door].default));
  entries.push(...Object.values<string>(manifest.imports["#exact"]).map((path) => join(installed, path)));
  const declarations = doors.flatMap((door) => Object.values<string>(manifest.exports[door].types));
  const alone = ["plugin-hooks.js", "database-reader.js"].map((name) => join(installed, "dist/cli/bundle", name));
  const tables = ["o200k.js", "cl100k.js", "vocabulary.data.js"].map((name) => join(installed, "dist/data", name));
  const pending = [join(installed, manifest.bin.plimsoll), ...alone, ...tables, ...entries];
  pending.push(...declarations.map((path) => join(installed, path)));
  const reached = new Set<string>();
  for (let file = pending.pop(); file !== undefined; file = pending.pop()) {
    if (reached.has(file)) continue;
    reached.add(file);
    pending.push(...importsOf(file));
  }
  // A module of types alone is compiled to an empty one.
  const isEmpty = (file: string) => readFileSync(file, "utf8").trim() === "export {};";
  expect(packedFiles().filter((file) => !reached.has(file) && !isEmpty(file))).toEqual([]);
});

test("the packed command starts, and finds its packs, without any other package", () => {
  const command = join(installed, manifest.bin.plimsoll);
  expect(run(process.execPath, [command, "--version"], project)).toBe(`${manifest.version}\n`);
  expect(run(process.execPath, [command, "inject", "--dry-run"], project)).toContain("AGENTS.md");
});

test.each([
  ["count AGENTS.md --counter exact:o200k", "total of 1 file"],
  ["packs lint", ""],
  ["audit", "AGENTS.md"],
  ["snapshot", "somebody"],
  ["config", "counter"],
  ["completion bash", "plimsoll"],
  ["plugin install opencode --dry-run", "plugin-hooks.js"],
  ["statusline", ""],
])("the packed command runs %s without any other package", (line, expected) => {
  const command = join(installed, manifest.bin.plimsoll);
  expect(run(process.execPath, [command, ...line.split(" ")], project)).toContain(expected);
});

test("the hooks of plugins load without any other package", () => {
  const hooks = JSON.stringify(join(installed, "dist/cli/bundle/plugin-hooks.js"));
  const program = `const hooks = await (await import(${hooks})).openHooks({}); console.log(typeof hooks);`;
  expect(run(process.execPath, ["--input-type=module", "-e", program], project)).toBe("object\n");
});

test("the packed command has the program that reads opencode's database", () => {
  const database = new Database(join(project, "opencode.db"));
  database.exec("CREATE TABLE session (id TEXT, time_created INTEGER); CREATE TABLE part (id, message_id, data)");
  database.exec("CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT)");
  database.exec(`INSERT INTO session VALUES ('s', 1);
    INSERT INTO message VALUES ('m', 's', 1, '{"role":"assistant","modelID":"x","tokens":{"input":7},"time":{"created":1}}')`);
  database.close();
  const command = join(installed, manifest.bin.plimsoll);
  symlinkSync(join(root, "node_modules/libsql"), join(project, "node_modules/libsql"), "junction");
  expect(run(process.execPath, [command, "bill", "opencode.db", "--no-index"], project)).toContain("1 session");
  rmSync(join(project, "node_modules/libsql"));
});

test("every import path of the package loads without any other package", () => {
  const names = doors.map((door) => manifest.name + door.slice(1));
  const program = `for (const name of ${JSON.stringify(names)}) console.log(name, Object.keys(await import(name)).length > 0);`;
  writeFileSync(join(project, "load.mjs"), program);
  expect(run(process.execPath, ["load.mjs"], project)).toBe(names.map((name) => `${name} true\n`).join(""));
});

test("a program in CommonJS requires the package, and its compiler knows the types", () => {
  const program = `import { ContextError, createTrimmer } from "plimsoll";
    import { withContextBudget } from "plimsoll/openai";
    const client = withContextBudget({ post: () => undefined }, { contextWindow: 9, onCall: ({ usd }) => usd?.toFixed(2) });
    const calls: number = client.plimsoll.summary().calls;
    console.log(calls, new ContextError("usage", "x").code, typeof createTrimmer);`;
  writeFileSync(join(project, "program.cts"), program);
  symlinkSync(join(root, "node_modules/@types"), join(project, "node_modules/@types"), "junction");
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  for (const module of deep ? ["node16", "nodenext"] : ["nodenext"]) {
    const options = [
      "--strict",
      "--target",
      "es2022",
      "--module",
      module,
      "--types",
      "node",
      "--skipLibCheck",
      "false",
    ];
    expect(run(process.execPath, [tsc, ...options, "program.cts"], project)).toBe("");
    const printed = run(process.execPath, ["--no-warnings", "program.cjs"], project);
    expect(printed).toBe("0 usage function\n");
  }
});

test("a program that imports one name bundles little else", async () => {
  writeFileSync(join(project, "one.mjs"), 'import { ContextError } from "plimsoll"; throw new ContextError();');
  const build = await rolldown({ input: join(project, "one.mjs"), platform: "node", logLevel: "silent" });
  const { output } = await build.generate({});
  await build.close();
  // This bundler also writes files for import() in code that it leaves out. Nothing loads those.
  const { code, imports, dynamicImports } = output[0];
  expect({ imports, dynamicImports }).toEqual({ imports: [], dynamicImports: [] });
  expect(code.length).toBeLessThan(1_500);
});

test.runIf(deep)("npm installs the package into an empty project, and npx runs it", { timeout: 300_000 }, () => {
  const empty = createProject("empty");
  run("npm", ["install", "--no-audit", "--no-fund", join(folder, tarball.filename)], empty);
  expect(run("npx", ["plimsoll", "--version"], empty)).toBe(`${manifest.version}\n`);
  expect(run("npx", ["plimsoll", "inject", "--dry-run"], empty)).toContain("AGENTS.md");
});

function createProject(name: string): string {
  const path = join(folder, name);
  mkdirSync(path);
  writeFileSync(join(path, "package.json"), '{ "name": "somebody", "version": "1.0.0", "type": "module" }\n');
  writeFileSync(join(path, "AGENTS.md"), "# Mine\n");
  return path;
}

function run(command: string, args: readonly string[], cwd: string): string {
  const shell = onWindows && !command.endsWith(".exe");
  // npm finds its registry by the machine's own settings. The command itself must see none of them.
  const env = command === "npm" ? process.env : { PATH: process.env.PATH, HOME: folder };
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, env, shell, encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")}: ${error ?? stderr + stdout}`);
  return stdout;
}

function packedFiles(): string[] {
  const files = readdirSync(join(installed, "dist"), { recursive: true, encoding: "utf8" });
  return files.filter((path) => /\.(js|d\.ts)$/.test(path)).map((path) => join(installed, "dist", path));
}

/** Our own files that a file imports. */
function importsOf(file: string): string[] {
  const names = specifiersOf(file).filter((name) => name.startsWith("."));
  const paths = names.map((name) => join(dirname(file), name));
  return file.endsWith(".d.ts") ? paths.map(declarationOf) : paths;
}

/** What is neither ours nor Node's. */
function packagesOf(file: string): string[] {
  const names = specifiersOf(file).filter((name) => !name.startsWith(".") && !isBuiltin(name));
  return names.map(packageOf);
}

function specifiersOf(file: string): string[] {
  const source = readFileSync(file, "utf8");
  const { module } = parseSync(file, source);
  const names = module.staticImports.map(({ moduleRequest }) => moduleRequest.value);
  names.push(
    ...module.staticExports.flatMap(({ entries }) => entries.flatMap((each) => each.moduleRequest?.value ?? [])),
  );
  for (const { moduleRequest } of module.dynamicImports) {
    const name = source.slice(moduleRequest.start, moduleRequest.end);
    if (/^["'`][^$]*["'`]$/.test(name)) names.push(name.slice(1, -1));
  }
  // Types can name a module in place.
  if (file.endsWith(".d.ts"))
    names.push(...[...source.matchAll(/\bimport\("([^"]+)"\)/g)].map(([, name = ""]) => name));
  return names;
}

function declarationOf(path: string): string {
  return path.replace(/\.[jt]s$/, ".d.ts");
}
