/** Who may import whom. A room imports only from rooms before its own, and only through a door. */
import { posix } from "node:path";
import type { Import, Source } from "./source.ts";
import type { Project, Violation } from "./violation.ts";

/** Lowest first. The rooms of one group do not know each other. */
export const roomGroups: readonly (readonly string[])[] = [
  ["core"],
  ["conversation"],
  ["host"],
  ["rules"],
  ["results"],
  ["plans", "recordings"],
  ["clients"],
  ["web"],
  ["cli", "public"],
];

/** Parts with a door of their own, lowest first in each room. A part does not know the later parts of its room. */
export const parts: Readonly<Record<string, readonly (readonly string[])[]>> = {
  core: [["errors.ts", "bytes.ts"], ["crypto.ts"], ["tokens", "store"], ["text"], ["messages"], ["budget", "billing"]],
  conversation: [["history", "intake"], ["sdk"]],
  rules: [["packs"]],
  results: [["session"], ["tools"], ["mcp"]],
  plans: [["compose"], ["agent"], ["nebula"]],
};

/** These touch no file, clock, environment or network. */
const pureFolders = [
  "core",
  "conversation/history",
  "conversation/intake",
  "rules/packs",
  "results/session",
  "plans/compose",
  "recordings/sessions",
];

export function isPure(path: string): boolean {
  return pureFolders.some((folder) => path.startsWith(`src/${folder}/`));
}

export function checkLayers(source: Source, project: Project): Violation[] {
  const { room } = placeOf(source.path);
  if (groupOf(roomGroups, room) < 0) {
    const rule = "is in no room. Give it a place in test/architecture/layers.ts and in ARCHITECTURE.md.";
    return [{ file: source.path, line: 1, subject: `src/${room}`, rule }];
  }
  return source.imports.flatMap((each) => {
    const { specifier, line } = each;
    const rule = specifier === undefined ? computed : problemOf(source, each, project);
    return rule === undefined ? [] : { file: source.path, line, subject: specifier ?? "import(…)", rule };
  });
}

/** Tests ask it what a provider would say. */
const providerDoor = "scripts/provider/provider.mjs";

const computed = "has a computed name, which hides what is imported. Write the name out.";

function problemOf(source: Source, each: Import, project: Project): string | undefined {
  const { specifier = "" } = each;
  if (!specifier.startsWith(".")) {
    const own = specifier === project.name || specifier.startsWith(`${project.name}/`);
    return own ? "goes through the package's own name. Use a relative path." : undefined;
  }
  const target = resolveImport(source.path, specifier);
  if (source.isTest && (target.startsWith("test/") || target === providerDoor)) return undefined;
  if (target.endsWith(".contract.ts")) return source.isTest ? undefined : "is for tests: it loads vitest.";
  if (!project.sources.has(target)) return "is no TypeScript file in src.";
  if (lateLoads[source.path] === target) return undefined;
  return placeProblem(source, target, each.kind) ?? purityProblem(source, target, each.kind);
}

function placeProblem({ path, isTest }: Source, target: string, kind: Import["kind"]): string | undefined {
  const [from, to] = [placeOf(path), placeOf(target)];
  if (to.room === "public" && from.room !== "public") return "is for users. Use the room's own door.";
  // import() loads what it names and nothing else. A door would load the whole room.
  const isOpen = kind === "lazy" || isDoor(target);
  if (from.room === to.room) return from.part === to.part ? undefined : partProblem(from, to, isOpen);
  // Tests may use a store or a command to try a part of a lower room.
  const order = isTest ? undefined : orderProblem(roomGroups, from.room, to.room);
  return order ?? (isOpen ? undefined : `is no door. Import from an index.ts of src/${to.room}.`);
}

function purityProblem({ path, isTest }: Source, target: string, kind: Import["kind"]): string | undefined {
  if (isTest || kind === "type" || !isPure(path) || isPure(target)) return undefined;
  return "is not pure, and this file is.";
}

function partProblem(from: Place, to: Place, isOpen: boolean): string | undefined {
  const groups = parts[from.room] ?? [];
  // Other folders of a room only sort its files.
  if (groupOf(groups, to.part) < 0) return undefined;
  const order = groupOf(groups, from.part) < 0 ? undefined : orderProblem(groups, from.part, to.part);
  return order ?? (isOpen ? undefined : `is no door. Import from src/${to.room}/${to.part}/index.ts.`);
}

function orderProblem(groups: readonly (readonly string[])[], from: string, to: string): string | undefined {
  const distance = groupOf(groups, to) - groupOf(groups, from);
  if (distance === 0)
    return `breaks the order: ${to} and ${from} are siblings in one group and do not know each other.`;
  return distance > 0 ? `breaks the order: ${to} lies above ${from}.` : undefined;
}

/** The path in src that a relative import names. */
export function resolveImport(path: string, specifier: string): string {
  return posix.join(posix.dirname(path), specifier);
}

/** The one import against the order: a recall tool also opens what a session stored, and loads it when it is asked. */
const lateLoads: Readonly<Record<string, string>> = {
  "src/conversation/sdk/recall-original.ts": "src/results/session/index.ts",
};

/** Beside the indexes: what is loaded only where it is asked for by name. */
const otherDoors: ReadonlySet<string> = new Set([
  "src/core/errors.ts",
  "src/core/bytes.ts",
  "src/core/crypto.ts",
  "src/host/processes/loopback-server.ts",
  "src/host/store/postgres.ts",
  "src/host/store/sqlite.ts",
  "src/host/store/sqlite-driver.ts",
  "src/conversation/sdk/ai-sdk.ts",
  "src/conversation/sdk/fetch.ts",
  "src/conversation/sdk/anthropic.ts",
  "src/conversation/sdk/openai.ts",
  "src/conversation/sdk/serve-requests.ts",
]);

function isDoor(path: string): boolean {
  return /^src\/[\w-]+\/([\w-]+\/)?index\.ts$/.test(path) || otherDoors.has(path);
}

interface Place {
  readonly room: string;
  /** The folder or file directly in the room. */
  readonly part: string;
}

function placeOf(path: string): Place {
  const [, room = "", part = ""] = path.split("/");
  return { room, part };
}

function groupOf(groups: readonly (readonly string[])[], name: string): number {
  return groups.findIndex((group) => group.includes(name));
}
