/** Joins the modules behind each import path, and the packages that they use, into few files. The doors of dist/public/ keep their
 *  names, and what several of them use is in dist/public/chunks/ once. Line breaks stay: Node prints the line of an error. */
import { mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { withoutHelpers } from "./bundle-command.mjs";
import { findModules } from "./find-modules.mjs";
import { shareData } from "./share-data.mjs";
import { isExternal } from "./third-party.mjs";

export async function bundleLibrary(dist, collector) {
  const doors = readdirSync(join(dist, "public")).filter((name) => name.endsWith(".js"));
  const entries = doors.map((name) => [basename(name, ".js"), join(dist, "public", name)]);
  const alternatives = ["exact", "exact-in-browsers"].map((name) => [
    `chunks/${name}`,
    join(dist, `core/tokens/${name}.js`),
  ]);
  const build = await rolldown({
    input: Object.fromEntries([...entries, ...alternatives]),
    platform: "neutral",
    resolve: { mainFields: ["module", "main"], conditionNames: ["node", "import"] },
    plugins: [
      { name: "conditions", resolveId: replaceByCondition, load: withoutHelpers },
      shareData(),
      collector.plugin,
    ],
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
  // Its build for Node is CommonJS, which asks for Node's modules with `require`.
  if (id === "yaml") return fileURLToPath(new URL("../node_modules/yaml/browser/index.js", import.meta.url));
  return id === "./exact.js" ? { id: "#exact", external: true } : null;
}

/** Node takes a millisecond for each file, and the doors of SDKs would load thirty. So what they have in common is in few files, in
 *  such a way that a door with less code loads hardly more than it uses. */
async function groupModules(dist) {
  const smallFirst = [
    ["store", "tokens"],
    ["compose", "agent", "intake"],
    ["messages"],
    ["session", "history", "billing", "anthropic"],
  ];
  const shared = await findModules([join(dist, "public/openai.js")]);
  // Alone, so that a bundler can leave the counters out of a program that uses nothing but the error.
  for (const name of ["core/errors.js", "core/tokens/create-counter.js"]) shared.delete(join(dist, name));
  const groups = [];
  for (const doors of smallFirst) {
    const own = await Promise.all(doors.map((door) => findModules([join(dist, `public/${door}.js`)])));
    const taken = new Set(own.flatMap((modules) => [...modules]).filter((id) => shared.delete(id)));
    groups.push({ name: `shared-${doors.at(-1)}`, test: (id) => taken.has(id) });
  }
  return groups;
}
