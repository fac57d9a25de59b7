/** Joins what the command loads into few files: reading a hundred small modules took longer than the work of most commands.
 *  The modules of dist/ stay as they are, for the library's doors and for tests; dist/cli/main.js then loads dist/cli/bundle/. */
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, isAbsolute, join } from "node:path";
import { rolldown } from "rolldown";

export async function bundleCommand(dist) {
  const main = join(dist, "cli/main.js");
  const common = await commonModules(dist);
  const build = await rolldown({
    input: main,
    platform: "node",
    plugins: [
      {
        name: "quick-start",
        renderChunk: importBuiltinsDirectly,
        load: (id) => readVocabulary(id) ?? withoutLanguages(id),
      },
    ],
    external: (id) => !isOwn(id) && !isBundled(id),
    logLevel: "silent",
  });
  await build.write({
    dir: join(dist, "cli"),
    format: "esm",
    entryFileNames: "main.js",
    chunkFileNames: "bundle/[name].js",
    // Smaller to read; names of functions stay, so that a stack trace does.
    minify: { compress: true, mangle: { toplevel: false, keepNames: true }, codegen: { removeWhitespace: true } },
    codeSplitting: {
      groups: [
        { name: "first", priority: 1, test: (id) => id === join(dist, "cli/version.js") },
        // Every counter needs the classes of characters, and loading them does no work.
        { name: "common", test: (id) => common.has(id) || id.includes("pretoken-classes") },
      ],
    },
  });
  await build.close();
  await bundleHooks(dist);
  skipDoors(join(dist, "cli"));
  await bundleStatusLine(dist);
  writeFileSync(join(dist, "cli/bundle/LICENSES.txt"), bundled.map(licenceOf).join("\n\n"));
}

/** What plugins load inside a client is one file of its own. */
async function bundleHooks(dist) {
  const build = await rolldown({
    input: join(dist, "cli/plugin-hooks.js"),
    platform: "node",
    plugins: [{ name: "vocabulary", load: readVocabulary }],
    external: (id) => !isOwn(id),
    logLevel: "silent",
  });
  await build.write({
    file: join(dist, "cli/bundle/plugin-hooks.js"),
    format: "esm",
    codeSplitting: false,
    minify: { compress: true, mangle: { toplevel: false, keepNames: true }, codegen: { removeWhitespace: true } },
  });
  await build.close();
}

/** The status line runs after every answer of an agent. In files of its own it reads a sixth of what common.js has. */
async function bundleStatusLine(dist) {
  const build = await rolldown({
    input: { status: join(dist, "cli/spend/status-line.js") },
    platform: "node",
    plugins: [{ name: "quick-start", renderChunk: importBuiltinsDirectly }],
    external: (id) => !isOwn(id),
    logLevel: "silent",
  });
  await build.write({
    dir: join(dist, "cli/bundle"),
    format: "esm",
    chunkFileNames: "status-[name].js",
    minify: { compress: true, mangle: { toplevel: false, keepNames: true }, codegen: { removeWhitespace: true } },
  });
  await build.close();
  const main = join(dist, "cli/main.js");
  const code = readFileSync(main, "utf8");
  const [shared] = /(?<=`\.\/bundle\/)status-line\w*\.js(?=`)/.exec(code) ?? [];
  if (shared === undefined) throw new Error("main.js does not import the status line");
  writeFileSync(main, code.replace(shared, "status.js"));
  // It only names the exports of another file.
  rmSync(join(dist, "cli/bundle", shared));
}

/** For a module inside common.js that is loaded with import(), rolldown writes a file with nothing but the names of its
 *  exports. Node takes over a millisecond for each such file, so the callers ask common.js itself. */
