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
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import Database from "libsql";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, expect, test } from "vitest";

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
  for (const name of Object.keys(manifest.dependencies)) {
    const link = join(project, "node_modules", name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(root, "node_modules", name), link, "junction");
  }
}, 120_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("the packed package is smaller than 1.8 MB", () => {
  expect(tarball.size).toBeLessThan(1_800_000);
});

test("the package holds every file that one of its modules imports", () => {
  const missing = packedFiles().flatMap((file) =>
    importsOf(file)
      .filter((path) => !existsSync(path))
      .map((path) => `${file} imports ${path}`),
  );
  expect(missing).toEqual([]);
});

test("the package holds no module that neither an import path, the command nor a plugin leads to", () => {
  const entries = doors.map((door) => join(installed, manifest.exports[door].default));
  const declarations = doors.flatMap((door) => Object.values<string>(manifest.exports[door].types));
  const alone = ["plugin-hooks.js", "database-reader.js"].map((name) => join(installed, "dist/cli/bundle", name));
  const pending = [join(installed, manifest.bin.plimsoll), ...alone, ...entries];
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

test("the packed command starts, and finds its packs, with the declared dependencies alone", () => {
  const command = join(installed, manifest.bin.plimsoll);
  expect(run(process.execPath, [command, "--version"], project)).toBe(`${manifest.version}\n`);
  expect(run(process.execPath, [command, "inject", "--dry-run"], project)).toContain("AGENTS.md");
});

test("the packed command has the program that reads opencode's database", () => {
  const database = new Database(join(project, "opencode.db"));
  database.exec("CREATE TABLE session (id TEXT, time_created INTEGER); CREATE TABLE part (id, message_id, data)");
  database.exec("CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT)");
  database.exec(`INSERT INTO session VALUES ('s', 1);
    INSERT INTO message VALUES ('m', 's', 1, '{"role":"assistant","modelID":"x","tokens":{"input":7},"time":{"created":1}}')`);
  database.close();
  const command = join(installed, manifest.bin.plimsoll);
  expect(run(process.execPath, [command, "bill", "opencode.db", "--no-index"], project)).toContain("1 session");
});

test("every import path of the package loads with the declared dependencies alone", () => {
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
  expect(output.map(({ type }) => type)).toEqual(["chunk"]);
  expect(output[0].code.length).toBeLessThan(1_500);
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

function importsOf(file: string): string[] {
  const source = readFileSync(file, "utf8").replace(/^\s*(?:\/?\*|\/\/).*$/gm, "");
  const names = [...source.matchAll(/(?:\bfrom\s*|\bimport\s*\(?\s*)["'`](\.\.?\/[^"'`]+)["'`]/g)];
  const paths = names.map(([, name = ""]) => join(dirname(file), name));
  return file.endsWith(".d.ts") ? paths.map(declarationOf) : paths;
}

function declarationOf(path: string): string {
  return path.replace(/\.[jt]s$/, ".d.ts");
}
