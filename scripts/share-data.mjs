/** Large tables are files of their own in dist/data/, which the library and the command have in common. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";

const tables = new Set(["o200k.js", "cl100k.js", "vocabulary.data.js"]);

/** Writes each table as a module of strings. The modules of ranks compute theirs from a package that is not shipped. */
export async function writeTables(dist) {
  mkdirSync(join(dist, "data"));
  for (const path of readdirSync(dist, { recursive: true }).filter((name) => tables.has(basename(name)))) {
    const file = join(dist, path);
    const [[name, value]] = Object.entries(await import(pathToFileURL(file).href));
    const text = `export const ${name} = ${JSON.stringify(value)};\n`;
    writeFileSync(join(dist, "data", basename(path)), text);
  }
}

/** A plugin of rolldown for files in a folder two levels below dist/. */
export function shareData() {
  return {
    name: "share-data",
    resolveId: (id) => (tables.has(basename(id)) ? { id: `../../data/${basename(id)}`, external: true } : null),
  };
}

/** The same for Node alone: reads the strings of a table as text, because compiling it as a module takes four times as long. */
export function readData(dist) {
  return {
    name: "read-data",
    load(id) {
      const file = basename(id);
      if (!tables.has(file)) return null;
      const [start, first, , , , second] = readFileSync(join(dist, "data", file), "utf8").split('"');
      return `import { readFileSync } from "node:fs";
        const source = readFileSync(new URL("../../data/${file}", import.meta.url), "latin1");
        const [, , , ${first}, , , , ${second}] = source.split('"');
        ${start} ${first}, ${second} };`;
    },
  };
}