function skipDoors(folder) {
  const files = readdirSync(folder, { recursive: true }).filter((name) => /^(main|bundle[\\/].*)\.js$/.test(name));
  const codes = new Map(files.map((name) => [name, readFileSync(join(folder, name), "utf8")]));
  const doors = new Map();
  for (const [name, code] of codes) {
    const [, imports, exports] = /^import\{([^}]*)\}from"\.\/common\.js";export\{([^}]*)\};$/.exec(code.trim()) ?? [];
    if (imports === undefined || /\s/.test(exports)) continue;
    const given = imports.split(",").map((each) => each.split(" as "));
    const shown = given.filter(([, local]) => exports.split(",").includes(local));
    doors.set(basename(name), `({${shown.map(([theirs, local]) => `${local}:common.${theirs}`)}})`);
  }
  for (const [name, code] of codes) {
    const direct = code.replace(/import\(`(\.\/(?:bundle\/)?)([\w-]+\.js)`\)/g, (whole, path, door) =>
      doors.has(door) ? `import(\`${path}common.js\`).then(common=>${doors.get(door)})` : whole,
    );
    if (doors.has(basename(name))) rmSync(join(folder, name));
    else if (direct !== code) writeFileSync(join(folder, name), direct);
  }
}

function isOwn(id) {
  return id.startsWith(".") || isAbsolute(id);
}

/** Packages of a hundred files or so. They are read whenever a project has packs or a configuration of its own, and when
 *  an MCP client starts a server and waits for it. */
const bundled = ["zod", "yaml", "ignore", "diff", "@modelcontextprotocol/server", "@modelcontextprotocol/core"];

function isBundled(id) {
  return bundled.some((name) => id === name || id.startsWith(`${name}/`));
}

function licenceOf(name) {
  const folder = new URL(`../node_modules/${name}/`, import.meta.url);
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  return `${name}\n\n${readFileSync(new URL(file, folder), "utf8").trim()}`;
}

/** The vocabulary is 437 kB that hardly compresses. The command reads the library's copy, so the package holds it once. It
 *  reads the file as text: compiling it as a module takes four times as long. */
function readVocabulary(id) {
  if (!id.endsWith("vocabulary.data.js")) return null;
  return `import { readFileSync } from "node:fs";
    const source = readFileSync(new URL("../../tokens/vocabulary.data.js", import.meta.url), "latin1");
    const [, slots, , displacements] = source.split('"');
    export const packedVocabulary = { slots, displacements };`;
}

/** zod brings its messages in fifty languages; ours are our own. */
function withoutLanguages(id) {
  return /[\\/]zod[\\/]v4[\\/]locales[\\/]index\.js$/.test(id) ? 'export { default as en } from "./en.js";' : null;
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

/** What every run of inject needs, which is most of what other commands need. A trial build of inject alone finds it: it
 *  leaves out what is reachable by imports but not used. */
async function commonModules(dist) {
  const roots = ["cli/run-cli.js", "cli/commands/inject.js"].map((name) => join(dist, name));
  const build = await rolldown({ input: roots, platform: "node", external: (id) => !isOwn(id), logLevel: "silent" });
  const { output } = await build.generate({ format: "esm" });
  await build.close();
  const chunks = new Map(output.map((chunk) => [chunk.fileName, chunk]));
  const pending = output.filter(({ facadeModuleId }) => roots.includes(facadeModuleId)).map(({ fileName }) => fileName);
  const reached = new Set();
  for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
    if (reached.has(name)) continue;
    reached.add(name);
    pending.push(...chunks.get(name).imports.filter((each) => chunks.has(each)));
  }
  // rolldown puts its own helpers into the file of some module, which then looks needed.
  const holdsHelpers = ({ moduleIds }) => moduleIds.some((id) => id.startsWith("\0"));
  const needed = [...reached].map((name) => chunks.get(name)).filter((chunk) => !holdsHelpers(chunk));
  const modules = needed.flatMap((chunk) => Object.entries(chunk.modules));
  return new Set(modules.filter(([, { renderedLength }]) => renderedLength > 0).map(([id]) => id));
}
