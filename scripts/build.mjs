/** Builds dist/ from nothing, so that a file removed from src/ never lingers in the package. */
import { spawnSync } from "node:child_process";
import { chmodSync, rmSync, writeFileSync } from "node:fs";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { bundleCommand } from "./bundle-command.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
rmSync(`${root}dist`, { recursive: true, force: true });
const tsc = fileURLToPath(new URL("../node_modules/.bin/tsc", import.meta.url));
const { status } = spawnSync(tsc, ["-p", "tsconfig.build.json"], { cwd: root, stdio: "inherit" });
if (status !== 0) process.exit(status ?? 1);
await compileContent(`${root}content`);
await bundleCommand(`${root}dist`);
chmodSync(`${root}dist/cli/main.js`, 0o755);

/** content/ becomes dist/content.json, held against the schemas that people's own layers are held against. A mistake fails the build. */
async function compileContent(directory) {
  const { loadContent } = await import("../dist/workspace/content/load-content.js");
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
