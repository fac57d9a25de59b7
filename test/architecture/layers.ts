/** Who may import whom. A folder imports only from groups before its own, and only through a door. */
import { posix } from "node:path";
import type { Source } from "./source.ts";
import type { Project, Violation } from "./violation.ts";

/** Lowest first. The folders of one group do not know each other. Those that do not exist yet have their place already. */
export const layerGroups: readonly (readonly string[])[] = [
  ["errors.ts"],
  ["tokens", "store"],
  ["text"],
  ["messages"],
  ["budget", "billing"],
  ["packs", "compose", "session", "history"],
  ["replay"],
  ["index.ts"],
  ["workspace"],
  ["adapters", "tools"],
  ["agent", "integrations", "mcp", "gateway", "dashboard"],
  ["cli"],
];

const library = groupOf("index.ts");

/** The layer of a file: its folder below src, or for a file directly in src the file itself. */
function layerOf(path: string): string {
  return path.split("/")[1] ?? "";
}

/** At or below the library: the part that is pure. */
export function isPure(path: string): boolean {
  const group = groupOf(layerOf(path));
  return group >= 0 && group <= library;
}

export function checkLayers(source: Source, project: Project): Violation[] {
  const from = layerOf(source.path);
  if (groupOf(from) < 0) {
    const rule = "is in no layer. Give it a place in test/architecture/layers.ts and in ARCHITECTURE.md.";
    return [{ file: source.path, line: 1, subject: `src/${from}`, rule }];
  }
  return source.imports.flatMap(({ specifier, line }) => {
    const rule = specifier === undefined ? computed : problemOf(source.path, specifier, project);
    return rule === undefined ? [] : { file: source.path, line, subject: specifier ?? "import(…)", rule };
  });
}

const computed = "has a computed name, which hides what is imported. Write the name out.";

function problemOf(path: string, specifier: string, project: Project): string | undefined {
  if (!specifier.startsWith(".")) {
    const own = specifier === project.name || specifier.startsWith(`${project.name}/`);
    return own ? "goes through the package's own name. Use a relative path." : undefined;
  }
  const target = resolveImport(path, specifier);
  if (!project.sources.has(target)) return "is no TypeScript file in src.";
  const [from, to] = [layerOf(path), layerOf(target)];
  if (from === to) return undefined;
  if (to === "index.ts") return "is the root door, which is for users. Use the folder's own door.";
  if (groupOf(to) === groupOf(from))
    return `breaks the layers: ${to} and ${from} are siblings in one group and do not know each other.`;
  if (groupOf(to) > groupOf(from)) return `breaks the layers: ${to} lies above ${from}.`;
  return isDoor(target, project)
    ? undefined
    : `is no door. Import from src/${to}/index.ts or a file that package.json exports.`;
}

/** The path in src that a relative import names. */
export function resolveImport(path: string, specifier: string): string {
  return posix.join(posix.dirname(path), specifier);
}

function isDoor(path: string, project: Project): boolean {
  return path === `src/${layerOf(path)}/index.ts` || project.doors.has(path);
}

function groupOf(layer: string): number {
  return layerGroups.findIndex((group) => group.includes(layer));
}
