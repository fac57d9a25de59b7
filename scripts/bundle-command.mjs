/** Joins what the command loads into few files: reading a hundred small modules took longer than the work of most commands.
 *  The modules of dist/ stay as they are, for the library's doors and for tests; dist/cli/main.js then loads dist/cli/bundle/. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, isAbsolute, join, sep } from "node:path";
import { rolldown } from "rolldown";

/** What few commands need, or what works when it is loaded (tables, built-in modules of Node): it stays in files of its own. */
const seldom = new RegExp(
  [
    "/tokens/(estimate|exact|pretoken)",
    "/text/(html|json)/",
    "/messages/(formats|normalise|validate)/",
    "/dist/(agent|billing|budget|compose|history|mcp|replay|session|store|tools)/",
    "/workspace/(processes/start-process|scan/(list-project|read-conventions|scan-project)|sync/)",
    "/adapters/(audit|clips|mcp-wire)/",
    "/packs/lint/",
    "/cli/(completion|compose|fabric|mcp|nebula|packs|replay|run|session|trim)/",
    "/cli/(check-agent-command|choose-agent)\\.js$",
    "/cli/commands/(compose|fabric|mcp|nebula|replay|run|session|snapshot|trim|trust|validate)\\.js$",
  ].join("|"),
);

export async function bundleCommand(dist) {
  const main = join(dist, "cli/main.js");
  const { first, common } = sortModules(main);
  const build = await rolldown({
    input: main,
    platform: "node",
    plugins: [
      {
        name: "quick-start",
        resolveId: shareVocabulary,
        renderChunk: importBuiltinsDirectly,
        load: withoutLanguages,
      },
    ],
    external: (id) => !isOwn(id) && !bundled.includes(id),
    logLevel: "silent",
  });
  await build.write({
    dir: join(dist, "cli"),
    format: "esm",
    entryFileNames: "main.js",
    chunkFileNames: "bundle/[name].js",
    // Smaller to read; names stay, so that a stack trace does.
    minify: { compress: false, mangle: false, codegen: { removeWhitespace: true } },
    codeSplitting: {
      groups: [
        { name: "first", priority: 1, test: (id) => first.has(id) },
        { name: "common", test: (id) => common.has(id) },
      ],
    },
  });
  await build.close();
  writeFileSync(join(dist, "cli/bundle/LICENSES.txt"), bundled.map(licenceOf).join("\n\n"));
}

function isOwn(id) {
  return id.startsWith(".") || isAbsolute(id);
}

/** Each is a hundred files or so, and read whenever a project has packs or a configuration of its own. */
const bundled = ["zod", "yaml", "ignore", "diff"];

function licenceOf(name) {
  const folder = new URL(`../node_modules/${name}/`, import.meta.url);
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  return `${name}\n\n${readFileSync(new URL(file, folder), "utf8").trim()}`;
}

/** The vocabulary is 437 kB that hardly compresses. The command reads the library's copy, so the package holds it once. */
function shareVocabulary(id, importer) {
  if (!id.endsWith("/vocabulary.data.js")) return null;
  return { id: join(dirname(importer), id), external: "relative" };
}

/** zod brings its messages in fifty languages; ours are our own. */
function withoutLanguages(id) {
  return /[\\/]zod[\\/]v4[\\/]locales[\\/]index\.js$/.test(id)
    ? 'export { default as en } from "./en.js";'
    : null;
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
  return `const builtin = process.getBuiltinModule ?? ${requiring};\n${direct}`;
}

/** `first` is what main.js itself needs. `common` is what most commands need and no package is reached from by static imports. */
function sortModules(main) {
  const modules = new Map();
  const pending = [main];
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    if (modules.has(path)) continue;
    const module = readModule(path);
    modules.set(path, module);
    pending.push(...module.statically, ...module.lazily);
  }
  const heavy = new Set([...modules].filter(([, module]) => module.heavy).map(([path]) => path));
  for (let before = -1; before !== heavy.size; ) {
    before = heavy.size;
    for (const [path, { statically }] of modules)
      if (statically.some((each) => heavy.has(each))) heavy.add(path);
  }
  const first = new Set(modules.get(main).statically);
  const isSeldom = (path) => seldom.test(path.replaceAll(sep, "/"));
  const isCommon = (path) => path !== main && !heavy.has(path) && !first.has(path) && !isSeldom(path);
  return { first, common: new Set([...modules.keys()].filter(isCommon)) };
}

function readModule(path) {
  const source = readFileSync(path, "utf8");
  const lazily = [...source.matchAll(/\bimport\("(\.[^"]+)"\)/g)].map(([, name]) =>
    join(dirname(path), name),
  );
  const names = [...source.matchAll(/^(?:import|export)\s[^;]*?from "([^"]+)";|^import "([^"]+)";/gm)].map(
    ([, from, bare]) => from ?? bare,
  );
  const packages = names.filter((name) => !name.startsWith(".") && !name.startsWith("node:"));
  return {
    statically: names.filter((name) => name.startsWith(".")).map((name) => join(dirname(path), name)),
    lazily,
    heavy: packages.length > 0,
  };
}
