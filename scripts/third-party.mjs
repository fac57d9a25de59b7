/** The packages whose code is in dist/, and their licences. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { fileURLToPath } from "node:url";

const root = new URL("../", import.meta.url);

/** What our sources may import beside Node's modules. The build joins it with our code, so an installed plimsoll needs none of it. */
export const bundledPackages = [
  "@modelcontextprotocol/server",
  "diff",
  "gpt-tokenizer",
  "ignore",
  "parse5",
  "smol-toml",
  "yaml",
  "zod",
];

/** Native programs, and what users bring themselves. */
const { optionalDependencies, peerDependencies } = readJson(new URL("package.json", root));
const external = Object.keys({ ...optionalDependencies, ...peerDependencies });

export function isExternal(id) {
  return isBuiltin(id) || external.some((name) => id === name || id.startsWith(`${name}/`));
}

/** Collects the packages of all builds. It is a plugin of rolldown. */
export function createCollector() {
  const packages = new Map();
  const add = (name, version) => packages.set(`${name} ${version}`, { name, version });
  return {
    // The build replaces their modules by data that it computes from them.
    packages: () => {
      add("gpt-tokenizer", versionOf("gpt-tokenizer"));
      return [...packages.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
    },
    plugin: {
      name: "third-party",
      generateBundle(_, bundle) {
        const modules = Object.values(bundle).flatMap((chunk) => Object.entries(chunk.modules ?? {}));
        for (const [id, { renderedLength }] of modules) {
          const [, name] = packageInPath.exec(id) ?? [];
          if (name === undefined || renderedLength === 0) continue;
          add(name, versionOf(name));
          for (const inner of embeddedPackages(id)) add(inner.name, inner.version);
        }
      },
    },
  };
}

const packageInPath = /.*[\\/]node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/]+)/;

/** A module can be bundled itself: its source map names the packages that its own build took in. */
function embeddedPackages(file) {
  if (!existsSync(`${file}.map`)) return [];
  const sources = readJson(`${file}.map`).sources.join("\n");
  const found = sources.matchAll(/node_modules\/\.pnpm\/[^/\n]+\/node_modules\/((?:@[^/\n]+\/)?[^/\n]+)/g);
  const names = new Set([...found].map(([, name]) => name));
  return [...names].map((name) => {
    const [, version] = new RegExp(`/${name.replace("/", "\\+")}@([\\d.]+)`).exec(sources);
    return { name, version };
  });
}

function versionOf(name) {
  return readJson(new URL(`node_modules/${name}/package.json`, root)).version;
}

export function writeNotices(packages) {
  const head = `Plimsoll contains code of the packages below. The build writes this file.`;
  const parts = packages.map(({ name, version }) => `${name} ${version}\n\n${licenceOf(name)}`);
  const line = `\n\n${"-".repeat(80)}\n\n`;
  writeFileSync(fileURLToPath(new URL("THIRD-PARTY-NOTICES.txt", root)), `${[head, ...parts].join(line)}\n`);
}

function licenceOf(name) {
  if (name in withoutFile) return withoutFile[name];
  const folder = new URL(`node_modules/${name}/`, root);
  const files = existsSync(folder) ? readdirSync(folder).filter((each) => /^(licen[cs]e|notice)/i.test(each)) : [];
  if (files.length === 0) throw new Error(`${name} is bundled, and its licence is not in node_modules`);
  return files.map((file) => readFileSync(new URL(file, folder), "utf8").replaceAll("\r\n", "\n").trim()).join("\n\n");
}

/** Declares its licence in package.json and ships no text (4.1.1, read on 2026-11-18). */
const withoutFile = {
  "@cfworker/json-schema": `MIT License

Copyright (c) Jeremy Danyow

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation
files (the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy,
modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the
Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES
OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE
LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR
IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.`,
};

function readJson(path) {
  return JSON.parse(readFileSync(path, "utf8"));
}
