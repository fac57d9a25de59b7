/** Who may import whom. A folder imports only from groups before its own, and only through a door. */
import { posix } from "node:path";
import type { Source } from "./source.ts";
import type { Project, Violation } from "./violation.ts";

/** Lowest first. The folders of one group do not know each other. Those that do not exist yet have their place already. */
export const layerGroups: readonly (readonly string[])[] = [
  ["errors.ts", "bytes.ts"],
  ["crypto.ts"],
  ["tokens", "store"],
  ["text"],
  ["messages"],
  ["budget", "billing"],
  ["packs", "compose", "session", "history", "intake"],
  ["replay"],
  ["bill"],
  ["workspace"],
  ["adapters", "tools"],
  ["agent", "integrations"],
  ["nebula", "mcp", "plugins", "gateway", "dashboard"],
  ["cli", "public"],
];

/** Everything below it is pure. */
const firstImpure = groupOf("workspace");

/** The layer of a file: its folder below src, or for a file directly in src the file itself. */
function layerOf(path: string): string {
  return path.split("/")[1]?.replace(/\.test\.ts$/, ".ts") ?? "";
}

/** Below the workspace: the part that is pure. */
export function isPure(path: string): boolean {
  const group = groupOf(layerOf(path));
  return group >= 0 && group < firstImpure;
}

export function checkLayers(source: Source, project: Project): Violation[] {
  const from = layerOf(source.path);
  if (groupOf(from) < 0) {
    const rule = "is in no layer. Give it a place in test/architecture/layers.ts and in ARCHITECTURE.md.";
    return [{ file: source.path, line: 1, subject: `src/${from}`, rule }];
  }
  return source.imports.flatMap(({ specifier, line }) => {
    const rule = specifier === undefined ? computed : problemOf(source, specifier, project);
    return rule === undefined ? [] : { file: source.path, line, subject: specifier ?? "import(…)", rule };
  });
}

/** Tests ask it what a provider would say. */
const providerDoor = "scripts/provider/provider.mjs";

const computed = "has a computed name, which hides what is imported. Write the name out.";

function problemOf({ path, isTest }: Source, specifier: string, project: Project): string | undefined {
  if (!specifier.startsWith(".")) {
    const own = specifier === project.name || specifier.startsWith(`${project.name}/`);
    return own ? "goes through the package's own name. Use a relative path." : undefined;
  }
  const target = resolveImport(path, specifier);
  if (isTest && (target.startsWith("test/") || target === providerDoor)) return undefined;
  if (!project.sources.has(target)) return "is no TypeScript file in src.";
  const [from, to] = [layerOf(path), layerOf(target)];
  if (from === to) return undefined;
  if (to === "public") return "is for users. Use the folder's own door.";
  if (groupOf(to) === groupOf(from))
    return `breaks the layers: ${to} and ${from} are siblings in one group and do not know each other.`;
  if (groupOf(to) > groupOf(from)) return `breaks the layers: ${to} lies above ${from}.`;
  return isDoor(target) ? undefined : `is no door. Import from src/${to}/index.ts.`;
}

/** The path in src that a relative import names. */
export function resolveImport(path: string, specifier: string): string {
  return posix.join(posix.dirname(path), specifier);
}

/** Beside the index of a folder: what is loaded only where it is asked for by name. */
const otherDoors: ReadonlySet<string> = new Set([
  "src/errors.ts",
  "src/bytes.ts",
  "src/crypto.ts",
  "src/store/postgres.ts",
  "src/store/sqlite.ts",
  "src/store/sqlite-driver.ts",
  "src/integrations/ai-sdk.ts",
  "src/integrations/fetch.ts",
  "src/integrations/anthropic.ts",
  "src/integrations/openai.ts",
]);

function isDoor(path: string): boolean {
  return path === `src/${layerOf(path)}/index.ts` || otherDoors.has(path);
}

function groupOf(layer: string): number {
  return layerGroups.findIndex((group) => group.includes(layer));
}
