/** Builds dist/ from nothing, so that a file removed from src/ never lingers in the package.
 *  `--types-checked-elsewhere` writes the same files without looking for type errors, in a third of the time. */
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { bundleCommand } from "./bundle-command.mjs";
import { bundleLibrary } from "./bundle-library.mjs";
import { bundlePages } from "./bundle-pages.mjs";
import { keepPublicTypes } from "./public-types.mjs";
import { writeTables } from "./share-data.mjs";
import { createCollector, writeNotices } from "./third-party.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
rmSync(`${root}dist`, { recursive: true, force: true });
// By its file, not by node_modules/.bin: Windows cannot start what is there without a shell.
const tsc = join(root, "node_modules/typescript/bin/tsc");
const unchecked = process.argv.includes("--types-checked-elsewhere") ? ["--noCheck"] : [];
compile(["--emitDeclarationOnly", ...unchecked]);
// Users read comments in the declarations. In the code they would be a tenth of the package.
compile(["--noCheck", "--removeComments", "--declaration", "false", "--isolatedDeclarations", "false"]);
keepPublicTypes(root);
writeFileSync(join(root, "dist/web/page-assets.js"), await bundlePages());
await writeTables(join(root, "dist"));
await writeCommonJsTypes(join(root, "dist"));
await compileContent(`${root}content`);
await writePlugins(`${root}plugins`);
const collector = createCollector();
await bundleCommand(join(root, "dist"), collector);
await bundleLibrary(join(root, "dist"), collector);
writeNotices(collector.packages());
chmodSync(`${root}dist/cli/main.js`, 0o755);

function compile(options) {
  const args = [tsc, "-p", "tsconfig.build.json", ...options];
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}

/** Programs in CommonJS can require the package, because Node loads modules with `require`. Their compiler accepts that only from
 *  declarations in a folder of CommonJS. A copy of all declarations would be a tenth of the package, so these refer to them. */
async function writeCommonJsTypes(dist) {
  const folder = join(dist, "commonjs");
  mkdirSync(folder);
  writeFileSync(join(folder, "package.json"), `${JSON.stringify({ type: "commonjs" })}\n`);
  for (const name of readdirSync(join(dist, "public")).filter((each) => each.endsWith(".d.ts"))) {
    const values = await import(`../dist/public/${name.replace(/\.d\.ts$/, ".js")}`);
    const text = readFileSync(join(dist, "public", name), "utf8").replace(/\/\*\*.*?\*\//gs, "");
    const from = `"../public/${name.replace(/\.d\.ts$/, ".js")}" with { "resolution-mode": "import" }`;
    const types = [...text.matchAll(/\btype (\w+)/g)].map(([, type]) => type);
    const lines = [`import type * as door from ${from};`, `export type { ${types.join(", ")} } from ${from};`];
    for (const [value, { prototype }] of Object.entries(values)) {
      lines.push(`export declare const ${value}: typeof door.${value};`);
      if (prototype instanceof Error) lines.push(`export type ${value} = door.${value};`);
    }
    writeFileSync(join(folder, name), `${lines.join("\n")}\n`);
  }
}

/** content/ becomes dist/content.json, held against the schemas that people's own layers are held against. A mistake fails the build. */
async function compileContent(directory) {
  const { loadContent } = await import("../dist/rules/content/load-content.js");
  const { adapterFileSchema } = await import("../dist/rules/adapters/adapter-schema.js");
  const { mergeLayers } = await import("../dist/rules/packs/index.js");
  const layers = [{ layer: "embedded", directory, strictness: "error", required: true }];
  const { packs, profiles, adapters, problems } = await loadContent({
    layers,
    loadAdapterSchema: async () => adapterFileSchema,
  });
  const { warnings, packs: merged } = mergeLayers(packs, { language: "en" });
  const oddities = warnings.map((warning) => ({ ...warning, file: `${warning.directory}/${warning.file}` }));
  for (const { file, line, message } of [...problems, ...oddities]) {
    console.error(`${relative(root, file)}:${line}: ${message}`);
  }
  if (problems.length > 0 || oddities.length > 0) process.exit(1);
  const sources = packs.flatMap((layer) => layer.sources);
  const shipped = sources.map((source) => {
    const { context, constraints } = merged.find(({ id }) => id === source.id);
    const segments = { "context.md": context, "constraints.md": constraints };
    return { ...source, directory: relative(directory, source.directory), segments };
  });
  writeFileSync(`${root}dist/content.json`, JSON.stringify({ sources: shipped, profiles, adapters }));
}

/** plugins/ has what the marketplace file of the repository names, and the modules that install copies into clients. */
async function writePlugins(directory) {
  const folder = join(directory, "claude-code");
  const write = (name, text) => {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  };
  const register = readFileSync(join(root, "dist/clients/plugins/claude-register.js"), "utf8");
  write("hooks/register.js", `// Built from src/clients/plugins/claude-register.ts, which explains it.\n${register}`);
  const { claudeFolder } = await import("../dist/clients/plugins/claude-code.js");
  for (const [name, text] of Object.entries(claudeFolder({ deltas: true }))) write(name, text);
}
