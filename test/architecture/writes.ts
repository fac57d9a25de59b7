/** People's files are written in one place, which follows no link. The files below write something else. */
import { isPure } from "./layers.ts";
import { isNode, lineOf, type Placed, type Source } from "./source.ts";
import type { Violation } from "./violation.ts";

/** What each of these files writes, and why it may. */
export const writers: Readonly<Record<string, string>> = {
  "src/host/files/open-folder.ts": "makes folders in open ones",
  "src/host/files/replace-file.ts": "replaces files in open folders",
  "src/host/files/folder-tree.ts": "removes and copies in open folders",
  "src/host/files/make-directory.ts": "makes our own folders",
  "src/host/files/lock.ts": "locks, in the state directory",
  "src/host/processes/process-identity.ts": "the name of this machine, in the state directory",
  "src/rules/sync/company.ts": "the company's packs, in the cache directory",
  "src/host/trust/trusted.ts": "the mode of the state directory",
  "src/host/store/sqlite-connection.ts": "the store, which the user places",
  "src/plans/agent/attempt-folder.ts": "an attempt, in the state directory or a new temporary folder",
  "src/plans/nebula/attempt-folders.ts": "removes empty folders of attempts in the state directory",
  "src/plans/generate-nebula.ts": "a new temporary folder",
  "src/recordings/recording-index.ts": "the index of recordings, in the state directory",
  "src/cli/commands/run.ts": "a new temporary folder",
  "src/results/mcp/run-command.ts": "output of a command, in a new temporary folder",
  "src/clients/plugins/check-client.ts": "a home for a client, in a new temporary folder",
  "src/clients/plugins/gemini-cli.ts": "a state directory, in a new temporary folder",
  "src/clients/plugins/admit-results.ts": "sums of a session, in the state directory",
  "src/clients/spend/saved-money.ts": "dollars of a session, in the state directory",
  "src/clients/plugins/plugin-sessions.ts": "removes sums of a session in the state directory",
};

export function checkWrites(source: Source): Violation[] {
  // The pure part may not even import node:fs.
  if (source.isTest || source.path in writers || isPure(source.path)) return [];
  return findWrites(source);
}

/** Returns the uses of functions that write, make, move or remove files. */
export function findWrites(source: Source): Violation[] {
  const modules = new Set(source.nodes.flatMap(({ node }) => wholeModules(node)));
  return source.nodes.flatMap((placed) => {
    const subjects = [...importedWrites(placed), ...memberWrites(placed, modules), ...openForWriting(placed)];
    return subjects.map((subject) => ({ file: source.path, line: lineOf(placed), subject, rule }));
  });
}

const rule = "writes files by name, where a link can lead anywhere. Use changeFile, or removeTree for a folder.";

const writing =
  /^(writeFile|appendFile|rename|rm|rmdir|unlink|mkdir|mkdtemp|cp|copyFile|symlink|link|l?chmod|l?chown|l?utimes|truncate)(Sync)?$|^createWriteStream$/;

const writingFlags = new Set(["O_WRONLY", "O_RDWR", "O_CREAT", "O_APPEND", "O_TRUNC"]);

const files = new Set(["node:fs", "node:fs/promises", "fs", "fs/promises"]);

function importedWrites({ node }: Placed): string[] {
  const from = String(isNode(node.source) ? node.source.value : undefined);
  if (!files.has(from)) return [];
  // Nobody can tell which functions of it are used.
  if (node.type === "ImportExpression") return [`import("${from}")`];
  const names = listNodes(node.specifiers).map(({ imported }) => (isNode(imported) ? String(imported.name) : ""));
  return names.filter((name) => writing.test(name));
}

/** Returns the names under which a file has the whole module. */
function wholeModules(node: Placed["node"]): string[] {
  if (node.type !== "ImportDeclaration" || !isNode(node.source) || !files.has(String(node.source.value))) return [];
  const whole = listNodes(node.specifiers).filter(({ type }) => type !== "ImportSpecifier");
  return whole.map(({ local }) => (isNode(local) ? String(local.name) : ""));
}

function memberWrites({ node }: Placed, modules: ReadonlySet<string>): string[] {
  if (node.type !== "MemberExpression" || !isNode(node.object) || !isNode(node.property)) return [];
  if (!modules.has(String(node.object.name))) return [];
  const name = String(node.property.name);
  return node.computed === true || name === "promises" || writing.test(name) ? [name] : [];
}

function listNodes(value: unknown): Placed["node"][] {
  return Array.isArray(value) ? value.filter(isNode) : [];
}

/** Flags that are not written out are a combination of named constants. */
function openForWriting({ node }: Placed): string[] {
  if (node.type === "MemberExpression" && isNode(node.property) && writingFlags.has(String(node.property.name))) {
    return [String(node.property.name)];
  }
  if (node.type !== "CallExpression" || !isNode(node.callee) || !Array.isArray(node.arguments)) return [];
  const flags: unknown = node.arguments[1];
  if (!/^open(Sync)?$/.test(String(node.callee.name)) || !isNode(flags) || flags.type !== "Literal") return [];
  return /[wa+]/.test(String(flags.value)) ? [`open "${flags.value}"`] : [];
}
