/** Joins what the command loads into few files: reading a hundred small modules took longer than the work of most commands.
 *  The modules of dist/ stay as they are, for the library's doors and for tests; dist/cli/main.js then loads dist/cli/bundle/. */
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { rolldown } from "rolldown";
import { findModules } from "./find-modules.mjs";
import { readData } from "./share-data.mjs";
import { isExternal } from "./third-party.mjs";

export async function bundleCommand(dist, collector) {
  // What every run of inject needs is most of what other commands need.
  const common = await findModules(["cli/run-cli.js", "cli/commands/inject.js"].map((name) => join(dist, name)));
  const bundle = join(dist, "cli/bundle");
  const build = await rolldown({
    input: join(dist, "cli/main.js"),
    platform: "node",
    plugins: [
      {
        name: "quick-start",
        renderChunk: importBuiltinsDirectly,
        load: (id) => withoutLanguages(id) ?? withoutHelpers(id),
      },
      readData(dist),
      collector.plugin,
    ],
    external: isExternal,
    logLevel: "silent",
  });
  await build.write({
    dir: bundle,
    format: "esm",
    entryFileNames: "main.js",
    chunkFileNames: "[name].js",
    minify,
    codeSplitting: {
      includeDependenciesRecursively: false,
      groups: [{ name: "common", test: (id) => common.has(id) || nearlyAlways.test(id) }],
    },
  });
  await build.close();
  for (const program of alone) await bundleAlone(dist, program, collector);
  await bundleMain(dist);
  rmSync(join(bundle, "main.js"));
  skipDoors(join(dist, "cli"));
}

/** Programs in files of their own. The status line runs after every answer of an agent, and reads a sixth of what common.js has.
 *  The hooks run inside a client. The command starts the reader of databases as a process. */
const alone = [
  { name: "status", file: "clients/spend/status-line.js", prefix: "status", isOneFile: true },
  { name: "plugin-hooks", file: "clients/plugin-hooks.js", prefix: "hooks" },
  { name: "database-reader", file: "recordings/database-reader.js", prefix: "database" },
];

/** Loaded with import(), but needed by every counter, or in every repository. Loading them does hardly any work. */
const nearlyAlways = /pretoken-classes|[\\/]ignore-rules\.js$|[\\/]node_modules[\\/]ignore[\\/]/;

/** Smaller to read. Names of functions stay, for the sake of stack traces. */
const minify = { compress: true, mangle: { toplevel: false, keepNames: true }, codegen: { removeWhitespace: true } };

/** The first file holds all that `--version` needs. */
async function bundleMain(dist) {
  const main = join(dist, "cli/main.js");
  const places = { "./run-cli.js": "./bundle/run-cli.js", "../clients/spend/status-line.js": "./bundle/status.js" };
  const resolveId = (id) => (id in places ? { id: places[id], external: true } : null);
  const build = await rolldown({
    input: main,
    platform: "node",
    plugins: [{ name: "quick-start", resolveId, renderChunk: importBuiltinsDirectly }],
    logLevel: "silent",
  });
  await build.write({ file: main, format: "esm", minify });
  await build.close();
}

/** The reader of YAML is mostly a package, and neither keeps state nor throws our errors. So the status line, which asks for it
 *  only if a person wrote a configuration, takes that of the hooks. */
function shareYaml(dist, prefix) {
  const own = join(dist, "host/config/read-yaml.js");
  const isShared = (id, importer = "") => prefix === "status" && join(importer, "..", id) === own;
  const resolveId = (id, importer) => (isShared(id, importer) ? { id: "./hooks-read-yaml.js", external: true } : null);
  return { name: "share-yaml", resolveId };
}

async function bundleAlone(dist, { name, file, prefix, isOneFile = false }, collector) {
  const build = await rolldown({
    input: { [name]: join(dist, file) },
    platform: "node",
    plugins: [
      { name: "quick-start", renderChunk: importBuiltinsDirectly, load: withoutLanguages },
      shareYaml(dist, prefix),
      readData(dist),
      collector.plugin,
    ],
    external: isExternal,
    logLevel: "silent",
  });
  // What it loads at once is in one file, also what its later parts use.
  const together = isOneFile ? await findModules([join(dist, file)]) : new Set();
  const groups = isOneFile ? [{ name: "line", test: (id) => together.has(id) }] : [];
  const codeSplitting = { includeDependenciesRecursively: false, groups };
  const dir = join(dist, "cli/bundle");
  await build.write({ dir, format: "esm", chunkFileNames: `${prefix}-[name].js`, minify, codeSplitting });
  await build.close();
}

/** For a module that is loaded with import() but is part of another file, rolldown writes a file with nothing but the names
 *  of its exports. Node takes over a millisecond for each such file, so the callers ask the other file itself. */
function skipDoors(folder) {
  const files = readdirSync(folder, { recursive: true }).filter((name) => /^(main|bundle[\\/].*)\.js$/.test(name));
  const codes = new Map(files.map((name) => [name, readFileSync(join(folder, name), "utf8")]));
  const doors = new Map();
  for (const [name, code] of codes) {
    const [, names, behind] = /^export\{([^}]*)\}from"\.\/([^"]*)";$/.exec(code.trim()) ?? [];
    if (names === undefined) continue;
    const pairs = names.split(",").map((each) => each.split(" as "));
    const exports = pairs.map(([theirs, shown = theirs]) => `${shown}:file.${theirs}`);
    doors.set(basename(name), { behind, exports: `({${exports}})` });
  }
  for (const [name, code] of codes) {
    const direct = code.replace(/import\(`(\.\/(?:bundle\/)?)([\w-]+\.js)`\)/g, (whole, path, file) => {
      const door = doors.get(file);
      return door === undefined ? whole : `import(\`${path}${door.behind}\`).then(file=>${door.exports})`;
    });
    if (direct !== code) writeFileSync(join(folder, name), direct);
  }
  // The entry of the status line is a door, too, and main.js no longer asks for it.
  for (const name of files) if (doors.has(basename(name))) rmSync(join(folder, name));
}

/** zod brings its messages in fifty languages; ours are our own. */
function withoutLanguages(id) {
  return /[\\/]zod[\\/]v4[\\/]locales[\\/]index\.js$/.test(id) ? 'export { default as en } from "./en.js";' : null;
}

/** A CommonJS module needs helpers of the bundler. They are one more file to read, or they are beside a module for Node, which
 *  they then bring into a Worker. */
export function withoutHelpers(id) {
  if (!/[\\/]node_modules[\\/]ignore[\\/]index\.js$/.test(id)) return null;
  const [code, rest] = readFileSync(id, "utf8").split("module.exports = factory");
  if (rest === undefined) throw new Error("the package ignore exports something else than before");
  return `${code}export default factory;`;
}

/** An import of a built-in module makes Node read every one of its exports, lazily loaded ones too, which takes longer than the
 *  whole bundle does. Asked for directly, a module is just there. The first 22 releases of Node cannot be asked. */
function importBuiltinsDirectly(code) {
  let found = false;
  const direct = code.replace(/^import \{([^}]*)\} from "(node:[^"]+)";$/gm, (_, names, module) => {
    found = true;
    return `const {${names.replaceAll(" as ", ": ")}} = builtin("${module}");`;
  });
  if (!found) return null;
  const requiring = '(await import("node:module")).createRequire(import.meta.url)';
  const [shebang = ""] = /^#!.*\n/.exec(direct) ?? [];
  return `${shebang}const builtin = process.getBuiltinModule ?? ${requiring};\n${direct.slice(shebang.length)}`;
}
