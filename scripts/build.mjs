/** Builds dist/ from nothing, so that a file removed from src/ never lingers in the package.
 *  `--types-checked-elsewhere` writes the same files without looking for type errors, in a third of the time. */
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { bundleCommand } from "./bundle-command.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
rmSync(`${root}dist`, { recursive: true, force: true });
// By its file, not by node_modules/.bin: Windows cannot start what is there without a shell.
const tsc = join(root, "node_modules/typescript/bin/tsc");
const unchecked = process.argv.includes("--types-checked-elsewhere") ? ["--noCheck"] : [];
compile(["--emitDeclarationOnly", ...unchecked]);
// Users read comments in the declarations. In the code they would be a tenth of the package.
compile(["--noCheck", "--removeComments", "--declaration", "false", "--isolatedDeclarations", "false"]);
removeInnerDeclarations(join(root, "dist"));
await compileContent(`${root}content`);
await writePlugins(`${root}plugins`);
await bundleCommand(`${root}dist`);
chmodSync(`${root}dist/cli/main.js`, 0o755);

function compile(options) {
  const args = [tsc, "-p", "tsconfig.build.json", ...options];
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}

/** Removes the declarations that no import path of the package leads to: users cannot import them. */
function removeInnerDeclarations(dist) {
  const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const doors = Object.values(exports).filter((path) => path.startsWith("./dist/"));
  const pending = doors.map((path) => declarationOf(join(root, path)));
  const reached = new Set();
  for (let file = pending.pop(); file !== undefined; file = pending.pop()) {
    if (reached.has(file)) continue;
    reached.add(file);
    const imports = readFileSync(file, "utf8").matchAll(/(?:from |import\()"(\.[^"]+)"/g);
    for (const [, path] of imports) pending.push(declarationOf(join(dirname(file), path)));
  }
  for (const path of readdirSync(dist, { recursive: true })) {
    const file = join(dist, path);
    if (file.endsWith(".d.ts") && !reached.has(file)) rmSync(file);
  }
}

function declarationOf(path) {
  return path.replace(/\.[jt]s$/, ".d.ts");
}

/** content/ becomes dist/content.json, held against the schemas that people's own layers are held against. A mistake fails the build. */
async function compileContent(directory) {
  const { loadContent } = await import("../dist/workspace/load-content.js");
  const { adapterFileSchema } = await import("../dist/adapters/adapter-schema.js");
  const { mergeLayers } = await import("../dist/packs/index.js");
  const layers = [{ layer: "embedded", directory, strictness: "error", required: true }];
  const { packs, profiles, adapters, problems } = await loadContent({
    layers,
    loadAdapterSchema: async () => adapterFileSchema,
  });
  const { warnings } = mergeLayers(packs, { language: "en" });
  const oddities = warnings.map((warning) => ({ ...warning, file: `${warning.directory}/${warning.file}` }));
  for (const { file, line, message } of [...problems, ...oddities]) {
    console.error(`${relative(root, file)}:${line}: ${message}`);
  }
  if (problems.length > 0 || oddities.length > 0) process.exit(1);
  const sources = packs.flatMap((layer) => layer.sources);
  const shipped = sources.map((source) => ({ ...source, directory: relative(directory, source.directory) }));
  writeFileSync(`${root}dist/content.json`, JSON.stringify({ sources: shipped, profiles, adapters }));
}

/** plugins/ has what the marketplace file of the repository names, and the modules that install copies into clients. */
async function writePlugins(directory) {
  const folder = join(directory, "claude-code");
  const write = (name, text) => {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  };
  const register = readFileSync(join(root, "dist/plugins/claude-register.js"), "utf8");
  write("hooks/register.js", `// Built from src/plugins/claude-register.ts, which explains it.\n${register}`);
  const { claudeFolder } = await import("../dist/plugins/claude-code.js");
  for (const [name, text] of Object.entries(claudeFolder({ deltas: true }))) write(name, text);
}
