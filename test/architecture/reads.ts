/** Files that Plimsoll did not write are read in one way: a repository can put a link, a pipe or a device into any place.
 *  Every other read is listed here with its reason. */
import { isPure } from "./layers.ts";
import { isDriver } from "./purity.ts";
import { isNode, lineOf, type Node, type Placed, type Source } from "./source.ts";
import type { Violation } from "./violation.ts";

/** These may open files themselves. */
const readers: Readonly<Record<string, string>> = {
  "src/host/files/read-foreign.ts": "is the reader",
  "src/host/files/read-text.ts": "reads what a person typed, which may be a pipe",
  "src/results/tools/source/contained-path.ts": "opens files for tools with the same checks, and streams them",
  "src/host/files/change-file.ts": "reads what it replaces, after it looked at its kind and size",
  "src/host/files/open-folder.ts": "opens folders part by part, for writers",
  "src/host/files/folder-tree.ts": "copies ignored files into a worktree; links stay links",
  "src/host/files/replace-file.ts": "writes new files, and opens their folder to save it to the disk",
  "src/host/files/lock.ts": "reads its own locks in the state directory",
  "src/host/processes/process-identity.ts": "reads /proc and its own file in the state directory",
  "src/host/config/known-shape.ts": "reads schemas of the package",
  "src/rules/content/load-content.ts": "reads content of the package",
  "src/cli/version.ts": "reads the manifest of the package",
  "src/rules/content/starter-files.ts": "reads schemas of the package",
  "src/clients/plugins/claude-code.ts": "reads the module and the manifest of the package",
  "src/clients/plugins/check-client.ts": "copies the plugin that it has just written",
  "src/plans/agent/attempt-folder.ts": "reads the folder that it made for an agent",
  "src/plans/agent/start-agent.ts": "reads /proc",
  "src/plans/nebula/attempt-folders.ts": "reads /proc",
  "src/results/mcp/run-command.ts": "writes the output of a command to its own file",
};

/** What opens or copies a file, and what gives all of it at once. */
const reading = new Set(
  `readFile readFileSync createReadStream ReadStream open openSync openAsBlob cp cpSync copyFile copyFileSync
   promises default`.split(/\s+/),
);

export function checkReads(source: Source): Violation[] {
  // The pure part has a rule of its own against all of the file system.
  if (source.isTest || isPure(source.path) || isDriver(source.path) || Object.hasOwn(readers, source.path)) return [];
  return source.nodes.flatMap((placed) =>
    readsOf(placed).map((subject) => ({ file: source.path, line: lineOf(placed), subject, rule })),
  );
}

const rule = "reads a file in its own way. Use readForeign, or readTextFile for what a person typed.";

/** Files of the list that exist and no longer read anything, so the list stays short. */
export function idleReaders(sources: ReadonlyMap<string, Source>): string[] {
  return Object.keys(readers).filter((path) =>
    (sources.get(path)?.nodes ?? []).every((each) => readsOf(each).length === 0),
  );
}

function readsOf({ node }: Placed): string[] {
  if (node.type === "ImportExpression") return isFileSystem(node.source) ? ["import(…)"] : [];
  if (node.type === "ExportNamedDeclaration" || node.type === "ExportAllDeclaration")
    return isFileSystem(node.source) ? ["export"] : [];
  if (node.type === "CallExpression") return requiresFileSystem(node) ? ["require"] : [];
  if (node.type !== "ImportDeclaration" || node.importKind === "type" || !isFileSystem(node.source)) return [];
  return (node.specifiers as readonly Node[]).flatMap((each) => {
    if (each.importKind === "type") return [];
    // A namespace and a default have every function.
    const name = isNode(each.imported) ? String(each.imported.name ?? each.imported.value) : "default";
    return reading.has(name) ? [name] : [];
  });
}

function requiresFileSystem({ callee, arguments: values }: Node): boolean {
  const name = isNode(callee) ? String(callee.name) : "";
  return /^(require|getBuiltinModule)$/.test(name) && Array.isArray(values) && isFileSystem(values[0]);
}

function isFileSystem(source: unknown): boolean {
  return isNode(source) && /^(node:)?fs(\/promises)?$/.test(String(source.value));
}
