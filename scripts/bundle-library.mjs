/** Joins the modules behind each import path, and the packages that they use, into few files. The doors of dist/public/ keep their
 *  names, and what several of them use is in dist/public/chunks/ once. Line breaks stay: Node prints the line of an error. */
import { mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { rolldown } from "rolldown";
import { findModules } from "./find-modules.mjs";
import { shareData } from "./share-data.mjs";
import { isExternal } from "./third-party.mjs";

export async function bundleLibrary(dist, collector) {
  const doors = readdirSync(join(dist, "public")).filter((name) => name.endsWith(".js"));
  const entries = doors.map((name) => [basename(name, ".js"), join(dist, "public", name)]);
  const alternatives = ["exact", "exact-in-browsers"].map((name) => [
    `chunks/${name}`,
    join(dist, `tokens/${name}.js`),
  ]);
  const build = await rolldown({
    input: Object.fromEntries([...entries, ...alternatives]),
    platform: "neutral",
    resolve: { mainFields: ["module", "main"], conditionNames: ["node", "import"] },
    plugins: [{ name: "conditions", resolveId: replaceByCondition }, shareData(), collector.plugin],
    external: isExternal,
    logLevel: "silent",
  });
  const folder = join(dist, "bundled");
  const comments = { legal: false, annotation: true, jsdoc: false };
  const codeSplitting = { includeDependenciesRecursively: false, groups: await groupModules(dist) };
  await build.write({ dir: folder, format: "esm", chunkFileNames: "chunks/[name].js", comments, codeSplitting });
  await build.close();
  for (const name of doors) rmSync(join(dist, "public", name));
  mkdirSync(join(dist, "public/chunks"), { recursive: true });
  for (const path of readdirSync(folder, { recursive: true }).filter((name) => name.endsWith(".js"))) {
    renameSync(join(folder, path), join(dist, "public", path));
  }
  rmSync(folder, { recursive: true });
}

/** The parts of package.json's "imports". Browsers and Workers get another module: a bundler that joins everything into one file
 *  would take megabytes of ranks along. */
function replaceByCondition(id) {
  return id === "./exact.js" ? { id: "#exact", external: true } : null;
}

/** Node takes a millisecond for each file, and the doors of SDKs would load thirty. So what they have in common is in few files: one
 *  for each door with less code that must not load more than it uses, and one for the rest. */
async function groupModules(dist) {
  const groups = [];
  const clients = await findModules([join(dist, "public/openai.js")]);
  for (const door of [
    "tokens",
    "store",
    "compose",
    "agent",
    "intake",
    "messages",
    "session",
    "history",
    "billing",
    "anthropic",
  ]) {
    const own = await findModules([join(dist, `public/${door}.js`)]);
    const isTaken = (id) => groups.some(({ test }) => test(id));
    const shared = new Set([...own].filter((id) => clients.has(id) && !isTaken(id)));
    groups.push({ name: `shared-${door}`, test: (id) => shared.has(id) });
  }
  return groups;
}
